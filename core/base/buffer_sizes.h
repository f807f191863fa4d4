// SPDX-License-Identifier: Apache-2.0
// Units of the engine's buffers that rooms below core/engine/layout, its kernels and the layout share.
#pragma once
#include <algorithm>
#include <cstdint>

namespace mw::sizes {

using Count = std::int64_t;

constexpr Count round_up(Count n, Count to) {
  return (n + to - 1) / to * to;
}

inline constexpr Count kPageBytes = 4096;  // the arena gives whole pages

// Regions of one buffer start on cache lines.
constexpr Count aligned_bytes(Count n) {
  return round_up(n, 64);
}

// Weights in panels (engine/kernels/packed.h): whole panels of rows, whole pairs of columns.
inline constexpr Count kPanelRows = 32;
constexpr bool packable(Count rows, Count columns) {
  return rows % kPanelRows == 0 && columns % 2 == 0;
}
// bf16 weights in 12 bits (engine/kernels/bf16x12.h): blocks of a panel's columns, each a header and 1.5 bytes an
// element.
inline constexpr Count kBf16x12Depth = 128, kBf16x12HeaderBytes = 64;
constexpr bool fits_bf16x12(Count rows, Count columns) {
  return packable(rows, columns) && columns % 4 == 0;
}
constexpr Count bf16x12_bytes(Count rows, Count columns) {
  return rows / kPanelRows *
         ((columns + kBf16x12Depth - 1) / kBf16x12Depth * kBf16x12HeaderBytes + columns * kPanelRows * 3 / 2);
}
// int8 weights have a bf16 scale for each row's groups of columns.
inline constexpr Count kScaleGroup = 64;
constexpr Count scale_groups(Count columns) {
  return (columns + kScaleGroup - 1) / kScaleGroup;
}

// Products in f32 are summed in runs of this depth (engine/kernels/packed_f32.h).
inline constexpr Count kF32Run = 256;

// Scratch memory of a thread for packed products, in bf16 values: a block of laid-out activations, one of panels, and
// those of a low-rank summand. The blocks stay in L2, a panel of one block of depth in L1.
inline constexpr Count kBlockRows = 528, kBlockDepth = 2048, kPanelDepth = 512, kPanelColumns = 512;
inline constexpr Count kMostFusedRank = 256;
inline constexpr Count kPackedBlocks =
    kBlockRows * kBlockDepth + kPanelColumns * kPanelDepth + (kBlockRows + kPanelColumns) * kMostFusedRank;
// A tile of logits in a stripe of the vocabulary, in floats, where the loss computes 16-bit logits tile by tile.
inline constexpr Count kLogitTileRows = 64, kLogitStripe = 512, kLogitTile = kLogitTileRows * kLogitStripe;

// Queries in a block of attention scores; the keys of a block are padded to a multiple of it.
inline constexpr Count kQueries = 64;
// Keys of a paged KV cache that a block of queries reads at once.
inline constexpr Count kTileKeys = 256;
// Tokens of a block of the KV cache of sampling.
inline constexpr Count kSamplerBlock = 16;

// Rows of logits that the loss computes at once: `chunk` (0: all), but fewer where they would exceed 64 MiB.
constexpr Count loss_rows(Count total, Count chunk, Count bytes_of_a_row) {
  constexpr Count kMostBytes = Count{64} << 20, kFewestRows = 16;
  return chunk <= 0 ? total : std::min({total, chunk, std::max(kFewestRows, kMostBytes / bytes_of_a_row)});
}

// Tokens that a step has room for: the real ones and a little more, so that the next batch of other lengths finds it
// there, but no more than with all padding.
constexpr Count step_tokens(Count padded, Count real) {
  return std::min(padded, round_up(real, 256));
}

// Tokens of one pass of prefill or scoring; a longer row has a pass to itself.
inline constexpr int kPassTokens = 2048;

}  // namespace mw::sizes
