// SPDX-License-Identifier: Apache-2.0
// Predicts the memory that a server reserves on this machine, from the engine's formulas. Thread-safe.
#pragma once
#include "core/planning/predict.h"
#include "core/serve/scheduling/engine_kv_layout.h"

namespace mw::planning {

// Returns the scheduler settings with the limits of load_served(), without a KV layout.
serve::SchedulerSettings server_settings(const experiment::Experiment& experiment, const model::Config& config);
Bytes asked_kv(const experiment::Experiment& experiment);  // 0: as much as the requests need, limited by free memory
serve::OutOfWindowKv window_kv(const experiment::Experiment& experiment);

struct EngineServer {
  serve::SchedulerSettings settings;  // with the engine's KV layout
  Prediction memory;                  // exact, without adapters
};
// For one device. Throws SERVE if not even one request of max_model_len tokens fits.
EngineServer engine_server(const experiment::Experiment& experiment, const model::Config& config);

}  // namespace mw::planning
