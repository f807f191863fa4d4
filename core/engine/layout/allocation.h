// SPDX-License-Identifier: Apache-2.0
// The engine's buffers as values: what is allocated under which category and label, and where its fields lie. The arena
// allocates them, the planner sums them. Plain values; any thread.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/buffer_sizes.h"
#include "core/base/ledger.h"

namespace mw::engine {

using sizes::aligned_bytes;

struct Allocation {
  MemoryCategory category{};
  std::string_view label;  // a literal
  Bytes bytes;
  Bytes pages() const { return Bytes(sizes::round_up(bytes.value, sizes::kPageBytes)); }  // what it takes of a device
  bool operator==(const Allocation&) const = default;
};

constexpr Allocation float_allocation(MemoryCategory category, std::string_view label, std::int64_t floats) {
  return {category, label, Bytes(floats * static_cast<std::int64_t>(sizeof(float)))};
}

// A buffer that is kept from step to step serves the next one unless it is too small, or holds logits and is more than
// four times too large.
constexpr bool serves(const Allocation& held, const Allocation& need) {
  return held.bytes >= need.bytes && (held.category != MemoryCategory::logits || held.bytes <= need.bytes * 4);
}

// A place in one of several allocations. Fields may overlap or be the same.
struct BufferField {
  int allocation = -1;      // -1: there is no such field
  std::int64_t offset = 0;  // bytes
  explicit operator bool() const { return allocation >= 0; }
};

// Lays fields out one behind the other, each on a cache line.
class Carver {
 public:
  explicit Carver(int allocation) : allocation_(allocation) {}
  BufferField take(std::int64_t bytes) {
    const BufferField field{allocation_, used_};
    used_ += aligned_bytes(bytes);
    return field;
  }
  BufferField take_floats(std::int64_t floats) { return take(floats * static_cast<std::int64_t>(sizeof(float))); }
  std::int64_t used() const { return used_; }  // bytes
  void rewind(std::int64_t to) { used_ = to; }

 private:
  int allocation_;
  std::int64_t used_ = 0;
};

// An allocation with its fields, in an order that the function that made it states.
struct BufferLayout {
  Allocation allocation;
  std::vector<BufferField> fields;
};

// The elements of a field, null if it or the allocation is absent. `allocation`: where its memory begins.
template <class T>
T* field_at(T* allocation, const BufferField& field) {
  return allocation && field ? allocation + field.offset / static_cast<std::int64_t>(sizeof(T)) : nullptr;
}

// Arguments of struct templates whose members are all fields: the layout, and the same members as pointers.
template <class T>
using FieldOf = BufferField;
template <class T>
using PointerTo = T*;

template <template <template <class> class> class Fields>
Fields<PointerTo> pointers(const Fields<FieldOf>& fields, std::span<std::byte* const> allocations) {
  constexpr size_t kFields = sizeof(fields) / sizeof(BufferField);
  std::array<void*, kFields> at{};
  const auto all = std::bit_cast<std::array<BufferField, kFields>>(fields);
  for (size_t i = 0; i < kFields; ++i)
    if (all[i]) at[i] = allocations[static_cast<size_t>(all[i].allocation)] + all[i].offset;
  return std::bit_cast<Fields<PointerTo>>(at);
}

}  // namespace mw::engine
