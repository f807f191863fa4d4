// SPDX-License-Identifier: GPL-3.0-or-later
// A simulated server whose step times are linear in a few quantities.
#pragma once
#include <functional>
#include <memory>

#include "core/serve/load/load_statistics.h"
#include "core/serve/load/simulated_backend.h"
#include "core/serve/scheduling/executor.h"

namespace mw::serve {

struct LinearCost {  // seconds
  double base = 0, per_sequence = 0, per_read_token = 0, per_prompt_token = 0;
};

class LinearExecutor : public Executor {
 public:
  explicit LinearExecutor(LinearCost cost) : cost_(cost) {}
  StepResult run(const Step& step, const Scheduler&) override {
    const plan::StepLoad l = step_load(step, 0);
    return {cost_.base + cost_.per_sequence * l.decoding + cost_.per_read_token * l.read_tokens +
                cost_.per_prompt_token * static_cast<double>(l.prefill_tokens),
            zero_tokens(step)};
  }

 private:
  LinearCost cost_;
};

inline SchedulerSettings roomy(int sequences, int budget, int blocks = 1000000) {
  return {.max_num_seqs = sequences,
          .max_num_batched_tokens = budget,
          .max_model_len = 100000,
          .kv = {.block_size = 16, .groups = {{.block_bytes = Bytes(1)}}, .capacity = Bytes(blocks)}};
}

inline std::unique_ptr<LoadBackend> linear_server(LinearCost cost, SchedulerSettings settings) {
  return make_simulated_backend(std::make_unique<LinearExecutor>(cost), std::move(settings));
}

inline formats::BenchPoint run_load(LoadBackend& backend, const options::LoadSettings& settings,
                                    const options::Slo& slo = {}) {
  const Load load = make_load(settings);
  return summarise(load, backend.run(load, {}, {}), slo);
}

}  // namespace mw::serve
