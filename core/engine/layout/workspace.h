// SPDX-License-Identifier: Apache-2.0
// The buffers that a device keeps from step to step: RoPE tables, scores of attention, blocks of matrix products,
// logits. They are replaced when serves() says so. Plain values; any thread.
#pragma once
#include <algorithm>
#include <array>
#include <vector>

#include "core/engine/layout/allocation.h"
#include "core/engine/layout/model_shape.h"

namespace mw::engine {

constexpr Allocation float_workspace(std::string_view label, std::int64_t floats) {
  return float_allocation(MemoryCategory::workspace, label, floats);
}

// The number of positions in the RoPE tables for `tokens` tokens. Each of the model's rope_specs has a table: cosines,
// then sines, [positions, head_dim / 2] each.
constexpr std::int64_t rope_positions(std::int64_t tokens) {
  return sizes::round_up(std::max<std::int64_t>(1, tokens), 64);
}
inline std::vector<Allocation> rope_tables(const ModelShape& model, std::int64_t positions) {
  std::vector<Allocation> tables;
  for (const RopeSpec& spec : model.rope_specs)
    tables.push_back(float_workspace("rope table", 2 * positions * (spec.head_dim / 2)));
  return tables;
}

// Scores: blocks of kQueries queries against `keys` keys for every thread, and for a backward their gradients; with a
// softcap also the capped scores.
inline std::int64_t score_blocks(const ModelShape& model) {
  return model.config.attention_softcap > 0 ? 3 : 2;
}
constexpr std::int64_t score_block_keys(std::int64_t keys) {  // with padding
  return sizes::round_up(keys, sizes::kQueries);
}
inline Allocation score_allocation(const ModelShape& model, std::int64_t keys, int threads) {
  return float_workspace("attention blocks", score_blocks(model) * sizes::kQueries * score_block_keys(keys) * threads);
}
// Keys of a block that holds the scores of one token, of the heads that share a KV head, against a cache of `context`
// tokens.
inline std::int64_t decoded_keys(const ModelShape& model, size_t layer, std::int64_t context) {
  const std::int64_t heads = std::min(model.layer_shapes[layer].group, model.config.layers[layer].heads);
  return heads * model.visible_keys(layer, context) / (2 * sizes::kQueries) + 1;
}

// The workspace of matrix products: laid-out activations and panels of every thread; where the loss streams its logits,
// a tile of them for every thread and the gradients of all threads but the first, [rows, dim].
constexpr Allocation packed_blocks(int threads) {
  return {MemoryCategory::workspace, "blocks of products", Bytes(threads * sizes::kPackedBlocks * 2)};
}
constexpr Allocation logit_tiles(int threads) {
  return float_workspace("tiles of logits", threads * sizes::kLogitTile);
}
constexpr Allocation partial_gradients(std::int64_t rows, std::int64_t dim, int threads) {
  return float_workspace("partial gradients", (threads - 1) * rows * dim);
}

// Rows of logits that the loss computes at once, of `tokens` with a target; chunk 0: all.
inline std::int64_t loss_rows(const ModelShape& model, std::int64_t tokens, std::int64_t chunk) {
  return sizes::loss_rows(tokens, chunk, model.config.vocab * (model.streams_loss() ? 2 : 4));
}
inline Allocation logit_allocation(const ModelShape& model, std::int64_t rows) {  // f32
  return float_allocation(MemoryCategory::logits, "logits", rows * model.config.vocab);
}
// f16 exponentials, and the maximum of each stripe of the vocabulary.
inline std::array<Allocation, 2> streamed_logits(const ModelShape& model, std::int64_t rows) {
  const std::int64_t stripes = (model.config.vocab + sizes::kLogitStripe - 1) / sizes::kLogitStripe;
  return {Allocation{MemoryCategory::logits, "f16 logits", Bytes(rows * model.config.vocab * 2)},
          float_allocation(MemoryCategory::logits, "maxima of logits", rows * stripes)};
}
// A row of logits from all devices that share the vocabulary; empty on one device.
inline Allocation gathered_logits(const ModelShape& model) {
  return float_allocation(MemoryCategory::logits, "logits of all devices",
                          model.vocab_parts > 1 ? model.config.vocab * model.vocab_parts : 0);
}

}  // namespace mw::engine
