// SPDX-License-Identifier: Apache-2.0
// What a run works in: training steps, evaluation and sampling take turns in one step memory, which is kept while the
// next of them fits into it and made anew where it does not (Core::prepare). Logits, workspace and tables only grow.
#include <algorithm>

#include "core/plan/memory/step_buffers.h"

namespace mw::plan {

MemoryPlan run_memory(StepPlan p, const Ledger& kept, Bytes sampled_logits) {
  const TrainShape::Forward evaluation = p.shape.evaluation;
  const std::int64_t prompt = p.shape.prompt_tokens;
  const bool trains = p.shape.loss_tokens > 0, evaluates = evaluation.loss_tokens > 0,
             samples = p.shape.generate_tokens > 0;
  p.shape.loss_tokens = std::max(p.shape.loss_tokens, evaluation.loss_tokens);
  p.shape.longest = std::max({p.shape.longest, evaluation.longest, samples ? p.shape.prompt_tokens : 0});

  Ledger working = kept;  // but for activations
  if (trains || evaluates || samples) {
    working[MemoryCategory::workspace] = workspace(p) + loss_workspace(p);
    working[MemoryCategory::logits] = logits(p);
  }
  const std::int64_t room = trains ? p.shape.tokens : 0;
  const Bytes of_step = trains ? activations(p) : Bytes(0);
  p.lowest = p.config.layers.size();  // from here on nothing has a backward
  const auto forward = [&](std::int64_t tokens) {
    p.shape.tokens = tokens;
    return forward_activations(p);
  };
  // An evaluation that does not fit into the step's memory replaces it, and is replaced by the next step's.
  const bool replaces = evaluates && evaluation.tokens > room;
  const Bytes of_evaluation = replaces ? forward(evaluation.tokens) : Bytes(0);

  MemoryPlan plan{.at_peak = kept, .category_peaks = kept, .peak_instant = "weights and what is learned"};
  const auto instant = [&](Ledger ledger, Bytes activations_there, const char* name) {
    ledger[MemoryCategory::activations] = activations_there;
    for (size_t c = 0; c < kMemoryCategories; ++c)
      plan.category_peaks.bytes[c] = std::max(plan.category_peaks.bytes[c], ledger.bytes[c]);
    if (ledger.total() > plan.at_peak.total()) plan.at_peak = ledger, plan.peak_instant = name;
  };
  if (trains) instant(working, of_step, "logits of a training step");
  if (replaces) instant(working, of_evaluation, "evaluation of held-out rows");
  if (!samples) return plan;
  // The cache comes while there is what was there last, a step's memory or an evaluation's, where the prompt fits.
  Bytes there = prompt > room ? forward(prompt) : of_step;
  if (replaces && prompt <= evaluation.tokens) there = std::max(there, of_evaluation);
  working[MemoryCategory::kv_cache] = kv_cache(p);
  working[MemoryCategory::logits] += sampled_logits;
  instant(working, there, "start of sampling");
  return plan;
}

}  // namespace mw::plan
