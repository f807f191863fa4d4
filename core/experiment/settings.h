// SPDX-License-Identifier: Apache-2.0
// Converts the configuration of an experiment to the settings of the trainer and the sampler. Thread-safe.
#pragma once
#include "core/experiment/bind.h"
#include "core/train/settings.h"
#include "core/train/trainable.h"

namespace mw::experiment {

// Throws Error for a target or mesh that the engine does not support.
void check_target(const ExperimentConfig& config);

// Returns the settings of a training run. Throws MISSING if model.path or data.path is not set, and Error for a model,
// target or mesh that the engine does not support.
train::Settings train_settings(const ExperimentConfig& config);
// Like train_settings(), but does not require the model and data files. For predictions.
train::Settings plan_settings(const ExperimentConfig& config, model::Family family);
// Throws PLAN-OPTION for settings of train.* that only plans for other software read.
void check_planned_only(const TrainSection& train);
// Returns only the settings for reading and batching data (data, packing, batch, seed), for any target.
train::Settings data_only_settings(const ExperimentConfig& config, model::Family family);

// Returns the settings of the model; throws MISSING without model.path.
train::ModelSettings model_settings(const ExperimentConfig& config);
// Returns the settings of the model without requiring model.path.
train::ModelSettings model_values(const ExperimentConfig& config);
// Throws CHECKPOINT if weights are to be loaded and a weight file of the folder is missing.
void require_weights(const train::ModelSettings& model);

formats::DType save_dtype(const TrainSection& train);  // of the model file after full training
engine::LoraOptions lora_options(const LoraSection& lora);
// Returns the projections of lora.targets, in the order of a layer.
std::vector<model::Role> lora_targets(const LoraSection& lora);
// Returns data.chat; auto selects the format of the model family.
data::ChatFormat chat_format(const DataSection& data, model::Family family);
// Returns the template that a server of the model uses: that of its folder, or the format of its family.
data::ChatTemplate served_template(const ModelSection& model, model::Family family);
// Returns the template that rows and prompts are rendered with: data.chat; auto selects served_template().
data::ChatTemplate chat_template(const ExperimentConfig& config, model::Family family);

// Returns the shapes of all adapters that the options create.
std::vector<mesh::AdapterShape> adapter_shapes(const model::Config& config, const engine::LoraOptions& options);

// Returns what a run with these settings trains on this machine.
train::Trainable trainable(const train::Settings& settings, const model::Config& config);

// Returns the placement of every tensor of the run; throws the first error of the placement.
mesh::Placement training_placement(const train::Settings& settings, const model::Config& config);

}  // namespace mw::experiment
