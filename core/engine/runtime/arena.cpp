// SPDX-License-Identifier: Apache-2.0
#include "core/engine/runtime/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <map>

namespace mw::engine {
namespace {

constexpr std::int64_t kPage = sizes::kPageBytes, kHugePage = 2 << 20;

std::string ledger_text(const Ledger& ledger) {
  std::string text;
  for (const MemoryCategory category : all_values<MemoryCategory>()) {
    if (ledger[category].value == 0) continue;
    text += (text.empty() ? "" : ", ") + std::string(to_string(category)) + " " + to_text(ledger[category]);
  }
  return text.empty() ? "nothing" : text;
}

constexpr size_t kNamed = 5;  // of the largest buffers, in a message

std::string held_text(const OutOfMemory::State& m) {
  std::string text = to_text(m.held.total()) + " held: " + ledger_text(m.held);
  for (size_t i = 0; i < std::min(kNamed, m.largest.size()); ++i) {
    const OutOfMemory::Held& h = m.largest[i];
    text += (i == 0 ? "; largest: " : ", ") + h.label + " " + to_text(h.bytes);
    if (h.buffers > 1) text += " in " + std::to_string(h.buffers);
  }
  return text;
}

Problem problem_of(const OutOfMemory::State& m) {
  const std::string where = m.device.empty() ? "out of device memory: " : "out of memory on " + m.device + ": ";
  return {.id = "MEMORY",
          .message = where + m.label + " (" + std::string(to_string(m.category)) + ") needs " + to_text(m.wanted) +
                     " more" + (m.phase.empty() ? "" : ", in " + m.phase),
          .found = held_text(m),
          .expected = "to fit " + (m.capacity.value > 0 ? "a device of " + to_text(m.capacity) : "this machine"),
          .fix = "use a smaller batch or sequence, remat block or layer, a smaller loss chunk, or bf16 weights"};
}

// Null if the system refuses. Large buffers start on a huge page: reading memory in small pages is half as fast.
void* map(std::int64_t bytes) {
  const std::int64_t slack = bytes >= kHugePage ? kHugePage - kPage : 0;
  void* all =
      mmap(nullptr, static_cast<size_t>(bytes + slack), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  if (slack == 0) return all;
  char* const begin = static_cast<char*>(all);
  const auto before = static_cast<std::int64_t>(-reinterpret_cast<std::uintptr_t>(begin) & (kHugePage - 1));
  if (before > 0) munmap(begin, static_cast<size_t>(before));
  if (slack > before) munmap(begin + before + bytes, static_cast<size_t>(slack - before));
  madvise(begin + before, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  return begin + before;
}

}  // namespace

bool touch_pages(std::byte* begin, std::int64_t bytes) {
  if (bytes <= 0) return true;
  const auto before = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(begin) & (kPage - 1));
  begin -= before, bytes += before;
#ifdef MADV_POPULATE_WRITE
  if (madvise(begin, static_cast<size_t>(bytes), MADV_POPULATE_WRITE) == 0) return true;
  if (errno == ENOMEM || errno == EFAULT) return false;
#endif
  // Older kernels. Other threads may touch the page at either end, too, and nothing is written before all have.
  for (std::int64_t i = 0; i < bytes; i += kPage) *const_cast<volatile std::byte*>(begin + i) = std::byte{0};
  return true;
}

OutOfMemory::OutOfMemory(State what) : Error(problem_of(what), Kind::failed), moment(std::move(what)) {}

// The caller holds mutex_.
OutOfMemory Arena::refused(const Allocation& wanted, Bytes capacity) const {
  std::map<std::pair<MemoryCategory, std::string>, OutOfMemory::Held> by_label;
  for (const auto& [data, held] : held_) {
    const auto [at, fresh] = by_label.try_emplace({held.category, held.label}, held);
    if (fresh) continue;
    at->second.bytes += held.bytes;
    ++at->second.buffers;
  }
  OutOfMemory::State moment{.device = {},
                            .phase = {},
                            .label = std::string(wanted.label),
                            .category = wanted.category,
                            .wanted = wanted.pages(),
                            .capacity = capacity,
                            .held = use_.now,
                            .largest = {}};
  for (auto& [key, held] : by_label) moment.largest.push_back(std::move(held));
  std::stable_sort(moment.largest.begin(), moment.largest.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return OutOfMemory(std::move(moment));
}

void* Arena::allocate(const Allocation& wanted, const Touch& touch) {
  const Bytes size = wanted.pages();
  const MemoryCategory category = wanted.category;
  if (size.value == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  if (capacity_.value > 0 && use_.now.total() + size > capacity_) throw refused(wanted, capacity_);
  void* data = map(size.value);
  if (!data) throw refused(wanted, Bytes(0));
  // All pages now, so that the ledger and RSS agree and no step pays for page faults.
  if (touch) touch(static_cast<std::byte*>(data));
  if (!touch_pages(static_cast<std::byte*>(data), size.value)) {
    munmap(data, static_cast<size_t>(size.value));
    throw refused(wanted, Bytes(0));
  }
  held_.try_emplace(data, OutOfMemory::Held{std::string(wanted.label), category, size});
  use_.now[category] += size;
  if (use_.now[category] > use_.category_peaks[category]) use_.category_peaks[category] = use_.now[category];
  if (use_.now.total() > use_.at_peak.total()) use_.at_peak = use_.now;
  return data;
}

void Arena::release(const Allocation& allocation, void* data) noexcept {
  const Bytes size = allocation.pages();
  const std::lock_guard lock(mutex_);
  munmap(data, static_cast<size_t>(size.value));
  held_.erase(data);
  use_.now[allocation.category] -= size;
}

MemoryUse Arena::use() const {
  const std::lock_guard lock(mutex_);
  return use_;
}

void Arena::reset_peak() {
  const std::lock_guard lock(mutex_);
  use_.at_peak = use_.now;
  use_.category_peaks = use_.now;
}

}  // namespace mw::engine
