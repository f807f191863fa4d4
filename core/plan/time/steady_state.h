// SPDX-License-Identifier: Apache-2.0
// A server that always has the same number of equal requests, in the mean and without playing them: what efficiencies
// are fitted to. Queues and groups of requests in step are for the simulator (serve/model_backend.h). Any thread.
#pragma once
#include "core/plan/time/serve_step.h"

namespace mw::plan {

struct SteadyLoad {
  int concurrency = 1, input_len = 1024, output_len = 512;
};
struct SteadyState {
  double running = 0;  // of the concurrency: what sequences and KV cache allow
  double ttft_s = 0, tpot_s = 0, output_tokens_per_s = 0;
  double itl_s = 0;  // of most tokens: a step without prompts, unless most have some
};
SteadyState steady_state(const ServeStepModel& model, const ServeWork& server, const SteadyLoad& load);

}  // namespace mw::plan
