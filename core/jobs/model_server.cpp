// SPDX-License-Identifier: Apache-2.0
#include "core/jobs/model_server.h"

#include <algorithm>

#include "core/base/quote.h"
#include "core/train/run_settings.h"

namespace mw::jobs {
namespace {

train::Progress stopping_at(const std::stop_token& stop, const train::Progress& progress) {
  return [&stop, &progress](long done, long total) {
    if (stop.stop_requested()) throw cancelled("loading the model");
    if (progress) progress(done, total);
  };
}

}  // namespace

ModelServer::ModelServer(const experiment::Experiment& experiment, const train::Progress& progress,
                         const std::stop_token& stop)
    : served_(load_served(experiment, stopping_at(stop, progress))),
      chat_(train::chat_template(experiment.config(), served_.model.config().family)),
      executor_(make_executor(served_)),
      loop_(std::make_unique<serve::ServingLoop>(served_.settings, *executor_, served_.queue)) {}

ModelServer::~ModelServer() {
  stop_listening(serve::StopMode::cancel);
}

std::vector<std::string> ModelServer::adapters() const {
  std::vector<std::string> names;
  for (const NamedAdapter& adapter : served_.adapters) names.push_back(adapter.name);
  return names;
}

serve::GenerationRequest ModelServer::request(const std::string& prompt, const options::SampleOptions& sampling) const {
  const data::Tokenizer& tokenizer = *served_.model.tokenizer;
  const bool is_chat = !chat_.is_none();
  serve::GenerationRequest out{.prompt_ids = {tokenizer.bos()}, .sampling = sampling};
  out.sampling.stop_ids = {tokenizer.eos()};
  const std::vector<int> body = tokenizer.encode(is_chat ? data::render_prompt(chat_, {{"user", prompt}}) : prompt);
  out.prompt_ids.insert(out.prompt_ids.end(), body.begin(), body.end());
  if (is_chat)
    if (const int end = tokenizer.find(data::end_of_turn(chat_)); end >= 0) out.sampling.stop_ids.push_back(end);
  const int room = served_.settings.max_model_len - static_cast<int>(out.prompt_ids.size());
  out.sampling.max_new_tokens = std::clamp(sampling.max_new_tokens, 1, std::max(room, 1));
  return out;
}

void ModelServer::listen(const serve::HttpOptions& options) {
  http_ = std::make_unique<serve::HttpServer>(options,
                                              serve::ServedModel{.name = served_.name,
                                                                 .adapters = adapters(),
                                                                 .tokenizer = served_.model.tokenizer.get(),
                                                                 .chat = chat_,
                                                                 .max_model_len = served_.settings.max_model_len},
                                              *loop_);
}

std::string ModelServer::curl_command(const std::string& prompt, const std::string& api_key) const {
  const bool is_chat = !chat_.is_none();
  Json body{{"model", served_.name}, {"max_tokens", 64}};
  if (is_chat)
    body["messages"] = Json::array({{{"role", "user"}, {"content", prompt}}});
  else
    body["prompt"] = prompt;
  std::string command = "curl " + http_->address() + (is_chat ? "/v1/chat/completions" : "/v1/completions") +
                        " -H 'Content-Type: application/json'";
  if (!api_key.empty()) command += " -H " + shell_quoted("Authorization: Bearer " + api_key);
  return command + " -d " + shell_quoted(body.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void ModelServer::stop_listening(serve::StopMode mode) {
  if (http_) http_->stop(mode);
  http_.reset();
}

}  // namespace mw::jobs
