// SPDX-License-Identifier: Apache-2.0
// The buffers of the engine's kinds of work, besides those of the model and its training state. Plain values; any
// thread.
#pragma once
#include <vector>

#include "core/engine/layout/cache_layout.h"
#include "core/engine/layout/step_layout.h"
#include "core/engine/layout/workspace.h"

namespace mw::engine {

struct PhaseBuffers {
  std::vector<Allocation> own;   // released at its end
  ActivationShape step;          // of its activations; kept for later phases while ActivationShape::holds()
  std::vector<Allocation> kept;  // for later phases, while serves()
};
// All of them, if nothing is there before.
std::vector<Allocation> allocations(const ModelShape& model, const PhaseBuffers& phase);

// A training step, or an evaluation of held-out rows.
struct StepWork {
  ActivationShape shape;
  std::int64_t loss_tokens = 0, loss_chunk = 0;
  std::int64_t longest = 0;  // tokens of the longest example
};
PhaseBuffers step_phase(const ModelShape& model, const StepWork& work, int threads);

// Sampling: rows of one length, prefilled some at a time.
struct GenerationWork {
  std::int64_t rows = 1, prompt = 1, new_tokens = 1;
};
PhaseBuffers generation_phase(const ModelShape& model, const GenerationWork& work, int threads);

// Scoring: rows of one length, some at a time, with a target in every position.
struct ScoringWork {
  std::int64_t rows = 1, len = 1;
  std::int64_t chunk = 64;  // rows of logits at once; 0: all
  std::int64_t top_k = 0;
};
PhaseBuffers scoring_phase(const ModelShape& model, const ScoringWork& work, int threads);

// Steps of a server, which holds the adapters that it serves besides.
struct ServingWork {
  std::int64_t tokens = 2048, rows = 64, context = 4096;  // of a step, of its logits, of the longest request
  int block_size = 16;
  std::vector<BlockGroup> groups{};
  std::vector<std::vector<mesh::AdapterShape>> adapters{};
};
PhaseBuffers serving_phase(const ModelShape& model, const ServingWork& work, int threads);

}  // namespace mw::engine
