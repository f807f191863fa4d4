// SPDX-License-Identifier: Apache-2.0
// From the document to a model that serves: weights, adapters by name and the engine behind the scheduler. One thread
// makes it.
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
  std::string name;                   // that clients know the model by
  std::vector<NamedAdapter> adapters{};
  int queue = 0;
};
struct Serving {
  train::LoadedModel model;
  serve::SchedulerSettings settings;
  std::unique_ptr<serve::EngineExecutor> executor;  // works with the model: dies before it
  std::string name;
  std::vector<std::string> adapters{};
  int queue = 0;
};
// The experiment's model on one device of this machine, at most max_model_len or the model's own positions where that
// was not asked for. Throws Error for a document that names none, bad adapters, memory that is too small.
ServedModel load_served(const experiment::Experiment& experiment, const train::Progress& progress = {});
// And the executor with its adapters.
Serving load_serving(const experiment::Experiment& experiment, const train::Progress& progress = {});

}  // namespace mw::jobs
