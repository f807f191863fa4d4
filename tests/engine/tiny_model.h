// SPDX-License-Identifier: GPL-3.0-or-later
// A small Gemma 3 config and packed batches for the engine's tests.
#pragma once
#include <vector>

#include "core/base/rng.h"
#include "core/engine/kernels/packed.h"
#include "core/engine/transformer/network.h"

namespace mw::engine::test {

// Three sliding layers and a global one, window 5, GQA 2:1, a linear RoPE factor on the global layer.
inline model::Config tiny_config() {
  model::Config c;
  c.id = "tiny";
  c.hf_model_type = "gemma3_text";
  c.hf_architecture = "Gemma3ForCausalLM";
  c.vocab = 61, c.dim = 24;
  c.sliding_window = 5, c.max_positions = 128;
  c.qk_norm = true;
  c.attention_scale = 0.3f;
  for (int i = 0; i < 4; ++i) {
    model::Layer l;
    l.attention = i == 2 ? model::Attention::full : model::Attention::sliding;
    l.heads = 4, l.kv_heads = 2, l.head_dim = 8, l.mlp_dim = 40;
    l.rope_theta = i == 2 ? 1e6f : 1e4f;
    l.rope = i == 2 ? model::Rope::linear : model::Rope::plain;
    l.rope_factor = i == 2 ? 8.0f : 1.0f;
    c.layers.push_back(l);
  }
  return c;
}

// Products with weights in bf16 and int8 round activations; comparisons with f32 activations are as loose as that.
inline float tolerance(model::WeightType type, float exact, float rounded) {
  return type != model::WeightType::f32 ? rounded : exact;
}

struct OwnedBatch {
  int rows, len;
  std::vector<int> ids, targets, positions, segments;
  operator TokenBatch() const { return {rows, len, ids, targets, positions, segments}; }
};

// Row 0: two packed segments and padding; row 1: one segment; and so on in turn. Some targets carry no loss.
inline OwnedBatch packed_batch(int rows, int len, int vocab, std::uint64_t seed = 1) {
  const size_t n = static_cast<size_t>(rows) * static_cast<size_t>(len);
  OwnedBatch b{
      rows, len, std::vector<int>(n, 0), std::vector<int>(n, -1), std::vector<int>(n, 0), std::vector<int>(n, -1)};
  Rng rng{seed};
  for (int r = 0; r < rows; ++r) {
    const int first = r % 2 == 0 ? len / 2 + 1 : len, used = r % 2 == 0 ? len - 2 : len;
    for (int c = 0; c < used; ++c) {
      const auto i = static_cast<size_t>(r * len + c);
      b.ids[i] = static_cast<int>(rng.below(static_cast<std::uint64_t>(vocab)));
      b.segments[i] = c < first ? 0 : 1;
      b.positions[i] = c < first ? c : c - first;
      if (rng.below(4) != 0) b.targets[i] = static_cast<int>(rng.below(static_cast<std::uint64_t>(vocab)));
    }
  }
  return b;
}

inline options::Lora all_projections(int rank = 3, float dropout = 0) {
  options::Lora o;
  o.rank = rank, o.alpha = 6, o.dropout = dropout;
  o.targets = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"};
  return o;
}

// Random weights large enough that every path matters (0.02 would hide mistakes behind near-zero logits), norms too.
inline void fill(Network& network, std::uint64_t seed, float scale = 0.3f) {
  network.load({.f32 =
                    [&, seed, scale](size_t index, std::int64_t first, std::span<float> out) {
                      const Rng rng{seed, index};
                      for (size_t i = 0; i < out.size(); ++i)
                        out[i] = scale * rng.normal_at(static_cast<std::uint64_t>(first) + i);
                    },
                .bf16 = {}});
}

inline void randomise_adapters(Network& network,
                               std::uint64_t seed) {  // B is zero at first, and so would be A's gradient
  std::uint64_t index = 0;
  for (const LoraTensors& m : network.lora()) {
    const Rng rng{seed, index++};
    for (size_t i = 0; i < m.b.size(); ++i) m.b[i] = 0.3f * rng.normal_at(i);
  }
}

inline std::vector<float> all_gradients(const Network& network) {
  std::vector<float> out;
  for (const TrainableTensor& p : network.parameters()) out.insert(out.end(), p.grad.begin(), p.grad.end());
  return out;
}

}  // namespace mw::engine::test
