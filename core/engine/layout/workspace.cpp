// SPDX-License-Identifier: Apache-2.0
#include "core/engine/layout/workspace.h"

#include <algorithm>

namespace mw::engine {
namespace {

Allocation float_workspace(std::string_view label, std::int64_t floats) {
  return float_allocation(MemoryCategory::workspace, label, floats);
}

Allocation float_logits(std::string_view label, std::int64_t floats) {
  return float_allocation(MemoryCategory::logits, label, floats);
}

constexpr std::int64_t kHalf = sizeof(std::uint16_t);

}  // namespace

std::int64_t rope_positions(std::int64_t tokens) {
  return sizes::round_up(std::max<std::int64_t>(1, tokens), 64);
}

std::vector<Allocation> rope_tables(const ModelShape& model, std::int64_t positions) {
  std::vector<Allocation> tables;
  for (const RopeSpec& spec : model.rope_specs)
    tables.push_back(float_workspace("rope table", 2 * positions * (spec.head_dim / 2)));
  return tables;
}

std::int64_t score_blocks(const ModelShape& model) {
  return model.config.attention_softcap > 0 ? 3 : 2;
}

std::int64_t score_block_keys(std::int64_t keys) {
  return sizes::round_up(keys, sizes::kQueries);
}

Allocation score_allocation(const ModelShape& model, std::int64_t keys, int threads) {
  return float_workspace("attention blocks", score_blocks(model) * sizes::kQueries * score_block_keys(keys) * threads);
}

std::int64_t decoded_keys(const ModelShape& model, size_t layer, std::int64_t context) {
  const std::int64_t heads = std::min(model.layer_shapes[layer].group, model.config.layers[layer].heads);
  return heads * model.visible_keys(layer, context) / (2 * sizes::kQueries) + 1;
}

Allocation packed_blocks(int threads) {
  return {MemoryCategory::workspace, "bf16 blocks", Bytes(threads * sizes::kPackedBlocks * kHalf)};
}

Allocation logit_tiles(int threads) {
  return float_workspace("tiles of logits", threads * sizes::kLogitTile);
}

Allocation partial_gradients(std::int64_t rows, std::int64_t dim, int threads) {
  return float_workspace("partial gradients", (threads - 1) * rows * dim);
}

Allocation weight_panels(int threads) {
  return float_workspace("weight panels", threads * sizes::kWidenedFloats);
}

std::int64_t loss_rows(const ModelShape& model, std::int64_t tokens, std::int64_t chunk) {
  return sizes::loss_rows(tokens, chunk, model.config.vocab * (model.streams_loss() ? kHalf : 2 * kHalf));
}

Allocation logit_allocation(const ModelShape& model, std::int64_t rows) {
  return float_logits("logits", rows * model.config.vocab);
}

std::array<Allocation, 2> streamed_logits(const ModelShape& model, std::int64_t rows) {
  const std::int64_t stripes = (model.config.vocab + sizes::kLogitStripe - 1) / sizes::kLogitStripe;
  return {Allocation{MemoryCategory::logits, "f16 logits", Bytes(rows * model.config.vocab * kHalf)},
          float_logits("maxima of logits", rows * stripes)};
}

Allocation gathered_logits(const ModelShape& model) {
  return float_logits("logits of all devices", model.vocab_parts > 1 ? model.config.vocab * model.vocab_parts : 0);
}

}  // namespace mw::engine
