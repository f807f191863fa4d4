// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>

#include "core/engine/core.h"

namespace mw::engine {
namespace {

constexpr std::int64_t kPiece = 1024;

// Calls piece(done, place, count) for runs of [first, first + count) that lie within one row of a packed weight.
template <class F>
void by_rows(const Weight& w, std::int64_t first, std::int64_t count, F piece) {
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t row = (first + done) / w.cols, col = (first + done) % w.cols;
    const std::int64_t some = std::min(count - done, w.cols - col);
    piece(done, row, col, some);
    done += some;
  }
}

}  // namespace

void write_bits(const Weight& w, std::int64_t first, std::span<const std::uint16_t> bits) {
  if (!w.at.packed) {
    std::copy(bits.begin(), bits.end(), w.bf16 + first);
    return;
  }
  by_rows(w, first, static_cast<std::int64_t>(bits.size()), [&](auto done, auto row, auto col, auto count) {
    const std::uint16_t* from = bits.data() + done;
    for (std::int64_t i = 0; i < count; ++i) w.bf16[packed_index(w.cols, row, col + i)] = from[i];
  });
}

void read_bits(const Weight& w, std::int64_t first, std::span<std::uint16_t> bits) {
  if (!w.at.packed) {
    std::copy_n(w.bf16 + first, bits.size(), bits.begin());
    return;
  }
  by_rows(w, first, static_cast<std::int64_t>(bits.size()), [&](auto done, auto row, auto col, auto count) {
    std::uint16_t* to = bits.data() + done;
    for (std::int64_t i = 0; i < count; ++i) to[i] = w.bf16[packed_index(w.cols, row, col + i)];
  });
}

void read_wide(const VectorKernels& kernels, const Weight& w, std::int64_t first, std::span<float> out) {
  if (w.at.f32) {
    std::copy_n(w.at.f32 + first, out.size(), out.begin());
    return;
  }
  std::array<std::uint16_t, kPiece> bits;
  for (std::int64_t done = 0, total = static_cast<std::int64_t>(out.size()); done < total; done += kPiece) {
    const auto count = std::min(kPiece, total - done);
    read_bits(w, first + done, std::span(bits).first(static_cast<size_t>(count)));
    kernels.widen(count, bits.data(), out.data() + done);
  }
}

}  // namespace mw::engine
