// SPDX-License-Identifier: Apache-2.0
// Held-out loss, and answers to held-out prompts compared with what the data says.
#pragma once
#include <functional>
#include <span>
#include <stop_token>

#include "core/base/event.h"
#include "core/data/dataset/batches.h"
#include "core/train/model.h"

namespace mw::train {

engine::TokenBatch view(const data::Batch& batch);

// The held-out rows that are evaluated: at most eval_rows.
std::span<const data::Example> evaluated(const Settings& settings, const data::Dataset& dataset);

// Mean -log p over the loss tokens of the examples; nothing when they carry none.
std::optional<double> held_out_loss(LoadedModel& model, std::span<const data::Example> examples,
                                    const data::BatchOptions& options, const engine::StepOptions& step,
                                    std::stop_token stop);

// The first `limit` examples that have a prompt.
std::vector<const data::Example*> with_prompts(std::span<const data::Example> examples, long limit);
// Tokens of an answer at most: a right one is no longer than the expected one; the margin shows how a wrong one goes
// on.
int answer_limit(const data::Example& example, const data::Tokenizer& tokenizer, const engine::SampleOptions& options);

// Greedy or sampled answers of examples that have a prompt; `right` counts exact matches after trimming.
struct Score {
  long asked = 0, right = 0;
};
Score answer_prompts(LoadedModel& model, std::span<const data::Example> examples, long limit, data::ChatFormat chat,
                     const engine::SampleOptions& options, std::stop_token stop,
                     const std::function<void(const event::Sample&, long done, long total)>& on_answer);

}  // namespace mw::train
