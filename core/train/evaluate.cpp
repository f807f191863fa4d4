// SPDX-License-Identifier: Apache-2.0
#include "core/train/evaluate.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/engine/distributed/cluster.h"
#include "core/mesh/layout/size_constraints.h"
#include "core/train/model.h"

namespace mw::train {
namespace {

DataFacts::PromptTokens asked_prompts(const Settings& s, const model::Config& config,
                                      const data::TokenizedDataset& dataset, const data::Tokenizer& tokenizer) {
  const long limit = std::max(s.answers, s.sample_every > 0 ? s.sample_prompts : 0);
  DataFacts::PromptTokens most;
  for (const data::Example& example : with_prompts(dataset.eval, limit, tokenizer)) {
    const auto prompt = static_cast<int>(tokenizer.encode(example.prompt).size()) + 1;  // bos
    most.prompt = std::max(most.prompt, prompt);
    const int answer = answer_limit(example, tokenizer, s.sample);
    most.with_answer = std::max(most.with_answer, std::min(config.max_positions, prompt + answer));
  }
  return most;
}

}  // namespace

engine::TokenBatch token_batch(const data::Batch& b) {
  return {.rows = b.rows,
          .len = b.len,
          .ids = b.ids,
          .targets = b.targets,
          .positions = b.positions,
          .segments = b.segments};
}

data::ExampleList evaluation_rows(const Settings& s, const data::ExampleList& held_out) {
  return held_out.first(static_cast<size_t>(s.eval_rows));
}

std::optional<double> held_out_loss(LoadedModel& model, const data::ExampleList& examples,
                                    const data::BatchOptions& options, const engine::StepOptions& step,
                                    std::stop_token stop) {
  engine::LossSum total;
  for (const data::Batch& batch : data::eval_batches(examples, options, model.tokenizer->pad())) {
    if (stop.stop_requested()) return std::nullopt;
    try {
      const engine::LossSum one = model.cluster->evaluate(token_batch(batch), step, stop);
      total.sum += one.sum;
      total.tokens += one.tokens;
    } catch (const Error& e) {
      if (e.kind() == Error::Kind::cancelled) return std::nullopt;
      throw;
    }
  }
  if (total.tokens == 0) return std::nullopt;
  return total.sum / static_cast<double>(total.tokens);
}

std::vector<data::Example> with_prompts(const data::ExampleList& examples, long limit,
                                        const data::Tokenizer& tokenizer) {
  std::vector<data::Example> found;
  for (size_t i = 0; i < examples.size() && std::ssize(found) < limit; ++i)
    if (examples.has_prompt(i)) found.push_back(examples.example(i, tokenizer));
  return found;
}

int answer_limit(const data::Example& example, const data::Tokenizer& tokenizer,
                 const options::SampleOptions& options) {
  constexpr int kMargin = 16;
  return std::min(options.max_new_tokens, static_cast<int>(tokenizer.encode(example.answer).size()) + kMargin);
}

Score answer_prompts(LoadedModel& model, std::span<const data::Example> examples, long limit,
                     const data::ChatTemplate& chat, const options::SampleOptions& options, std::stop_token stop,
                     const std::function<void(const event::Sample&, long, long)>& on_answer) {
  const auto questions = examples.first(std::min(examples.size(), static_cast<size_t>(std::max(0L, limit))));
  const auto total = static_cast<long>(questions.size());
  Score score;
  for (const data::Example& example : questions) {
    if (stop.stop_requested()) break;
    options::SampleOptions sampling = options;
    sampling.max_new_tokens = answer_limit(example, *model.tokenizer, options);
    const Answer got = answer(model, example.prompt, chat, sampling, stop);
    const bool right = got.text == example.answer;
    ++score.asked;
    score.right += right;
    on_answer({.step = 0,
               .prompt = example.prompt,
               .text = got.text,
               .expected = example.answer,
               .verdict = right ? "right" : "wrong"},
              score.asked, total);
  }
  return score;
}

DataFacts data_facts(const Settings& s, const model::Config& config, const data::TokenizedDataset& dataset,
                     const data::Tokenizer& tokenizer) {
  constexpr std::int64_t kMostBatches = 20'000, kMostRows = 4'000'000;
  const std::int64_t micro_batches = std::min({static_cast<std::int64_t>(s.rate.steps) * s.accumulation, kMostBatches,
                                               std::max<std::int64_t>(1, kMostRows / std::max(1, s.batch))});
  const int ways = mesh::batch_devices(s.model.mesh);
  std::vector<data::BatchSize> shares =
      data::largest_batch_per_device(dataset.train, batch_options(s), 0, micro_batches, ways);
  DataFacts facts{
      .config = config,
      .largest = ways == 1 ? shares.front() : data::largest_batch(dataset.train, batch_options(s), 0, micro_batches),
      .shares = std::move(shares),
      .evaluation = data::largest_eval_batch_per_device(evaluation_rows(s, dataset.eval), eval_options(s), ways),
      .asked = asked_prompts(s, config, dataset, tokenizer)};
  double tokens = 0, loss_tokens = 0;
  for (size_t i = 0; i < dataset.train.size(); ++i) {
    const data::ExampleSize size = dataset.train.size_of(i);
    ++facts.lengths[size.tokens];
    tokens += size.tokens, loss_tokens += size.loss_tokens;
  }
  if (tokens > 0) facts.loss_share = loss_tokens / tokens;
  return facts;
}

}  // namespace mw::train
