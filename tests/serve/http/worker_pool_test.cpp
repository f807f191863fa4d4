// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/serve/http/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>

namespace mw::serve {
namespace {

TEST(WorkerPool, RunsAtMostItsThreadsAndReusesThem) {
  std::atomic<int> ran{0};
  WorkerPool pool(3);
  EXPECT_EQ(pool.threads(), 0);
  for (int round = 0; round < 20; ++round) {
    std::latch all_started(3), release(1);
    for (int i = 0; i < 3; ++i)
      EXPECT_TRUE(pool.run([&] {
        all_started.count_down();
        release.wait();
        ++ran;
      }));
    all_started.wait();
    EXPECT_EQ(pool.busy(), 3);
    EXPECT_FALSE(pool.run([] {})) << "every thread is busy";
    release.count_down();
    while (pool.busy() > 0) std::this_thread::yield();
  }
  EXPECT_EQ(ran, 60);
  EXPECT_EQ(pool.threads(), 3);
}

TEST(WorkerPool, CreatesThreadsOnDemand) {
  WorkerPool pool(100);
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(pool.run([] {}));
    while (pool.busy() > 0) std::this_thread::yield();
  }
  EXPECT_EQ(pool.threads(), 1) << "one after the other";
}

TEST(WorkerPool, JoinWaitsForWhatRunsAndRefusesMore) {
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
  EXPECT_EQ(pool.threads(), 0);
}

}  // namespace
}  // namespace mw::serve
