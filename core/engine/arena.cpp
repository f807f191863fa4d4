// SPDX-License-Identifier: Apache-2.0
#include "core/engine/arena.h"

#include <sys/mman.h>

#include <cerrno>
#include <string>

#include "core/base/buffer_sizes.h"
#include "core/base/error.h"

namespace mw::engine {
namespace {

constexpr std::int64_t kPage = sizes::kPageBytes, kHugePage = 2 << 20;

Bytes whole_pages(Bytes bytes) {
  return Bytes(sizes::round_up(bytes.value, kPage));
}

std::string ledger_text(const Ledger& ledger) {
  std::string text;
  for (size_t i = 0; i < kMemoryCategories; ++i) {
    const auto category = static_cast<MemoryCategory>(i);
    if (ledger[category].value == 0) continue;
    text += (text.empty() ? "" : ", ") + std::string(to_string(category)) + " " + to_text(ledger[category]);
  }
  return text.empty() ? "nothing" : text;
}

Error out_of_memory(MemoryCategory category, Bytes bytes, const char* label, const Ledger& held, Bytes capacity) {
  const std::string limit = capacity.value > 0 ? "a device of " + to_text(capacity) : "this machine";
  return Error({.id = "MEMORY",
                .message = "out of device memory: " + std::string(label) + " (" + std::string(to_string(category)) +
                           ") needs " + to_text(bytes) + " more",
                .found = to_text(held.total()) + " held: " + ledger_text(held),
                .expected = "to fit " + limit,
                .fix = "use a smaller batch or sequence, remat block or layer, a smaller loss chunk, or bf16 weights"},
               Error::Kind::failed);
}

// Null where the system refuses. Large ones begin with a huge page: reading memory in small pages is half as fast.
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

// Present from the start, so that the ledger and RSS agree and no step pays for page faults.
bool populate(char* data, std::int64_t bytes) {
#ifdef MADV_POPULATE_WRITE
  if (madvise(data, static_cast<size_t>(bytes), MADV_POPULATE_WRITE) == 0) return true;
  if (errno == ENOMEM || errno == EFAULT) return false;
#endif
  for (std::int64_t i = 0; i < bytes; i += kPage) *const_cast<volatile char*>(data + i) = 0;  // older kernels
  return true;
}

}  // namespace

void* Arena::allocate(MemoryCategory category, Bytes bytes, const char* label) {
  const Bytes size = whole_pages(bytes);
  if (size.value == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  if (capacity_.value > 0 && use_.now.total() + size > capacity_)
    throw out_of_memory(category, size, label, use_.now, capacity_);
  void* data = map(size.value);
  if (!data) throw out_of_memory(category, size, label, use_.now, Bytes(0));
  if (!populate(static_cast<char*>(data), size.value)) {
    munmap(data, static_cast<size_t>(size.value));
    throw out_of_memory(category, size, label, use_.now, Bytes(0));
  }
  use_.now[category] += size;
  if (use_.now[category] > use_.category_peaks[category]) use_.category_peaks[category] = use_.now[category];
  if (use_.now.total() > use_.at_peak.total()) use_.at_peak = use_.now;
  return data;
}

void Arena::release(MemoryCategory category, void* data, Bytes bytes) noexcept {
  const Bytes size = whole_pages(bytes);
  const std::lock_guard lock(mutex_);
  munmap(data, static_cast<size_t>(size.value));
  use_.now[category] -= size;
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
