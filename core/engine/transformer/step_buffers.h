// SPDX-License-Identifier: Apache-2.0
// The memory of a step besides weights: activations and scratch, logits, RoPE tables and attention scores, laid out by
// core/engine/layout. Buffers are kept while a later step fits into them.
#pragma once
#include <vector>

#include "core/engine/layout/step_layout.h"
#include "core/engine/layout/workspace.h"
#include "core/engine/transformer/model_weights.h"

namespace mw::engine {

using ExpertRouting = RoutingAt<PointerTo>;
using LayerActivations = LayerActivationsAt<PointerTo>;
struct Scratch : ScratchAt<PointerTo> {
  const Adapter* dz_of = nullptr;  // the adapter whose gradient dz holds, null: none
};

struct StepActivations {
  ActivationShape shape;
  std::vector<DeviceBuffer<std::byte>> buffers;
  std::vector<LayerActivations> layers;
  float *ple = nullptr, *ple_inv = nullptr;
  Scratch scratch;
};

struct StepBuffers {
  StepBuffers(Device& step_device, const ModelWeights& model_weights) : device(step_device), weights(model_weights) {}

  void prepare(const ActivationShape& need);
  void prepare_rope(int last_position);
  void prepare_scores(std::int64_t keys);
  // [rows, vocab]. The f16 ones come with logit_maxima, [stripes of the vocabulary, rows].
  float* logit_rows(std::int64_t rows);
  std::uint16_t* f16_logit_rows(std::int64_t rows);
  void release();  // everything that is kept for a later step

  Device& device;
  const ModelWeights& weights;
  StepActivations step;
  std::vector<DeviceBuffer<float>> rope_tables;  // by ModelShape::rope_specs
  std::int64_t rope_positions = 0;
  DeviceBuffer<float> attention_workspace, logit_chunk, logit_maxima;
  DeviceBuffer<std::uint16_t> f16_logits;
  std::int64_t attention_block_keys = 0;
};

}  // namespace mw::engine
