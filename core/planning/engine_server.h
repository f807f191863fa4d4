// SPDX-License-Identifier: Apache-2.0
// What a server of the document reserves on this machine, from the engine's own formulas, before it starts. Any thread.
#pragma once
#include "core/planning/predict.h"
#include "core/serve/scheduling/engine_kv_layout.h"

namespace mw::planning {

// As load_served() limits them, without a KV layout.
serve::SchedulerSettings server_settings(const experiment::Experiment& experiment, const model::Config& config);
Bytes asked_kv(const experiment::Experiment& experiment);  // 0: what requests need, of what there is
serve::OutOfWindowKv window_kv(const experiment::Experiment& experiment);

struct EngineServer {
  serve::SchedulerSettings settings;  // with the engine's KV layout
  Prediction memory;                  // to the byte, without adapters
};
// On one device. Throws Error SERVE where not even one request of max_model_len fits.
EngineServer engine_server(const experiment::Experiment& experiment, const model::Config& config);

}  // namespace mw::planning
