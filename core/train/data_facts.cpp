// SPDX-License-Identifier: Apache-2.0
#include "core/train/data_facts.h"

#include <algorithm>

#include "core/mesh/layout/size_constraints.h"
#include "core/train/evaluate.h"

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

DataFacts data_facts(const Settings& s, const model::Config& config, const data::TokenizedDataset& dataset,
                     const data::Tokenizer& tokenizer) {
  const auto micro_batches = std::min<std::int64_t>(static_cast<std::int64_t>(s.rate.steps) * s.accumulation, 20000);
  const int ways = mesh::batch_devices(s.model.mesh);
  return {.config = config,
          .largest = data::largest_batch(dataset.train, batch_options(s), 0, micro_batches),
          .shares = data::largest_batch_per_device(dataset.train, batch_options(s), 0, micro_batches, ways),
          .evaluation = data::largest_eval_batch_per_device(evaluation_rows(s, dataset.eval), eval_options(s), ways),
          .asked = asked_prompts(s, config, dataset, tokenizer)};
}

}  // namespace mw::train
