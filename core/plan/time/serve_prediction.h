// SPDX-License-Identifier: Apache-2.0
// Predicted figures of a server or a rollout: KV tokens that fit, time to first token, time per output token and rates.
// Servers use ServeStepModel, as the simulator does. Any thread.
#pragma once
#include "core/plan/request/local_model.h"
#include "core/plan/request/plan_result.h"

namespace mw::plan {

struct ServePrediction {
  ServeNumbers numbers;
  StepTime step;  // a decode step (serve), or the whole rollout
};
ServePrediction serve(const LocalModel& model, const DeviceMemory& memory);
ServePrediction rollout(const LocalModel& model);

}  // namespace mw::plan
