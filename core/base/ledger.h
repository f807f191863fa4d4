// SPDX-License-Identifier: Apache-2.0
// Memory of a device split into categories. The planner predicts and the engine's arenas measure the same categories.
// Plain values.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>

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
inline constexpr size_t kMemoryCategories = 10;

std::string_view to_string(MemoryCategory category);
std::optional<MemoryCategory> parse_memory_category(std::string_view name);

struct Ledger {
  std::array<Bytes, kMemoryCategories> bytes{};

  Bytes& operator[](MemoryCategory c) { return bytes[static_cast<size_t>(c)]; }
  Bytes operator[](MemoryCategory c) const { return bytes[static_cast<size_t>(c)]; }
  Bytes total() const;
  bool operator==(const Ledger&) const = default;
};

// Current and peak memory use of a device.
struct MemoryUse {
  Ledger now;
  Ledger at_peak;         // at the time of the largest total
  Ledger category_peaks;  // per category, each at its own time
};

}  // namespace mw
