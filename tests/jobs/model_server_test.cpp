// SPDX-License-Identifier: GPL-3.0-or-later
// The shipped model served to this process: answers are those of `generate`, with the probabilities of their tokens.
#include "core/jobs/model_server.h"

#include <gtest/gtest.h>

#include <thread>

#include "core/train/settings.h"
#include "core/views/streamed_answer.h"

namespace mw::jobs {
namespace {

using namespace std::chrono_literals;

experiment::Experiment served_experiment() {
  experiment::Experiment e;
  e.set_value("model.path", MW_RESOURCES "/base-model");
  e.set_value("target.threads", 2);
  e.set_value("serve.max_model_len", 128);
  return e;
}

std::shared_ptr<ModelServer> load() {
  return std::make_shared<ModelServer>(served_experiment());
}

void finish(views::StreamedAnswer& answer) {
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (!answer.has_ended() && std::chrono::steady_clock::now() < until) {
    answer.drain();
    std::this_thread::sleep_for(2ms);
  }
  ASSERT_TRUE(answer.has_ended());
}

const options::SampleOptions kSampled{
    .max_new_tokens = 24, .temperature = 1.2f, .top_k = 40, .min_p = 0.01f, .seed = 7};

TEST(ModelServer, AnswersAsGenerateDoes) {
  const auto model = load();
  for (const options::SampleOptions& options : {options::SampleOptions{.max_new_tokens = 24}, kSampled}) {
    views::StreamedAnswer answer(model, model->request("What colour is the sky?", options));
    finish(answer);
    train::ModelSettings settings = train::model_settings(served_experiment().config());
    settings.use = engine::NetworkUse::inference;
    train::LoadedModel alone = train::load_model(settings);
    const options::ChatFormat chat = train::chat_format(served_experiment().config().data, alone.config().family);
    const std::string prompt = chat == options::ChatFormat::none
                                   ? "What colour is the sky?"
                                   : data::render_prompt(chat, {{"user", "What colour is the sky?"}});
    const train::Answer expected = train::answers(alone, std::span(&prompt, 1), chat, options).front();
    ASSERT_EQ(answer.tokens().size(), expected.ids.size());
    for (size_t i = 0; i < expected.ids.size(); ++i)
      EXPECT_EQ(answer.tokens()[i].piece, alone.tokenizer->piece(expected.ids[i])) << i;
  }
}

TEST(ModelServer, ReportsProbabilitiesOfTheModel) {
  const auto model = load();
  serve::GenerationRequest request = model->request("Hello", kSampled);
  request.likeliest = model->served().model.config().vocab;
  views::StreamedAnswer answer(model, request);
  finish(answer);
  ASSERT_FALSE(answer.tokens().empty());
  for (const views::AnswerToken& token : answer.tokens()) {
    double sum = 0;
    for (size_t i = 0; i < token.likeliest.size(); ++i) {
      sum += token.likeliest[i].probability;
      EXPECT_LE(token.likeliest[i].probability, token.likeliest[i > 0 ? i - 1 : 0].probability);
    }
    EXPECT_NEAR(sum, 1, 1e-6);
    EXPECT_GT(token.probability, 0);
  }
  const views::AnswerToken& first = answer.tokens().front();
  const auto same = std::find_if(first.likeliest.begin(), first.likeliest.end(),
                                 [&](const auto& other) { return other.piece == first.piece; });
  ASSERT_NE(same, first.likeliest.end());
  EXPECT_EQ(same->probability, first.probability);
}

TEST(ModelServer, SurvivesAPortInUseAndServesAgainAfterStopping) {
  const auto first = load(), second = load();
  first->listen({.port = 0});
  EXPECT_THROW(second->listen({.port = first->http()->port()}), Error);
  EXPECT_EQ(second->http(), nullptr);
  first->stop_listening(serve::StopMode::cancel);
  views::StreamedAnswer answer(first, first->request("Hello", {.max_new_tokens = 4}));
  finish(answer);
  EXPECT_GT(answer.tokens().size(), 0u);
  first->listen({.port = 0});
  EXPECT_NE(first->http(), nullptr);
}

TEST(ModelServer, CurlCommandQuotesPromptAndKey) {
  const auto model = load();
  model->listen({.port = 0});
  const std::string command = model->curl_command("it's", "k'ey");
  EXPECT_TRUE(command.starts_with("curl " + model->http()->address() + "/v1/")) << command;
  EXPECT_NE(command.find(R"('Authorization: Bearer k'\''ey')"), std::string::npos) << command;
  EXPECT_NE(command.find(R"(it'\''s)"), std::string::npos) << command;
  EXPECT_EQ(model->curl_command("x", "").find("Authorization"), std::string::npos);
}

TEST(ModelServer, LoadingIsCancelled) {
  std::stop_source stop;
  try {
    ModelServer model(
        served_experiment(), [&](long, long) { stop.request_stop(); }, stop.get_token());
    FAIL() << "loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::cancelled);
  }
}

}  // namespace
}  // namespace mw::jobs
