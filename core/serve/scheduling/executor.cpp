// SPDX-License-Identifier: Apache-2.0
#include "core/serve/scheduling/executor.h"

#include <algorithm>

namespace mw::serve {
double causal_pairs(double first, double count, double window) {
  const double growing = window > 0 ? std::clamp(window - first, 0.0, count) : count;
  return growing * first + growing * (growing + 1) / 2 + (count - growing) * window;
}

plan::StepLoad step_load(const Step& step, int window) {
  plan::StepLoad load;
  for (const StepItem& item : step.items) {
    if (item.count == 1 && item.samples && item.first > 0) {
      ++load.decoding;
      load.read_tokens += item.first;
      if (window > 0) load.read_window_tokens += std::min(item.first, window);
      continue;
    }
    ++load.prefilling;
    load.prefill_tokens += item.count;
    load.prefill_pairs += causal_pairs(item.first, item.count, 0);
    if (window > 0) load.prefill_window_pairs += causal_pairs(item.first, item.count, window);
  }
  return load;
}

std::vector<SampledToken> zero_tokens(const Step& step) {
  std::vector<SampledToken> sampled;
  sampled.reserve(step.items.size());
  for (const StepItem& item : step.items)
    if (item.samples) sampled.push_back({.id = item.id});
  return sampled;
}

StepResult CostModelExecutor::run(const Step& step, const Scheduler&) {
  return {model_.seconds(step_load(step, model_.window())), zero_tokens(step)};
}

}  // namespace mw::serve
