// SPDX-License-Identifier: Apache-2.0
// Predicted memory of the engine on one device by ledger category: core/engine/layout lists the buffers, this room
// follows them through a run. Any thread.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/ledger.h"
#include "core/engine/layout/phases.h"
#include "core/mesh/collectives/reshard_plan.h"
#include "core/plan/request/plan_result.h"
#include "core/plan/request/request.h"

namespace mw::plan {

struct TrainShape {
  model::TrainMethod method = model::TrainMethod::lora;
  model::WeightType weights = model::WeightType::f32;
  std::vector<mesh::AdapterShape> lora{};
  bool dropout = false;
  model::Remat remat = model::Remat::none;
  std::int64_t tokens = 0;       // rows * len of the largest micro-batch, which determines the engine's buffers
  std::int64_t loss_tokens = 0;  // most loss tokens in one micro-batch
  int longest = 0;               // tokens of the longest example
  int loss_chunk = 256;          // rows of logits per chunk, fewer if they exceed 64 MiB; 0: all
  int threads = 1;
  EngineRows evaluation{};  // the largest batch of held-out rows; loss_tokens 0: no evaluation
  int prompt_tokens = 0;    // of the longest sampled prompt
  int generate_tokens = 0;  // longest prompt with its answer; 0: no sampling
};

struct MemoryPlan {
  Ledger at_peak;  // the instant of the largest total
  Ledger category_peaks;
  std::string peak_instant;  // "logits of a training step", "evaluation of held-out rows", "start of sampling"
};

// The peak of a training run. Throws Error PLAN-SIZE if a size in `shape` is out of range.
MemoryPlan predict_train_memory(const model::Config& config, const TrainShape& shape);

// The peak of a training run on a virtual device of a mesh, which stores shards. `config` describes the whole model,
// `shape` the rows of this device with one thread; `plans` are of a placement with the adapters.
MemoryPlan predict_train_memory(const model::Config& config, const TrainShape& shape, const mesh::ReshardPlans& plans,
                                int device);

// A model loaded for inference.
struct InferenceModel {
  model::WeightType weights = model::WeightType::f32;
  std::vector<mesh::AdapterShape> lora{};
  int threads = 1;
};
MemoryPlan predict_memory(const model::Config& config, const InferenceModel& model, const engine::ServingWork& work);
MemoryPlan predict_memory(const model::Config& config, const InferenceModel& model, const engine::GenerationWork& work);
MemoryPlan predict_memory(const model::Config& config, const InferenceModel& model, const engine::ScoringWork& work);

// Predicts the memory of every device of the mesh, in its order; inference has one. `request.engine` is set. Throws
// Error PLAN-SIZE if a size is out of range, and the first error of the placement on a mesh.
DeviceMemory engine_memory(const Request& request);

}  // namespace mw::plan
