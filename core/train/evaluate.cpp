// SPDX-License-Identifier: Apache-2.0
#include "core/train/evaluate.h"

#include <algorithm>

#include "core/base/error.h"

namespace mw::train {

engine::TokenBatch view(const data::Batch& b) {
  return {.rows = b.rows,
          .len = b.len,
          .ids = b.ids,
          .targets = b.targets,
          .positions = b.positions,
          .segments = b.segments};
}

std::optional<double> held_out_loss(LoadedModel& model, std::span<const data::Example> examples,
                                    const data::BatchOptions& options, const engine::StepOptions& step,
                                    std::stop_token stop) {
  engine::LossSum total;
  for (const data::Batch& batch : data::eval_batches(examples, options, model.tokenizer->pad())) {
    if (stop.stop_requested()) return std::nullopt;
    try {
      const engine::LossSum one = model.cluster->evaluate(view(batch), step, stop);
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

Score answer_prompts(LoadedModel& model, std::span<const data::Example> examples, long limit, data::ChatFormat chat,
                     const engine::SampleOptions& options, std::stop_token stop,
                     const std::function<void(const event::Sample&, long, long)>& on_answer) {
  const long total = std::min<long>(
      limit, std::count_if(examples.begin(), examples.end(), [](const auto& e) { return !e.prompt.empty(); }));
  Score score;
  for (const data::Example& example : examples) {
    if (score.asked >= total || stop.stop_requested()) break;
    if (example.prompt.empty()) continue;
    engine::SampleOptions sampling = options;
    // A right answer is no longer than the expected one; the margin shows how a wrong one goes on.
    const auto expected_tokens = static_cast<int>(model.tokenizer->encode(example.answer).size());
    sampling.max_new_tokens = std::min(options.max_new_tokens, expected_tokens + 16);
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

}  // namespace mw::train
