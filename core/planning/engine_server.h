// SPDX-License-Identifier: Apache-2.0
// Predicts the memory that a server reserves on this machine, from the engine's formulas. Thread-safe.
#pragma once
#include "core/experiment/config.h"
#include "core/planning/predict.h"
#include "core/serve/scheduling/engine_kv_layout.h"

namespace mw::planning {

// Returns the scheduler settings with the limits of load_served(), without a KV layout.
serve::SchedulerSettings server_settings(const options::Serving& serve, const model::Config& model);
Bytes requested_kv(const options::Serving& serve);  // 0: as much as the requests need, limited by free memory
serve::OutOfWindowKv window_kv(const options::Serving& serve);

struct EngineServer {
  serve::SchedulerSettings settings;  // with the engine's KV layout
  Prediction memory;                  // exact, without adapters
};
// For one device. Throws SERVE if not even one request of max_model_len tokens fits.
EngineServer engine_server(const experiment::ExperimentConfig& experiment, const model::Config& config);

}  // namespace mw::planning
