// SPDX-License-Identifier: Apache-2.0
// The bridge from worker threads to whoever polls (the window's frame clock): telemetry drops the oldest when
// nobody drains it and counts what it dropped; state changes never drop. push from any thread, drain from one.
#pragma once
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace mw {

enum class Delivery { telemetry, state };

template <class T>
class Mailbox {
 public:
  explicit Mailbox(size_t telemetry_capacity = 1 << 16) : capacity_(telemetry_capacity) {}

  void push(T item, Delivery delivery) {
    const std::lock_guard lock(mutex_);
    if (delivery == Delivery::telemetry && telemetry_ >= capacity_) drop_oldest();
    telemetry_ += delivery == Delivery::telemetry;
    items_.push_back({std::move(item), delivery});
  }

  struct Drained {
    std::vector<T> items;         // in push order
    std::uint64_t dropped_total;  // telemetry lost since construction
  };
  Drained drain() {
    std::vector<Entry> taken;
    std::uint64_t dropped = 0;
    {
      const std::lock_guard lock(mutex_);
      taken.swap(items_);
      telemetry_ = 0;
      dropped = dropped_;
    }
    Drained out{{}, dropped};
    out.items.reserve(taken.size());
    for (Entry& e : taken) out.items.push_back(std::move(e.item));
    return out;
  }

 private:
  struct Entry {
    T item;
    Delivery delivery;
  };
  void drop_oldest() {  // linear, but only once nobody has drained for `capacity_` items: drop a quarter at once
    size_t to_drop = capacity_ / 4 + 1;
    dropped_ += to_drop;
    telemetry_ -= to_drop;
    std::vector<Entry> kept;
    kept.reserve(items_.size());
    for (Entry& e : items_) {
      if (e.delivery == Delivery::telemetry && to_drop > 0)
        --to_drop;
      else
        kept.push_back(std::move(e));
    }
    items_.swap(kept);
  }

  std::mutex mutex_;
  std::vector<Entry> items_;
  size_t capacity_, telemetry_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace mw
