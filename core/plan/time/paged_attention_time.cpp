// SPDX-License-Identifier: Apache-2.0
#include "core/plan/time/paged_attention_time.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace mw::plan {
namespace {

// Tokens of a block in decode without a tuned size (tpu-inference v0.19.0, kernels/ragged_paged_attention/v3/
// kernel.py, get_default_block_sizes): 16 MiB in words of 32 bits, at most the longest request.
double block_of(const LayerKind& kind, const Request& request) {
  const int packing = 4 / std::min(4, bytes_of(request.kv)), lanes = (kind.shape.head_dim + 127) / 128 * 128;
  const int both = 2 * std::max(1, static_cast<int>(std::lround(kind.kv_heads)));  // keys and values
  const auto heads = std::bit_ceil(static_cast<unsigned>((both + packing - 1) / packing * packing));
  const double to_peak = 16.0 * 1048576 * packing / 4 / lanes / heads;
  return std::min(to_peak, static_cast<double>(request.serve.max_model_len));
}

}  // namespace

PagedAttentionTime::PagedAttentionTime(const LocalModel& model) {
  const Request& r = *model.request;
  const hardware::Chip& chip = r.target.chip;
  const double per_chip = std::max(1, chip.devices_per_chip), unit = std::max(8, chip.matrix_unit);
  const double peak = chip.bf16_flops.value / per_chip, bandwidth = chip.memory_bandwidth.value / per_chip;
  for (const LayerKind& k : model.kinds) {
    const bool slides = k.shape.attention == model::Attention::sliding && model.config.sliding_window > 0;
    Kind kind{.count = k.count, .window = slides ? model.config.sliding_window : 0, .block = block_of(k, r)};
    if (slides && r.sliding_window_kv) kind.block = std::min<double>(kind.block, kind.window);
    kind.token_s = 2 * k.kv() * bytes_of(r.kv) / bandwidth;
    // Few queries share a KV head, but the matrix unit loads a tile of keys or values as for a whole tile of queries.
    const double rows = std::ceil(k.heads / std::max(1.0, k.kv_heads) / unit) * unit;
    const double lanes = std::ceil(k.shape.head_dim / unit) * unit;
    kind.block_s = 2 * 2 * rows * k.kv_heads * lanes * kind.block / peak;
    kinds_.push_back(kind);
  }
}

// Queries and keys go in blocks there (512 at two queries a head of keys, 1,024): each block of queries meets the whole
// blocks that its window touches.
double PagedAttentionTime::walked(int window) {
  return window + 512.0 + 1024.0;
}

double PagedAttentionTime::seconds(double context, double share) const {
  double sum = 0;
  for (const Kind& k : kinds_) {
    const double skipped = k.window > 0 ? std::floor(std::max(0.0, context - k.window) / k.block) : 0;
    const double blocks = std::ceil(context / k.block) - skipped;
    sum += k.count * std::max((context - skipped * k.block) * k.token_s / share, blocks * k.block_s);
  }
  return sum;
}

}  // namespace mw::plan
