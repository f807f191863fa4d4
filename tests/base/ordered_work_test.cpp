// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/ordered_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace mw {
namespace {

TEST(OrderedWork, ReturnsResultsInTheOrderOfTheFunctions) {
  for (const int threads : {0, 1, 3}) {
    OrderedWork<int> work(threads);
    int taken = 0;
    for (int i = 0; i < 1000; ++i) {
      work.give([i] { return i; });
      if (work.pending() > 7) {
        EXPECT_EQ(work.take(), taken++);
      }
    }
    while (work.pending() > 0) EXPECT_EQ(work.take(), taken++);
    EXPECT_EQ(taken, 1000) << threads;
  }
}

TEST(OrderedWork, OneThreadRunsTheFunctionsInOrder) {
  std::vector<int> done;
  OrderedWork<void> work(1);
  for (int i = 0; i < 1000; ++i) work.give([&done, i] { done.push_back(i); });
  while (work.pending() > 0) work.take();
  ASSERT_EQ(done.size(), 1000U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(done[static_cast<size_t>(i)], i);
}

TEST(OrderedWork, TakeRethrowsWhatTheFunctionThrew) {
  OrderedWork<int> work(2);
  work.give([] { return 1; });
  work.give([]() -> int { throw std::runtime_error("no space"); });
  work.give([] { return 3; });
  EXPECT_EQ(work.take(), 1);
  EXPECT_THROW(work.take(), std::runtime_error);
  EXPECT_EQ(work.take(), 3);
}

TEST(OrderedWork, CanBeDestroyedWhileFunctionsWait) {
  std::atomic<int> ran = 0;
  std::atomic<bool> began = false, go = false;
  {
    OrderedWork<void> work(1);
    work.give([&] {
      began = true;
      began.notify_all();
      go.wait(false);
      ++ran;
    });
    began.wait(false);
    for (int i = 0; i < 5; ++i) work.give([&] { ++ran; });
    go = true;
    go.notify_all();
  }
  EXPECT_GE(ran, 1);
}

}  // namespace
}  // namespace mw
