// SPDX-License-Identifier: Apache-2.0
// Settings of the trainer and the sampler, and their values from the configuration of an experiment. Thread-safe.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "core/base/enum_names.h"
#include "core/base/json.h"
#include "core/base/units.h"
#include "core/data/dataset/batches.h"
#include "core/data/dataset/dataset.h"
#include "core/engine/layout/model_shape.h"
#include "core/engine/runtime/arithmetic.h"
#include "core/experiment/bound_experiment.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/mesh/layout/placement.h"
#include "core/model/inventory.h"
#include "core/options/adapters.h"
#include "core/options/model.h"
#include "core/options/sampling.h"
#include "core/options/training.h"

namespace mw::engine {
struct StepOptions;
}

namespace mw::train {

// The number of parameters that a run trains, and the size of the file that it saves.
struct Trainable {
  std::int64_t params = 0, of = 0;  // trained parameters; parameters of the base model
  Bytes file{};                     // adapter_model.safetensors in f32, or model.safetensors of full training
  double share() const { return of > 0 ? static_cast<double>(params) / static_cast<double>(of) : 0; }
  bool operator==(const Trainable&) const = default;
};
// Counts LoRA with these adapters, to the byte of the checkpoint, with names and layout of PEFT.
Trainable trainable_adapters(const model::TensorInventory& inventory, std::span<const mesh::AdapterShape> adapters);
// Counts full training that saves its weights in this type.
Trainable trainable_weights(const model::TensorInventory& inventory, formats::TensorDType saved);

std::string to_text(const Trainable& trainable);  // "3.19M parameters, 0.122 %"
Json to_json(const Trainable& trainable);         // {params, share, bytes}
// Reads to_json() from the "trainable" of a Started event; empty if the info has none.
std::optional<Trainable> trainable_of(const Json& started_info);

struct ModelSettings {
  std::filesystem::path path, tokenizer;  // Hugging Face folder; tokenizer: path, or empty if it is in this folder
  options::Init init = options::Init::load;
  model::WeightType weights = model::WeightType::f32;
  engine::NetworkUse use = engine::NetworkUse::training;
  Bytes capacity;                                  // of each device; 0: the machine's memory
  int threads = 0;                                 // 0: all cores
  std::optional<engine::Arithmetic> arithmetic{};  // of products; none: the processor's best
  std::uint64_t seed = 1;
  int context = 0;              // longest input in tokens; checked against the model's positions
  mesh::Mesh mesh{};            // of virtual devices; one device if it has no axes above 1
  mesh::ShardingRules rules{};  // sharding of tensors over the mesh
};

// The rate in step 1..steps: peak * step / warmup during warmup, then the schedule down to peak * final_ratio in the
// last step.
double learning_rate(const options::LearningRateSchedule& rate, long step);

// The limits of a run; 0: no limit. A run ends before the step that would exceed one, and can be resumed.
struct RunBudget {
  double seconds = 0;       // of the whole run, resumed parts together
  std::int64_t tokens = 0;  // without padding
  bool is_set() const { return seconds > 0 || tokens > 0; }
  // 0 to 1; 1 without a limit.
  double share_left(double seconds_used, std::int64_t tokens_used) const;
};

struct Settings : options::Training {
  ModelSettings model;
  options::Lora lora;
  data::DatasetOptions data;
  data::Packing packing = data::Packing::none;
  options::SampleOptions sample;
  RunBudget budget;
};

engine::StepOptions step_options(const Settings& settings);  // of any step: without its number and gradient scale
data::BatchOptions batch_options(const Settings& settings);
// If settings.epochs is above 0: sets rate.steps for these examples, and epochs to 0.
void set_steps_from_epochs(Settings& settings, const data::ExampleList& train);
data::BatchOptions eval_options(const Settings& settings);  // for held-out rows: unpacked, in order

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
