// SPDX-License-Identifier: Apache-2.0
// Mean figures of a server under a closed loop, computed without simulation. Calibration fits
// efficiencies with it; the simulator in core/serve models queues and requests that run in lockstep. Any thread.
#pragma once
#include "core/plan/prediction/serve_step.h"

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

struct RolloutShape {
  double rows = 0;
  double cache = 0;    // tokens of cache per row
  double context = 0;  // tokens that a decode step reads per row, on average
};
RolloutShape rollout_shape(const Request& request);

// A server under ServeWork::max_num_seqs requests of its lengths.
struct LoadedServer {
  SteadyState steady;
  StepLoad decoding;  // a step of the running requests in the middle of their answers
};
LoadedServer loaded_server(const ServeStepModel& model, const ServeWork& work);

// Tokens of the longest request whose keys and values `cache` bytes hold on each device, at most max_model_len; window
// caches stop growing.
std::int64_t longest_request(const LocalModel& model, double cache);

}  // namespace mw::plan
