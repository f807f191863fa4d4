// SPDX-License-Identifier: Apache-2.0
#include "core/base/ledger.h"

namespace mw {
namespace {
constexpr std::array<std::string_view, kMemoryCategories> kCategoryNames{
    "weights", "adapters", "gradients",   "optimizer", "activations",
    "logits",  "kv_cache", "collectives", "workspace", "runtime"};
}

std::string_view to_string(MemoryCategory category) {
  return kCategoryNames[static_cast<size_t>(category)];
}

std::optional<MemoryCategory> parse_memory_category(std::string_view name) {
  for (size_t i = 0; i < kCategoryNames.size(); ++i)
    if (kCategoryNames[i] == name) return static_cast<MemoryCategory>(i);
  return std::nullopt;
}

Bytes Ledger::total() const {
  Bytes sum;
  for (const Bytes b : bytes) sum += b;
  return sum;
}

}  // namespace mw
