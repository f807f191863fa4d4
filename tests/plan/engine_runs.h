// SPDX-License-Identifier: GPL-3.0-or-later
// Small real runs of the engine beside what core/plan predicted for them.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/base/ledger.h"
#include "core/plan/prediction/memory.h"

namespace mw::plan::local {

struct Outcome {
  MemoryUse measured;
  MemoryPlan predicted;
};

// Gemma 3 of `layers` layers, every third of them global.
struct Sizes {
  int layers = 4, vocab = 3000, dim = 160, mlp = 520, head_dim = 48, window = 48;
};
model::Config small_config(const Sizes& sizes = {});
// Another architecture with the same sizes (engine::test::families()), its own extras as large as they fit it.
model::Config small_config(const Sizes& sizes, const std::string& family);

struct TrainRun {
  model::TrainMethod method = model::TrainMethod::lora;
  model::WeightType weights = model::WeightType::f32;
  model::Remat remat = model::Remat::none;
  int rank = 8, chunk = 64, rows = 4, len = 64, threads = 2, loss_per_row = 48;
  float dropout = 0;
  std::vector<std::string> targets = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"};
  std::vector<std::pair<std::string, int>> rank_pattern = {};
  int eval_rows = 0, eval_len = 0;  // evaluated before the first step and after every one, each token with a loss
  int prompt = 20, generate = 0;    // tokens of a prompt, and of it and its answer, after every step
};
Outcome run(const model::Config& config, const TrainRun& run);

struct InferenceRun {
  enum class Work { generate, score, serve } work = Work::generate;
  int rows = 1, len = 1, new_tokens = 1;  // of prompts, or of the text that is scored; of a server's requests
  int chunk = 0, top_k = 0;               // scoring; tokens of a server's step
  model::WeightType weights = model::WeightType::f32;
  int rank = 0, threads = 2;  // of adapters on q_proj and down_proj, 0: none
};
// Twice, for buffers that are kept.
Outcome run(const model::Config& config, const InferenceRun& run);

}  // namespace mw::plan::local
