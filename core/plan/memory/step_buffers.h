// SPDX-License-Identifier: Apache-2.0
// The buffers of a step of the engine, as core/engine/transformer/step_buffers.cpp lays them out.
// Inside this room only. n: tokens of the step. Any thread.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "core/base/buffer_sizes.h"
#include "core/plan/memory/memory.h"

namespace mw::plan {

inline constexpr std::int64_t kMostTokens = 1 << 30;  // keeps every product below inside 63 bits
inline constexpr int kProjections = 7;

inline std::int64_t aligned(std::int64_t floats) {
  return sizes::aligned_floats(floats);
}
inline Bytes buffer_bytes(std::int64_t elements, std::int64_t size = sizeof(float)) {
  return Bytes(sizes::round_up(elements * size, sizes::kPageBytes));
}

// True for norms and scalars.
inline bool is_vector(const model::Tensor& tensor) {
  return tensor.hf_shape.size() == 1;
}
inline bool packable(const model::Tensor& tensor) {
  return !is_vector(tensor) && sizes::packable(tensor.matrix_rows(), tensor.hf_shape.back());
}

void check(const TrainShape& shape);  // throws Error PLAN-SIZE

// Sizes that the formulas share, for the part of the model on one device.
struct StepPlan {
  model::Config config;  // the device's local configuration on a mesh
  TrainShape shape;
  model::TensorInventory inventory;
  std::vector<std::array<std::int64_t, kProjections>> rank;  // by layer and projection, 0: no adapter
  std::int64_t most_in = 0, most_rank = 0;                   // of any adapter
  std::int64_t adapter_floats = 0, adapter_parameters = 0;
  size_t lowest = 0;             // layers from here on have a backward
  std::int64_t ple_columns = 0;  // of a layer's per-layer gate

  StepPlan(const model::Config& c, const TrainShape& s) : StepPlan(c, model::TensorInventory(c), s) {}
  StepPlan(model::Config config, model::TensorInventory inventory, TrainShape shape);

  std::int64_t q(size_t layer) const;   // width of the queries
  std::int64_t kv(size_t layer) const;  // width of the keys, or of the values
  std::int64_t ple() const;             // of all per-layer inputs
  bool lends(size_t layer) const;       // whether later layers borrow its keys and values
};

Bytes activations(const StepPlan& plan);     // of a training step
Bytes logits(const StepPlan& plan);          // of its loss
Bytes loss_workspace(const StepPlan& plan);  // 0 unless streams_loss()
bool streams_loss(const StepPlan& plan);
Bytes workspace(const StepPlan& plan);
Bytes kv_cache(const StepPlan& plan, std::int64_t rows);  // of sampled rows
// The peak of a run over its steps, evaluation and sampling. `kept`: memory held during the whole run;
// `sampled_logits`: logits of a sampled row in addition to those of the loss.
MemoryPlan run_memory(StepPlan p, const Ledger& kept, Bytes sampled_logits);
Bytes forward_activations(const StepPlan& plan);  // of a forward pass without a backward
}  // namespace mw::plan
