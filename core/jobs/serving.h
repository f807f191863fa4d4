// SPDX-License-Identifier: Apache-2.0
// Loads the model of an experiment for serving: weights, named adapters and the executor for the scheduler. Not
// thread-safe.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/experiment/experiment.h"
#include "core/formats/peft/peft_adapter.h"
#include "core/serve/scheduling/engine_executor.h"
#include "core/train/model.h"

namespace mw::jobs {

struct NamedAdapter {
  std::string name;
  formats::Adapter values;
};
struct ServedModel {
  train::LoadedModel model;
  serve::SchedulerSettings settings;  // with the engine's KV layout
  std::string name;                   // model name in the API
  std::vector<NamedAdapter> adapters{};
  int queue = 0;
  std::vector<std::string> warnings{};  // the model or an adapter was trained with another chat template
};
// Loads the model on one device of this machine. If serve.max_model_len is not set, it is limited to the positions of
// the model. Throws Error for a missing model, invalid adapters or too little memory.
ServedModel load_served(const experiment::Experiment& experiment, const train::Progress& progress = {});
// The executor of a served model with its adapters; it uses `served.model`.
std::unique_ptr<serve::EngineExecutor> make_executor(const ServedModel& served);

}  // namespace mw::jobs
