// SPDX-License-Identifier: Apache-2.0
// Optimizer, schedule and loop of a training. Plain values.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "core/base/enum_names.h"
#include "core/model/types.h"

namespace mw::options {

enum class Schedule { cosine, linear, constant };
// The evaluation that decides which checkpoint is kept beside the newest ones.
enum class KeepBest { none, eval_loss, answers };
// Activations that a layer under remat keeps in addition to its input, instead of recomputing them.
enum class SavedActivation { attention, q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj };
enum class Offload { none, host };                   // where the activations that remat keeps are stored
enum class AttentionKernel { materialised, fused };  // scores in memory, or in blocks on the chip
enum class Elementwise { eager, fused };             // one kernel and buffer per operation, or fused by a compiler

struct LearningRateSchedule {
  Schedule schedule = Schedule::cosine;
  double peak = 2e-4, final_ratio = 0;
  long warmup = 0, steps = 1;
};

struct AdamWOptions {
  // double as in torch: 1 - 0.999 would lose digits in float
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
};

// Settings of the activations that a step keeps for its backward pass.
struct KeptActivations {
  model::Remat remat = model::Remat::none;
  std::vector<SavedActivation> saved{};  // of a layer under remat
  Offload offload = Offload::none;
  int loss_chunk = 0;  // rows of logits at once on a device; 0: all
};

struct Training : KeptActivations {
  model::TrainMethod method = model::TrainMethod::lora;
  int batch = 8, accumulation = 1;
  LearningRateSchedule rate;
  double epochs = 0;  // if above 0, rate.steps follows from the data
  AdamWOptions adamw;
  double clip = 1;
  double label_smoothing = 0;  // share of the target that is spread over the vocabulary
  std::uint64_t seed = 1;
  long eval_every = 50, eval_rows = 64;
  long sample_every = 50, sample_prompts = 3, answers = 0;
  long checkpoint_every = 100, keep_checkpoints = 2;
  KeepBest keep_best = KeepBest::none;
  long patience = 0;  // evaluations without a better one after which the run ends; 0: never
  model::WeightType dtype{};
  bool sets_dtype = false;                       // whether the document sets train.dtype
  model::DType save_dtype = model::DType::bf16;  // of the model file after full training
  std::filesystem::path tensorboard;
  // For plans only.
  std::optional<model::Stack> stack;
  std::optional<AttentionKernel> attention;
  std::optional<model::DType> adapter_dtype, moment_dtype;
  model::DType products{};
  std::optional<Elementwise> compile;
  double logit_bytes = 0;  // 0: those of the software
  int other_models = 0;
  bool decides_by_evaluation() const { return keep_best != KeepBest::none || patience > 0; }
};

}  // namespace mw::options

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::options::Schedule>{"cosine", "linear", "constant"};

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::options::KeepBest>{"none", "eval_loss", "answers"};

template <>
inline constexpr mw::EnumNames<8> mw::kEnumNames<mw::options::SavedActivation>{
    "attention", "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"};

template <>
inline constexpr mw::EnumNames<2> mw::kEnumNames<mw::options::Offload>{"none", "host"};

template <>
inline constexpr mw::EnumNames<2> mw::kEnumNames<mw::options::AttentionKernel>{"materialised", "fused"};

template <>
inline constexpr mw::EnumNames<2> mw::kEnumNames<mw::options::Elementwise>{"eager", "compiled"};
