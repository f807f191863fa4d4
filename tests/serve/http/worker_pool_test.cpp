// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/serve/http/http_connections.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <set>
#include <thread>

namespace mw::serve {
namespace {

TEST(WorkerPool, ReusesThreadsUpToTheLimit) {
  std::atomic<int> ran{0};
  WorkerPool pool(3);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  for (int round = 0; round < 20; ++round) {
    std::latch all_started(3), release(1);
    for (int i = 0; i < 3; ++i)
      EXPECT_TRUE(pool.run([&] {
        all_started.count_down();
        release.wait();
        ++ran;
        const std::lock_guard lock(mutex);
        threads.insert(std::this_thread::get_id());
      }));
    all_started.wait();
    EXPECT_EQ(pool.busy(), 3);
    EXPECT_FALSE(pool.run([] {})) << "all threads are busy";
    release.count_down();
    while (pool.busy() > 0) std::this_thread::yield();
  }
  EXPECT_EQ(ran, 60);
  EXPECT_EQ(threads.size(), 3u);
}

TEST(WorkerPool, CreatesThreadsOnDemand) {
  std::set<std::thread::id> threads;
  WorkerPool pool(100);
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(pool.run([&] { threads.insert(std::this_thread::get_id()); }));
    while (pool.busy() > 0) std::this_thread::yield();
  }
  EXPECT_EQ(threads.size(), 1u) << "tasks ran one after the other";
}

TEST(WorkerPool, JoinWaitsForRunningTasksAndRejectsNewOnes) {
  std::atomic<bool> ended{false};
  std::latch started(1), release(1);
  WorkerPool pool(2);
  ASSERT_TRUE(pool.run([&] {
    started.count_down();
    release.wait();
    ended = true;
  }));
  started.wait();
  std::thread joining([&] {
    pool.join();
    EXPECT_TRUE(ended);
  });
  while (pool.run([] {})) std::this_thread::yield();  // until join() has begun
  release.count_down();
  joining.join();
  EXPECT_EQ(pool.busy(), 0);
}

}  // namespace
}  // namespace mw::serve
