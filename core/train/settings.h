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
#include "core/engine/generate/sampler.h"
#include "core/engine/transformer/network.h"
#include "core/engine/transformer/optimizer.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/mesh/layout/placement.h"

namespace mw::train {

enum class Init { load, random };
enum class Schedule { cosine, linear, constant };
// The evaluation that decides which checkpoint is kept beside the newest ones.
enum class KeepBest { none, eval_loss, answers };

struct ModelSettings {
  std::filesystem::path path, tokenizer;  // Hugging Face folder; tokenizer: path, or empty if it is in this folder
  Init init = Init::load;
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

struct LearningRateSchedule {
  Schedule schedule = Schedule::cosine;
  double peak = 2e-4, final_ratio = 0;
  long warmup = 0, steps = 1;
};
// The rate in step 1..steps: peak * step / warmup during warmup, then the schedule down to peak * final_ratio in the
// last step.
double learning_rate(const LearningRateSchedule& rate, long step);

// What a run may take at most; 0: no limit. A run ends before the step that would exceed it, and can be resumed.
struct Budget {
  double seconds = 0;       // of the whole run, resumed parts together
  std::int64_t tokens = 0;  // without padding
  bool is_set() const { return seconds > 0 || tokens > 0; }
  // 0 to 1; 1 without a limit.
  double share_left(double seconds_used, std::int64_t tokens_used) const;
};

// The settings that the train section of an experiment contains.
struct TrainingOptions {
  model::TrainMethod method = model::TrainMethod::lora;
  int batch = 8, accumulation = 1;
  LearningRateSchedule rate;
  double epochs = 0;  // if above 0, set_steps_from_epochs() computes rate.steps from the data
  engine::AdamWOptions adamw;
  double clip = 1;
  model::Remat remat = model::Remat::none;
  int loss_chunk = 256;
  std::uint64_t seed = 1;
  long eval_every = 50, eval_rows = 64;
  long sample_every = 50, sample_prompts = 3, answers = 0;
  long checkpoint_every = 100, keep_checkpoints = 2;
  KeepBest keep_best = KeepBest::none;
  long patience = 0;  // evaluations without a better one after which the run ends; 0: never
  bool decides_by_evaluation() const { return keep_best != KeepBest::none || patience > 0; }
};

struct Settings : TrainingOptions {
  ModelSettings model;
  engine::LoraOptions lora;
  std::filesystem::path adapter;  // PEFT folder of the initial adapter, or empty
  data::DatasetOptions data;
  data::Packing packing = data::Packing::none;
  formats::DType save_dtype = formats::DType::bf16;  // of the model file after full training
  engine::SampleOptions sample;
  Budget budget;
};

data::BatchOptions batch_options(const Settings& settings);
// If settings.epochs is above 0: sets rate.steps for these examples, and epochs to 0.
void set_steps_from_epochs(Settings& settings, const data::ExampleList& train);
data::BatchOptions eval_options(const Settings& settings);  // for held-out rows: unpacked, in order

}  // namespace mw::train

template <>
inline constexpr mw::EnumNames<2> mw::kEnumNames<mw::train::Init>{"load", "random"};

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::train::Schedule>{"cosine", "linear", "constant"};

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::train::KeepBest>{"none", "eval_loss", "answers"};
