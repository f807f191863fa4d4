// SPDX-License-Identifier: Apache-2.0
// How PackedGemm cuts its products; a part of packed_gemm.cpp and its neighbours.
#pragma once
#include "core/engine/kernels/packed_gemm.h"

namespace mw::engine {

// Blocks: a thread's rounded activations and its packed panels stay near its L2; a panel of one block of depth in L1.
inline constexpr std::int64_t kRows = sizes::kBlockRows, kPackedDepth = sizes::kPanelDepth,
                              kColumns = sizes::kPanelColumns;
inline constexpr std::int64_t kActivations = kRows * sizes::kBlockDepth, kPanels = kColumns * kPackedDepth,
                              kLowRows = kRows * kMostFusedRank, kLowPanels = kColumns * kMostFusedRank;
inline constexpr std::int64_t kWorkspace = sizes::kPackedBlocks;
static_assert(kActivations + kPanels + kLowRows + kLowPanels == kWorkspace);

constexpr std::int64_t even(std::int64_t n) {
  return (n + 1) / 2 * 2;
}

// The i-th of `count` nearly equal parts of [0, total), in whole `unit`s.
constexpr std::int64_t edge(std::int64_t total, std::int64_t unit, std::int64_t i, std::int64_t count) {
  const std::int64_t at = (total + unit - 1) / unit * i / count * unit;
  return at < total ? at : total;
}

constexpr double kInlineFlops = 200e3;  // waking a worker costs about as much

inline PackedGemm::Range PackedGemm::Share::of(std::int64_t total, std::int64_t unit) const {
  return {edge(total, unit, thread, threads), edge(total, unit, thread + 1, threads)};
}

// Its rows from `row` on, the first of a panel.
inline Int8Weight int8_from(Int8Weight w, std::int64_t k, std::int64_t row) {
  return {w.at + row * k, w.scales + scale_index(k, row, 0)};
}

}  // namespace mw::engine
