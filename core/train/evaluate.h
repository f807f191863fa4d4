// SPDX-License-Identifier: Apache-2.0
// Evaluation on held-out rows: loss, and answers compared with the expected ones.
#pragma once
#include <functional>
#include <span>
#include <stop_token>

#include "core/base/event.h"
#include "core/data/dataset/batches.h"
#include "core/train/model.h"

namespace mw::train {

engine::TokenBatch token_batch(const data::Batch& batch);  // views into `batch`

// At most eval_rows held-out rows.
data::ExampleList evaluation_rows(const Settings& settings, const data::ExampleList& held_out);

// Mean -log p over the loss tokens of the examples; empty if there are none.
std::optional<double> held_out_loss(LoadedModel& model, const data::ExampleList& examples,
                                    const data::BatchOptions& options, const engine::StepOptions& step,
                                    std::stop_token stop);

// The first `limit` examples with a prompt.
std::vector<data::Example> with_prompts(const data::ExampleList& examples, long limit,
                                        const data::Tokenizer& tokenizer);
// Maximum number of tokens of an answer: the length of the expected answer plus a margin, to show how a wrong answer
// continues.
int answer_limit(const data::Example& example, const data::Tokenizer& tokenizer, const options::SampleOptions& options);

// Number of answered prompts, and of answers that equal the expected one after trimming.
struct Score {
  long asked = 0, right = 0;
  double share() const { return asked > 0 ? static_cast<double>(right) / static_cast<double>(asked) : 0; }
};
// Answers the first `limit` of the examples, which have prompts.
Score answer_prompts(LoadedModel& model, std::span<const data::Example> examples, long limit,
                     const data::ChatTemplate& chat, const options::SampleOptions& options, std::stop_token stop,
                     const std::function<void(const event::Sample&, long done, long total)>& on_answer);

}  // namespace mw::train
