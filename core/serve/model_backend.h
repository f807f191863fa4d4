// SPDX-License-Identifier: Apache-2.0
// Sweeps in virtual time: the scheduler that serves on this machine, with steps that only take their predicted time.
// The server lives as long as the backend, and its prefix cache with it; salted prompts, which cannot hit what others
// left, find it empty. One thread.
#pragma once
#include <memory>

#include "core/plan/request.h"
#include "core/serve/executor.h"
#include "core/serve/sweep.h"

namespace mw::serve {

// On the target of the request. Where settings.kv has no group, the cache is laid out as plan::ServeStepModel says, in
// blocks of settings.kv.block_size. Throws as ServeStepModel and Scheduler do.
std::unique_ptr<Backend> model_backend(const plan::Request& request, SchedulerSettings settings);
// With any executor whose seconds can be believed.
std::unique_ptr<Backend> virtual_backend(std::unique_ptr<Executor> executor, SchedulerSettings settings);

}  // namespace mw::serve
