// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/ordered_tasks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace mw {
namespace {

TEST(OrderedTasks, RunsAllTasksInOrder) {
  std::vector<int> done;
  OrderedTasks tasks(100);
  for (int i = 0; i < 1000; ++i) tasks.add([&done, i] { done.push_back(i); }, 7);
  tasks.finish();
  ASSERT_EQ(done.size(), 1000U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(done[static_cast<size_t>(i)], i);
}

TEST(OrderedTasks, HoldsNoMoreThanItsLimitAndOneTask) {
  std::atomic<int> held = 0, most = 0;
  OrderedTasks tasks(10);
  for (int i = 0; i < 200; ++i) {
    most = std::max(most.load(), held += 4);
    tasks.add([&] { held -= 4; }, 4);
  }
  tasks.finish();
  EXPECT_LE(most, 10 + 4 + 4 + 4);  // the limit is exceeded by one task; one runs, one is being added
}

TEST(OrderedTasks, ReportsAnErrorAndRunsNothingAfterIt) {
  std::atomic<bool> ran = false;
  OrderedTasks tasks(1 << 20);
  tasks.add([] { throw std::runtime_error("no space"); }, 1);
  EXPECT_THROW(
      {
        tasks.add([&] { ran = true; }, 1);
        tasks.finish();
      },
      std::runtime_error);
  EXPECT_THROW(tasks.finish(), std::runtime_error);
  EXPECT_FALSE(ran);
}

TEST(OrderedTasks, CanBeDestroyedWhileTasksWait) {
  std::atomic<int> ran = 0;
  std::atomic<bool> began = false, go = false;
  {
    OrderedTasks tasks(1 << 20);
    tasks.add(
        [&] {
          began = true;
          began.notify_all();
          go.wait(false);
          ++ran;
        },
        1);
    began.wait(false);
    for (int i = 0; i < 5; ++i) tasks.add([&] { ++ran; }, 1);
    go = true;
    go.notify_all();
  }
  EXPECT_GE(ran, 1);
}

}  // namespace
}  // namespace mw
