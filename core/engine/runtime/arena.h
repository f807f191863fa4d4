// SPDX-License-Identifier: Apache-2.0
// A device's memory: every byte the engine holds is allocated here as core/engine/layout says. Buffers are page-aligned
// and returned to the system when freed, so the ledger and the process's RSS agree. One thread allocates per device;
// use() may be called from any thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/engine/layout/allocation.h"

namespace mw::engine {

class Arena;

// Owns bytes of one category; zero-filled when allocated. Move-only.
template <class T>
class DeviceBuffer;

// An allocation that failed, and what the device held at that moment. Error "MEMORY", Kind::failed.
struct OutOfMemory : Error {
  struct Held {
    std::string label;
    MemoryCategory category{};
    Bytes bytes;  // of all buffers of that label
    int buffers = 1;
  };
  struct State {
    // Filled in by callers that know them, else empty: "device 3 (fsdp 0, tp 3)"; "the update of step 3".
    std::string device, phase;
    std::string label;  // of the buffer that did not fit
    MemoryCategory category{};
    Bytes wanted, capacity;  // capacity 0: the system refused the memory
    Ledger held;
    std::vector<Held> largest;  // largest first
  };
  explicit OutOfMemory(State what);
  State moment;
};

using Touch = std::function<void(std::byte* begin)>;
// Faults in the pages of [begin, begin + bytes) on the calling thread's NUMA node. False: the system refused.
bool touch_pages(std::byte* begin, std::int64_t bytes);

class Arena {
 public:
  // capacity 0: no limit. Exceeding it throws OutOfMemory, nothing allocated.
  explicit Arena(Bytes capacity = Bytes(0)) : capacity_(capacity) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Null for no bytes. `touch` may fault pages in before the rest is: from threads on the NUMA nodes that read them.
  void* allocate(const Allocation& wanted, const Touch& touch = {});
  void release(const Allocation& allocation, void* data) noexcept;
  MemoryUse use() const;
  void reset_peak();  // at_peak and category_peaks restart from now
  Bytes capacity() const { return capacity_; }

 private:
  OutOfMemory refused(const Allocation& wanted, Bytes capacity) const;

  Bytes capacity_;
  mutable std::mutex mutex_;
  MemoryUse use_;
  std::unordered_map<const void*, OutOfMemory::Held> held_;
};

template <class T>
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(Arena& arena, const Allocation& allocation, const Touch& touch = {})
      : arena_(&arena), allocation_(allocation), data_(static_cast<T*>(arena.allocate(allocation, touch))) {}
  DeviceBuffer(DeviceBuffer&& o) noexcept { swap(o); }
  DeviceBuffer& operator=(DeviceBuffer&& o) noexcept {
    DeviceBuffer taken(std::move(o));
    swap(taken);
    return *this;
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() {
    if (data_) arena_->release(allocation_, data_);
  }
  T* data() const { return data_; }
  const Allocation& allocation() const { return allocation_; }
  std::size_t size() const { return static_cast<std::size_t>(allocation_.bytes.value) / sizeof(T); }
  std::span<T> span() const { return {data_, size()}; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  void swap(DeviceBuffer& o) noexcept {
    std::swap(arena_, o.arena_);
    std::swap(allocation_, o.allocation_);
    std::swap(data_, o.data_);
  }
  Arena* arena_ = nullptr;
  Allocation allocation_;
  T* data_ = nullptr;
};

}  // namespace mw::engine
