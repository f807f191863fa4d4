// SPDX-License-Identifier: Apache-2.0
// Queue from worker threads to one polling reader (the window's frame clock). When full, it drops and counts the oldest
// telemetry; state changes are never dropped. push is thread-safe; drain on one thread.
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
    std::uint64_t dropped_total;  // telemetry items dropped since construction
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
  void drop_oldest() {  // drops a quarter at once, so that the linear cost is paid rarely
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
