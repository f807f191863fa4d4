// SPDX-License-Identifier: Apache-2.0
// Converts the configuration of an experiment to the settings of the trainer and the sampler. Thread-safe.
#pragma once
#include "core/experiment/bound_experiment.h"
#include "core/train/settings.h"
#include "core/train/trainable.h"

namespace mw::train {

// Throws Error for a target or mesh that the engine does not support.
void check_target(const experiment::BoundExperiment& config);

// Returns the settings of a training run. Throws MISSING if model.path or data.path is not set, and Error for a model,
// target or mesh that the engine does not support.
Settings train_settings(const experiment::BoundExperiment& config);
// Like train_settings(), but does not require the model and data files. For predictions.
Settings plan_settings(const experiment::BoundExperiment& config, model::Family family);
// Throws PLAN-OPTION for settings of train.* that only plans for other software read.
void check_planned_only(const options::Training& train);
// Returns only the settings for reading and batching data (data, packing, batch, seed), for any target.
Settings data_only_settings(const experiment::BoundExperiment& config, model::Family family);

// Returns the settings of the model; throws MISSING without model.path.
ModelSettings model_settings(const experiment::BoundExperiment& config);
// Returns the settings of the model without requiring model.path.
ModelSettings model_values(const experiment::BoundExperiment& config);
// Throws CHECKPOINT if weights are to be loaded and a weight file of the folder is missing.
void require_weights(const ModelSettings& model);

formats::TensorDType save_dtype(const options::Training& train);  // of the model file after full training
// Returns data.chat; auto selects the format of the model family.
options::ChatFormat chat_format(const options::Data& data, model::Family family);
// Returns the template that a server of the model uses: that of its folder, or the format of its family.
data::ChatTemplate served_template(const options::Model& model, model::Family family);
// Returns the template that rows and prompts are rendered with: data.chat; auto selects served_template().
data::ChatTemplate chat_template(const experiment::BoundExperiment& config, model::Family family);

// Returns the shapes of all adapters that the options create.
std::vector<mesh::AdapterShape> adapter_shapes(const model::Config& config, const options::Lora& options);

// Returns what a run with these settings trains on this machine.
Trainable trainable(const Settings& settings, const model::Config& config);

// Returns the placement of every tensor of the run; throws the first error of the placement.
mesh::Placement training_placement(const Settings& settings, const model::Config& config);

}  // namespace mw::train
