// SPDX-License-Identifier: Apache-2.0
// What a server or a rollout gives: KV tokens that fit, time to the first and between tokens, rates. A server's are
// those of ServeStepModel, which the simulator plays. Any thread.
#pragma once
#include "core/plan/request/local_model.h"
#include "core/plan/request/plan_result.h"

namespace mw::plan {

struct ServePrediction {
  ServeNumbers numbers;
  StepTime step;  // of one decode step (serve), of the whole (rollout)
};
ServePrediction serve(const LocalModel& model, const DeviceMemory& memory);
ServePrediction rollout(const LocalModel& model);

}  // namespace mw::plan
