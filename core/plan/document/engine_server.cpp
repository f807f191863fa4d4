// SPDX-License-Identifier: Apache-2.0
#include "core/plan/document/engine_server.h"

#include <algorithm>

#include "core/serve/load/sweep_settings.h"
#include "core/serve/scheduling/engine_kv_layout.h"
#include "core/train/model.h"
#include "core/train/run_settings.h"

namespace mw::plan {

serve::SchedulerSettings server_settings(const options::Serving& serve, const model::Config& model) {
  serve::SchedulerSettings settings = serve::scheduler_settings(serve);
  if (!serve.sets_max_model_len) settings.max_model_len = std::min(settings.max_model_len, model.max_positions);
  return settings;
}

Bytes requested_kv(const options::Serving& serve) {
  return Bytes(static_cast<std::int64_t>(serve.kv_gib * 1073741824.0));
}

serve::OutOfWindowKv window_kv(const options::Serving& serve) {
  return serve.sliding_window_kv ? serve::OutOfWindowKv::freed : serve::OutOfWindowKv::kept;
}

plan::InferenceModel inference_model(const train::ModelSettings& settings) {
  return {.weights = settings.weights, .threads = train::thread_count(settings.threads)};
}

serve::SchedulerSettings engine_server(const experiment::ExperimentConfig& experiment, const model::Config& config) {
  const train::ModelSettings settings = train::model_values(experiment);
  const plan::InferenceModel model = inference_model(settings);
  const Bytes weights = plan::predict_memory(config, model, plan::Serving{}).at_peak[MemoryCategory::weights];
  return serve::lay_out_engine_kv(config, server_settings(experiment.serve, config), requested_kv(experiment.serve),
                                  window_kv(experiment.serve), {model, train::device_capacity(settings) - weights});
}

}  // namespace mw::plan
