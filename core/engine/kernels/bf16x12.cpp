// SPDX-License-Identifier: Apache-2.0
#include "core/engine/kernels/bf16x12.h"

#include <algorithm>
#include <cstring>

#include "core/engine/layout/weights_layout.h"

namespace mw::engine {
namespace {

constexpr std::int64_t kWords = 32;                                  // of a vector
constexpr std::int64_t kFourths = kBf16x12Depth * kPanelRows / 4;    // words of a block's fourth vectors
constexpr std::int64_t kChunk = 64;                                  // overflow entries that are allocated together
constexpr unsigned kExponent = 0xff, kMantissaBits = 7, kFree = 11;  // kFree: the lowest free bit of a word
constexpr std::uint16_t kSign = 0x8000, kMantissa = 0x7f;

unsigned exponent(std::uint16_t bits) {
  return bits >> kMantissaBits & kExponent;
}

// The 16 consecutive exponents that cover most elements of a block: the lowest, and the number of elements outside.
struct ExponentRange {
  unsigned lowest = 0;
  std::int64_t others = 0;
};
ExponentRange exponent_range_of(const std::uint16_t* block, std::int64_t count) {
  int seen[4][kExponent + 1] = {};  // used in turn, so that equal neighbours do not wait for each other
  for (std::int64_t i = 0; i < count; i += 4)
    for (int t = 0; t < 4; ++t) ++seen[t][exponent(block[i + t])];
  ExponentRange best{0, count};
  std::int64_t inside = 0;
  for (unsigned e = 0; e <= kExponent; ++e) {
    for (const auto& s : seen) inside += s[e] - (e >= kBf16x12Exponents ? s[e - kBf16x12Exponents] : 0);
    const unsigned lowest = e < kBf16x12Exponents ? 0 : e - kBf16x12Exponents + 1;
    if (count - inside < best.others) best = {lowest, count - inside};
  }
  return best;
}

// The 12 bits of an element, in place; an element that does not fit becomes an exception in the header.
std::uint16_t encode(std::uint16_t bits, std::int64_t at, unsigned lowest, Bf16x12Header& header) {
  const unsigned code = exponent(bits) - lowest;
  if (code < kBf16x12Exponents) return static_cast<std::uint16_t>((bits & (kSign | kMantissa)) | code << kMantissaBits);
  header.exceptions[header.exception_count++] = {static_cast<std::uint16_t>(at), bits};
  return 0;
}

// `block`: `count` elements of a panel.
void write_block(const std::uint16_t* block, std::int64_t count, std::byte* out, OverflowTable& overflow) {
  const ExponentRange exponents = exponent_range_of(block, count);
  Bf16x12Header& header = *new (out) Bf16x12Header;
  auto* words = reinterpret_cast<std::uint16_t*>(out + sizes::kBf16x12HeaderBytes);
  if (exponents.others > kBf16x12MaxExceptions) {
    std::uint16_t* fourths = overflow.allocate();
    header.overflow = fourths;
    for (std::int64_t i = 0; i < count; i += 4 * kWords, words += 3 * kWords, fourths += kWords) {
      std::copy_n(block + i, 3 * kWords, words);
      std::copy_n(block + i + 3 * kWords, kWords, fourths);
    }
    return;
  }
  header.base = static_cast<std::uint16_t>(exponents.lowest << kMantissaBits);
  for (std::int64_t i = 0; i < count; i += 4 * kWords, words += 3 * kWords)
    for (std::int64_t l = i; l < i + kWords; ++l) {
      std::uint16_t of[4];
      for (std::int64_t v = 0; v < 4; ++v)
        of[v] = encode(block[l + v * kWords], l + v * kWords, exponents.lowest, header);
      const unsigned fourth = of[3];
      words[l - i] = static_cast<std::uint16_t>(of[0] | (fourth & 0xf) << kFree);
      words[l - i + kWords] = static_cast<std::uint16_t>(of[1] | (fourth >> 4 & 0xf) << kFree);
      words[l - i + 2 * kWords] = static_cast<std::uint16_t>(of[2] | (fourth >> 8 & 0x7) << kFree | fourth >> 15 << 14);
    }
}

}  // namespace

std::uint16_t* OverflowTable::allocate() {
  const std::lock_guard lock(mutex_);
  if (taken_ % kChunk == 0)
    chunks_.emplace_back(arena_,
                         Allocation{MemoryCategory::weights, kOverflowBlocks,
                                    Bytes(kChunk * kFourths * static_cast<std::int64_t>(sizeof(std::uint16_t)))});
  return chunks_.back().data() + taken_++ % kChunk * kFourths;
}

void write_bf16x12_panel(std::int64_t k, const std::uint16_t* rows, std::byte* out, OverflowTable& overflow) {
  std::uint16_t block[kPanelRows * kBf16x12Depth];
  for (std::int64_t first = 0; first < k; first += kBf16x12Depth) {
    const std::int64_t depth = std::min(kBf16x12Depth, k - first);
    for (std::int64_t n = 0; n < kPanelRows; ++n)
      for (std::int64_t i = 0; i < depth; i += 2)
        std::memcpy(block + packed_index(depth, n, i), rows + n * k + first + i, 2 * sizeof *block);
    write_block(block, kPanelRows * depth, out, overflow);
    out += sizes::bf16x12_bytes(kPanelRows, depth);
  }
}

}  // namespace mw::engine
