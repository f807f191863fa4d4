// SPDX-License-Identifier: Apache-2.0
// The buffers that a device keeps from step to step: RoPE tables, scores of attention, blocks of matrix products,
// logits. They are replaced when serves() says so. Plain values; any thread.
#pragma once
#include <array>
#include <vector>

#include "core/engine/layout/allocation.h"
#include "core/engine/layout/model_shape.h"

namespace mw::engine {

// Positions of the RoPE tables for so many tokens, and a table of them for each of the model's rope_specs: cosines,
// then sines, [positions, head_dim / 2] each.
std::int64_t rope_positions(std::int64_t tokens);
std::vector<Allocation> rope_tables(const ModelShape& model, std::int64_t positions);

// Scores: blocks of kQueries queries against `keys` keys for every thread, and for a backward their gradients; with a
// softcap also the capped scores.
std::int64_t score_blocks(const ModelShape& model);
std::int64_t score_block_keys(std::int64_t keys);  // with padding
Allocation score_allocation(const ModelShape& model, std::int64_t keys, int threads);
// Keys of a block that holds the scores of one token, of the heads that share a KV head, against a cache of `context`
// tokens.
std::int64_t decoded_keys(const ModelShape& model, size_t layer, std::int64_t context);

// Of packed products: rounded activations and panels of every thread; where the loss streams its logits, a tile of
// them for every thread and the gradients of all threads but the first, [rows, dim].
Allocation packed_blocks(int threads);
Allocation logit_tiles(int threads);
Allocation partial_gradients(std::int64_t rows, std::int64_t dim, int threads);
// Of products that widen their weights.
Allocation weight_panels(int threads);

// Rows of logits that the loss computes at once, of `tokens` with a target; chunk 0: all.
std::int64_t loss_rows(const ModelShape& model, std::int64_t tokens, std::int64_t chunk);
Allocation logit_allocation(const ModelShape& model, std::int64_t rows);  // f32
// f16 exponentials, and the maximum of each stripe of the vocabulary.
std::array<Allocation, 2> streamed_logits(const ModelShape& model, std::int64_t rows);
// A row of logits from all devices that share the vocabulary; empty on one device.
Allocation gathered_logits(const ModelShape& model);

}  // namespace mw::engine
