// SPDX-License-Identifier: Apache-2.0
#include "core/compare/recorded_steps.h"

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "core/experiment/bind.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/plan/document/engine_server.h"
#include "core/serve/load/simulated_backend.h"

namespace mw::compare {
namespace {

bool same_engine(const experiment::ExperimentConfig& recorded, const experiment::ExperimentConfig& server) {
  const auto parts = [](const experiment::ExperimentConfig& config) {
    return std::tuple(config.model.id, config.model.path, config.target.id, config.target.threads, config.train.dtype,
                      config.serve.adapters, config.lora.adapter);
  };
  return server.target.id == "cpu" && parts(recorded) == parts(server);
}

}  // namespace

std::optional<RecordedSteps> RecordedSteps::of(const Recording& recording, const experiment::Experiment& server) {
  std::vector<serve::TimedStep> steps;
  for (const formats::BenchPoint& point : recording.set.points) {
    const auto more = serve::timed_steps(point.steps);
    steps.insert(steps.end(), more.begin(), more.end());
  }
  const experiment::ExperimentConfig serving = server.config();
  if (steps.size() < 2 * serve::MeasuredStepModel::kTerms || !same_engine(recording.server.valid_values(), serving))
    return std::nullopt;
  const model::Config config = formats::read_config(serving.model.path);
  RecordedSteps out(steps, config, plan::engine_server(serving, config));
  for (const serve::TimedStep& s : steps) out.seconds_ += s.count * s.seconds, out.steps_ += s.count;
  return out;
}

RecordedSteps::RecordedSteps(std::vector<serve::TimedStep> steps, model::Config config,
                             serve::SchedulerSettings settings)
    : steps_of_all_(std::move(steps)),
      model_(serve::MeasuredStepModel(steps_of_all_).scaled_to(steps_of_all_)),
      settings_(std::move(settings)),
      made_(std::make_unique<serve::ReplayExecutor>(serve::ReplayStepModel(model_, {}), std::move(config))),
      executor_(made_.get()) {}

jobs::BackendParts RecordedSteps::parts() {
  jobs::BackendParts parts;
  parts.backend = serve::make_simulated_backend(std::move(made_), settings_);
  parts.conditions["kv_dtype"] = "f32";  // the engine's type, regardless of the document
  parts.conditions["max_model_len"] = std::to_string(settings_.max_model_len);
  parts.conditions["calibration"] =
      "the recording's own " + std::to_string(std::lround(steps_)) + " steps in " + number_text(seconds_, 3) + " s";
  parts.notes.push_back(
      "all values are predicted from recorded steps; each load uses its own steps first, in their order; model of all "
      "steps: " +
      model_.describe());
  return parts;
}

void RecordedSteps::take_speed_of(const formats::BenchPoint& point, const serve::Load& load) {
  executor_->use(serve::ReplayStepModel::fit_load(serve::timed_steps(point.steps), steps_of_all_), load);
}

}  // namespace mw::compare
