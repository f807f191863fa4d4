// SPDX-License-Identifier: Apache-2.0
// Lossless storage of bf16 weights in 12 bits, which reduces what decoding reads by a quarter. The exponents of a block
// of weights are close together, so that sign, mantissa and a 4-bit exponent above the block's base represent nearly
// all of them; the exceptions are stored in the block's header. A block is kBf16x12Depth columns of a panel (packed.h).
// Two pairs of its depth are four vectors of 32 words. The first three vectors stay in place, and bits 14 to 11 of
// their words, which 12 bits leave free, hold the fourth vector. A block with too many exceptions keeps 16-bit words in
// the three vectors and its fourth vectors in the overflow table. Panels follow each other, sizes::bf16x12_bytes(32, K)
// each; rows are a multiple of 32 and K of 4.
#pragma once
#include <cstdint>
#include <mutex>
#include <vector>

#include "core/engine/kernels/packed.h"
#include "core/engine/runtime/arena.h"

namespace mw::engine {

inline constexpr int kBf16x12Exponents = 16, kBf16x12MaxExceptions = 13;

struct Bf16x12Header {
  const std::uint16_t* overflow = nullptr;  // not null: every fourth vector; the block's words are whole bf16
  std::uint16_t base = 0;                   // added to every word
  std::uint16_t exception_count = 0;
  struct Exception {
    std::uint16_t at, bits;  // index in the block, in the order of panels; the bf16 value
  } exceptions[kBf16x12MaxExceptions] = {};
};
static_assert(sizeof(Bf16x12Header) == sizes::kBf16x12HeaderBytes);

// The fourth vectors of blocks that do not fit 12 bits; entries never move. Any thread.
class OverflowTable {
 public:
  explicit OverflowTable(Arena& arena) : arena_(arena) {}
  std::uint16_t* allocate();  // for one block: kBf16x12Depth * kPanelRows / 4 elements

 private:
  Arena& arena_;
  std::mutex mutex_;
  std::vector<DeviceBuffer<std::uint16_t>> chunks_;
  std::int64_t taken_ = 0;
};

// Writes one panel from row-major bf16 [32, k].
void write_bf16x12_panel(std::int64_t k, const std::uint16_t* rows, std::byte* out, OverflowTable& overflow);

}  // namespace mw::engine
