// SPDX-License-Identifier: Apache-2.0
// Converts an experiment to the settings of the trainer and the sampler. Thread-safe.
#pragma once
#include "core/experiment/bind.h"
#include "core/experiment/experiment.h"
#include "core/train/settings.h"

namespace mw::experiment {

// Returns the settings of a training run. Throws the first error of validate(), MISSING if model.path or data.path is
// not set, and Error for a model, target or mesh that the engine does not support.
train::Settings train_settings(const Experiment& experiment);

// Like train_settings(), but does not require the model and data files. For predictions.
train::Settings plan_settings(const Experiment& experiment, model::Family family);

// Throws the first error of validate(), or Error for a target or mesh that the engine does not support.
void check_valid(const Experiment& experiment);
// Returns the model settings without requiring model.path.
train::ModelSettings model_values(const Experiment& experiment);
// Throws CHECKPOINT if weights are to be loaded and a weight file of the folder is missing.
void require_weights(const train::ModelSettings& model);
engine::LoraOptions lora_options(const Experiment& experiment);

// Returns only the settings for reading and batching data (data, packing, batch, seed), for any target. Throws the
// first error of validate() on one of these keys.
train::Settings data_only_settings(const Experiment& experiment, model::Family family);

// Returns the model settings; throws MISSING without model.path. Data and training keys may be absent.
train::ModelSettings model_settings(const Experiment& experiment);
engine::SampleOptions sample_options(const Experiment& experiment);
// Returns data.chat; auto selects the format of the model family.
data::ChatFormat chat_format(const Experiment& experiment, model::Family family);

// Returns the shapes of all adapters that the options create.
std::vector<mesh::AdapterShape> adapter_shapes(const model::Config& config, const engine::LoraOptions& options);

// Returns the placement of every tensor of the run; throws the first error of the placement.
mesh::Placement training_placement(const train::Settings& settings, const model::Config& config);

}  // namespace mw::experiment
