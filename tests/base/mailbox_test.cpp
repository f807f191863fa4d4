// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/mailbox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>
#include <vector>

namespace mw {
namespace {

struct Item {
  int sender = 0, number = 0;
  Delivery delivery = Delivery::telemetry;
};

TEST(Mailbox, KeepsOrderBelowCapacity) {
  Mailbox<int> box(100);
  for (int i = 0; i < 100; ++i) box.push(i, i % 7 ? Delivery::telemetry : Delivery::state);
  const auto drained = box.drain();
  ASSERT_EQ(drained.items.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(drained.items[static_cast<size_t>(i)], i);
  EXPECT_EQ(drained.dropped_total, 0u);
  EXPECT_TRUE(box.drain().items.empty());
}

TEST(Mailbox, DropsAndCountsOldestTelemetryButNoState) {
  Mailbox<Item> box(64);
  for (int i = 0; i < 1000; ++i)
    box.push({0, i, i % 10 ? Delivery::telemetry : Delivery::state}, i % 10 ? Delivery::telemetry : Delivery::state);
  const auto drained = box.drain();
  size_t states = 0, telemetry = 0;
  int last = -1, oldest_telemetry = 1000;
  for (const Item& item : drained.items) {
    EXPECT_GT(item.number, last);
    last = item.number;
    if (item.delivery == Delivery::state) {
      ++states;
    } else {
      ++telemetry;
      oldest_telemetry = std::min(oldest_telemetry, item.number);
    }
  }
  EXPECT_EQ(states, 100u);
  EXPECT_LE(telemetry, 64u);
  EXPECT_GE(telemetry, 40u);
  EXPECT_EQ(telemetry + drained.dropped_total, 900u);
  EXPECT_GT(oldest_telemetry, 900);
  EXPECT_EQ(last, 999);
}

TEST(Mailbox, AccountsForEveryItemOfSeveralThreads) {
  constexpr int kSenders = 4, kEach = 20000;
  Mailbox<Item> box(256);
  std::atomic<int> running = kSenders;
  std::vector<std::thread> senders;
  for (int s = 0; s < kSenders; ++s)
    senders.emplace_back([&box, &running, s] {
      for (int i = 0; i < kEach; ++i) {
        const Delivery d = i % 100 == 0 ? Delivery::state : Delivery::telemetry;
        box.push({s, i, d}, d);
      }
      --running;
    });
  size_t received = 0, states = 0;
  std::uint64_t dropped = 0;
  std::map<int, int> last;
  const auto drain = [&] {
    const auto drained = box.drain();
    EXPECT_GE(drained.dropped_total, dropped);
    dropped = drained.dropped_total;
    received += drained.items.size();
    for (const Item& item : drained.items) {
      states += item.delivery == Delivery::state;
      const auto at = last.try_emplace(item.sender, -1).first;
      EXPECT_GT(item.number, at->second);  // each sender's order is kept
      at->second = item.number;
    }
  };
  while (running > 0) drain();
  for (auto& sender : senders) sender.join();
  drain();
  EXPECT_EQ(received + dropped, static_cast<size_t>(kSenders * kEach));
  EXPECT_EQ(states, static_cast<size_t>(kSenders * kEach / 100));
}

}  // namespace
}  // namespace mw
