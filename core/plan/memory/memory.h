// SPDX-License-Identifier: Apache-2.0
// Predicted memory of the in-process engine on one device, by ledger category, from the inventory and the settings
// alone: formulas that mirror what core/engine allocates; tests hold the two together. Any thread.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ledger.h"
#include "core/mesh/layout/placement.h"
#include "core/model/inventory.h"
#include "core/model/types.h"

namespace mw::plan {

enum class Bf16Math { widened, packed };  // how the processor at hand multiplies bf16 weights (engine::packed_kernels)

struct TrainShape {
  model::TrainMethod method = model::TrainMethod::lora;
  model::WeightType weights = model::WeightType::f32;
  Bf16Math bf16 = Bf16Math::widened;
  std::vector<mesh::AdapterShape> lora{};
  bool dropout = false;
  model::Remat remat = model::Remat::none;
  std::int64_t tokens = 0;       // rows * len of the largest micro-batch: what the engine sizes its buffers for
  std::int64_t loss_tokens = 0;  // most loss tokens in one micro-batch
  int longest = 0;               // tokens of the longest example
  int loss_chunk = 256;          // rows of logits at once, fewer beyond 64 MiB; 0: unchunked
  int threads = 1;
  struct Forward {  // a pass without a backward
    std::int64_t tokens = 0, loss_tokens = 0;
    int longest = 0;
  };
  Forward evaluation{};     // of the largest batch of held-out rows; no loss tokens: none during the run
  int prompt_tokens = 0;    // of the longest prompt that is sampled
  int generate_tokens = 0;  // most of a prompt with room for its answer; 0: no sampling during the run
};

struct MemoryPlan {
  Ledger at_peak;  // the instant of the largest total
  Ledger category_peaks;
  std::string peak_instant;  // "logits of a training step", "evaluation of held-out rows", "start of sampling"
};

// Of a model that is for planning only: what the same formulas give for its shapes.
// Errors: a shape beyond all reason (PLAN-SIZE).

MemoryPlan predict_train_memory(const model::Config& config, const TrainShape& shape);

// Of a model loaded for inference (engine::Use), its step memory given back before.
struct InferenceModel {
  model::WeightType weights = model::WeightType::f32;
  Bf16Math bf16 = Bf16Math::widened;
  std::vector<mesh::AdapterShape> lora{};
  int threads = 1;
};
struct Generation {  // engine::Sampler: rows of one length
  std::int64_t rows = 1;
  int prompt = 1, new_tokens = 1;
};
struct Scoring {  // engine::Scorer: rows of one length, a target in every position
  std::int64_t rows = 1;
  int len = 1;
  int chunk = 64;  // rows of logits at once; 0: all
  int top_k = 0;
};
struct Serving {  // engine::Server
  struct Group {
    std::vector<int> layers;
    int blocks = 0;
  };
  int tokens = 2048, rows = 64, context = 4096;  // of a step, of its logits, of the longest request
  int block_size = 16;
  std::vector<Group> groups{};
  std::vector<std::vector<mesh::AdapterShape>> adapters{};  // by name; InferenceModel::lora is empty then
};
MemoryPlan predict_memory(const model::Config& config, const InferenceModel& model, const Serving& work);
MemoryPlan predict_memory(const model::Config& config, const InferenceModel& model, const Generation& work);
MemoryPlan predict_memory(const model::Config& config, const InferenceModel& model, const Scoring& work);

}  // namespace mw::plan
