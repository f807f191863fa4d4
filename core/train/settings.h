// SPDX-License-Identifier: Apache-2.0
// Settings of a training run. Plain values.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/base/enum_names.h"
#include "core/data/dataset/batches.h"
#include "core/data/dataset/dataset.h"
#include "core/engine/layout/model_shape.h"
#include "core/engine/runtime/arithmetic.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/mesh/layout/placement.h"
#include "core/options/adapters.h"
#include "core/options/model.h"
#include "core/options/sampling.h"
#include "core/options/training.h"

namespace mw::engine {
struct StepOptions;
}

namespace mw::train {

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

// What a run may take at most; 0: no limit. A run ends before the step that would exceed it, and can be resumed.
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

}  // namespace mw::train
