// SPDX-License-Identifier: Apache-2.0
// Memory of a device split into categories. The planner predicts and the engine's arenas measure the same categories.
// Plain values.
#pragma once
#include <array>
#include <numeric>
#include <string_view>

#include "core/base/enum_names.h"
#include "core/base/units.h"

namespace mw {

enum class MemoryCategory {
  weights,
  adapters,
  gradients,
  optimizer,
  activations,
  logits,
  kv_cache,
  collectives,
  workspace,
  runtime
};

template <>
inline constexpr EnumNames<10> kEnumNames<MemoryCategory>{"weights",     "adapters", "gradients", "optimizer",
                                                          "activations", "logits",   "kv_cache",  "collectives",
                                                          "workspace",   "runtime"};
inline constexpr size_t kMemoryCategories = kEnumNames<MemoryCategory>.size();

struct Ledger {
  std::array<Bytes, kMemoryCategories> bytes{};

  Bytes& operator[](MemoryCategory c) { return bytes[static_cast<size_t>(c)]; }
  Bytes operator[](MemoryCategory c) const { return bytes[static_cast<size_t>(c)]; }
  Bytes total() const { return std::accumulate(bytes.begin(), bytes.end(), Bytes()); }
  bool operator==(const Ledger&) const = default;
};

// Current and peak memory use of a device.
struct MemoryUse {
  Ledger now;
  Ledger at_peak;         // at the time of the largest total
  Ledger category_peaks;  // per category, each at its own time
};

}  // namespace mw
