// SPDX-License-Identifier: Apache-2.0
// Mean figures of a server under a closed loop, computed without simulation. Calibration fits
// efficiencies with it; the simulator in core/serve models queues and requests that run in lockstep. Any thread.
#pragma once
#include "core/plan/time/serve_step.h"

namespace mw::plan {

struct SteadyLoad {
  int concurrency = 1, input_len = 1024, output_len = 512;  // lengths: means
  bool is_staggered = false;  // lengths differ, so that requests end, and the prompts of the next come, one by one
};
struct SteadyState {
  double running = 0;  // requests that run at once: limited by max_num_seqs and the KV cache
  double ttft_s = 0, tpot_s = 0, output_tokens_per_s = 0;
  double itl_s = 0;  // of most tokens: a step without prompts, unless most steps have prompts
};
SteadyState steady_state(const ServeStepModel& model, const ServeWork& server, const SteadyLoad& load);

}  // namespace mw::plan
