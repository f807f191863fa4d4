// SPDX-License-Identifier: Apache-2.0
// Sweeps in virtual time: the scheduler that serves on this machine, with steps that only take their predicted time.
// The server lives as long as the backend, and its prefix cache with it; salted prompts, which cannot hit what others
// left, find it empty. One thread.
#pragma once
#include <memory>

#include "core/plan/request/request.h"
#include "core/serve/load/sweep.h"
#include "core/serve/scheduling/executor.h"

namespace mw::serve {

// What stands between a request's sending and its first step beside the steps themselves.
struct HostOverheads {
  double request_s = 0;  // from sending until the scheduler knows it
  // Ahead: it then misses the step after the one that runs.
  plan::Scheduling scheduling = plan::Scheduling::between_steps;
};

// On the target of the request. Where settings.kv has no group, the cache is laid out as plan::ServeStepModel says, in
// blocks of settings.kv.block_size. Throws as ServeStepModel and Scheduler do.
std::unique_ptr<LoadBackend> make_cost_model_backend(const plan::Request& request, SchedulerSettings settings);
// With any executor whose seconds can be believed.
std::unique_ptr<LoadBackend> make_simulated_backend(std::unique_ptr<Executor> executor, SchedulerSettings settings,
                                                    HostOverheads host = {});

}  // namespace mw::serve
