// SPDX-License-Identifier: Apache-2.0
// bf16 weights in 12 bits, nothing rounded: what decoding reads of them is a quarter less. The exponents of a block of
// weights lie close together, so sign, mantissa and an exponent of 4 bits above the block's base say nearly all of
// them; the others stand in the block's header. A block is kSlimDepth columns of a panel (packed.h). Two pairs of its
// depth are four vectors of 32 words; the first three are kept in place without the four bits that 12 do not need
// (14 to 11), and those hold the fourth vector. A block with too many others keeps whole words in the three, and the
// fourth vectors lie elsewhere: bf16 again, and as large.
// Panels follow each other, sizes::slim_bytes(32, K) each; rows are a multiple of 32 and K of 4.
#pragma once
#include <cstdint>
#include <mutex>
#include <vector>

#include "core/engine/runtime/arena.h"
#include "core/engine/kernels/packed.h"

namespace mw::engine {

inline constexpr int kSlimExponents = 16, kSlimMostOdd = 13;

struct SlimHeader {
  const std::uint16_t* rest = nullptr;  // not null: every fourth vector, and the words beside this are whole
  std::uint16_t base = 0;               // added to every word
  std::uint16_t odd_count = 0;
  struct Odd {
    std::uint16_t at, bits;  // element of the block, in the order of panels; what it is
  } odd[kSlimMostOdd] = {};
};
static_assert(sizeof(SlimHeader) == sizes::kSlimHeader);

// Where blocks that do not fit 12 bits keep their rest; it never moves. Any thread.
class SlimRests {
 public:
  explicit SlimRests(Arena& arena) : arena_(arena) {}
  std::uint16_t* take();  // for one block: kSlimDepth * kPanelRows / 4 elements

 private:
  Arena& arena_;
  std::mutex mutex_;
  std::vector<Buffer<std::uint16_t>> chunks_;
  std::int64_t taken_ = 0;
};

// One panel, from bf16 rows [32, k].
void write_slim_panel(std::int64_t k, const std::uint16_t* rows, std::byte* out, SlimRests& rests);

}  // namespace mw::engine
