// SPDX-License-Identifier: Apache-2.0
// The steps of a server and a rollout for which figures are predicted, shared by predict() and PlanPredictor. Any
// thread.
#pragma once
#include "core/plan/time/steady_state.h"

namespace mw::plan {

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
