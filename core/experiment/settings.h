// SPDX-License-Identifier: Apache-2.0
// From the document to the plain values that the trainer and the sampler take. Any thread.
#pragma once
#include "core/experiment/bind.h"
#include "core/experiment/experiment.h"
#include "core/train/settings.h"

namespace mw::experiment {

// Throws the first error of validate(), then Error for what is missing (model.path, data.path) or not possible here
// (a model, target or mesh this engine does not run).
train::Settings train_settings(const Experiment& experiment);

// The same without asking for files that must exist: for predictions, with the family given.
train::Settings plan_settings(const Experiment& experiment, model::Family family);

// Parts of them, for what needs no more: the first error of validate(), or a target or mesh this engine does not run;
// the model's settings (path may be empty); LoRA's.
void check_valid(const Experiment& experiment);
train::ModelSettings model_values(const Experiment& experiment);
// Throws Error where weights are to be loaded from a folder that has none, or not all files of its index.
void require_weights(const train::ModelSettings& model);
engine::LoraOptions lora_options(const Experiment& experiment);

// How data is read and batched, and nothing else of the settings, on any target: data, packing, batch, seed. Throws the
// first error of validate() that is about these.
train::Settings data_only_settings(const Experiment& experiment, model::Family family);

// Model and sampling only: for generate, where data and training keys may be absent.
train::ModelSettings model_settings(const Experiment& experiment);
engine::SampleOptions sample_options(const Experiment& experiment);
// data.chat, where auto follows the family of the model's config.
data::ChatFormat chat_format(const Experiment& experiment, model::Family family);

// What the options adapt of a model.
std::vector<mesh::AdapterShape> adapter_shapes(const model::Config& config, const engine::LoraOptions& options);

// Where every tensor of the run lies; throws the first problem that keeps that from being.
mesh::Placement training_placement(const train::Settings& settings, const model::Config& config);

}  // namespace mw::experiment
