// SPDX-License-Identifier: Apache-2.0
// The phases of a training run on one device. Inside this room only. Any thread.
#pragma once
#include <span>
#include <vector>

#include "core/plan/memory/buffer_timeline.h"

namespace mw::plan {

inline constexpr std::int64_t kMostTokens = 1 << 30;  // keeps every product of sizes inside 63 bits

void check(const TrainShape& shape);  // throws Error PLAN-SIZE

std::vector<engine::LoraShape> lora_shapes(const model::TensorInventory& inventory,
                                           std::span<const mesh::AdapterShape> adapters);
engine::ModelShape model_shape(const model::Config& whole, const TrainShape& shape,
                               const mesh::LocalConfig* local = nullptr);
// The peak of a run over its steps, evaluation and sampling. `lasting`: held during the whole run.
MemoryPlan predict_run(const engine::ModelShape& model, const TrainShape& shape,
                       std::span<const engine::Allocation> lasting);

}  // namespace mw::plan
