// SPDX-License-Identifier: Apache-2.0
// Static partitions of work. They depend on sizes and the number of threads only: results keep their bits, and a thread
// reads the same part of a weight in every step.
#pragma once
#include <algorithm>
#include <cstdint>

namespace mw::engine {

// Where part `i` of `parts` nearly equal parts of [0, total) begins; parts are whole `unit`s. Edge `parts` is `total`.
constexpr std::int64_t split_edge(std::int64_t total, std::int64_t unit, std::int64_t i, std::int64_t parts) {
  return std::min(total, (total + unit - 1) / unit * i / parts * unit);
}

}  // namespace mw::engine
