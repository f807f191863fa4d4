// SPDX-License-Identifier: Apache-2.0
// The settings of a server on this machine. Thread-safe.
#pragma once
#include "core/experiment/config.h"
#include "core/plan/memory/memory.h"
#include "core/serve/scheduling/engine_kv_layout.h"
#include "core/train/settings.h"

namespace mw::plan {

// Returns the scheduler settings with the limits of load_served(), without a KV layout.
serve::SchedulerSettings server_settings(const options::Serving& serve, const model::Config& model);
Bytes requested_kv(const options::Serving& serve);  // 0: as much as the requests need, limited by free memory
serve::OutOfWindowKv window_kv(const options::Serving& serve);

// Returns the model of an inference workload without adapters.
plan::InferenceModel inference_model(const train::ModelSettings& settings);
// With the engine's KV layout, for one device. Throws SERVE if not even one request of max_model_len tokens fits.
serve::SchedulerSettings engine_server(const experiment::ExperimentConfig& experiment, const model::Config& config);

}  // namespace mw::plan
