// SPDX-License-Identifier: Apache-2.0
// The one ledger: memory is always split into the same categories, predicted by the planner and measured by
// the engine's arenas alike. Plain values; no locking.
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

// What a device held: now, and at the instant its total was largest.
struct MemoryUse {
  Ledger now;
  Ledger at_peak;         // split at the instant of the largest total
  Ledger category_peaks;  // largest value each category had, at different instants
};

}  // namespace mw
