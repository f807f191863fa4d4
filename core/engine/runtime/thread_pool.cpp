// SPDX-License-Identifier: Apache-2.0
#include "core/engine/runtime/thread_pool.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

namespace mw::engine {
namespace {

constexpr int kWorkerNice = 5;
using Clock = std::chrono::steady_clock;

thread_local bool inside_parallel_for = false;

using Body = std::function<void(std::int64_t, std::int64_t)>;

// Kernels follow each other within microseconds and a server's steps within tens of them, but a thread that is put to
// sleep takes longer than that to wake. So it holds its core for a while. Where that is in vain, as it is when others
// have the cores that this waits for, it is only tried now and then. After a pause, though, the threads may wake on one
// core, and the scheduler parts them only while both want it.
class Patience {  // one thread's
 public:
  // Until `ready`, or for a while.
  template <class Ready>
  void linger(const Ready& ready) {
    const Clock::time_point now = Clock::now();
    if (now - last_ > kPause) parting_ = now + kParting;
    const bool trusting = in_vain_ < kTrust || now < parting_ || ++waits_ % kTry == 0;
    in_vain_ = until(ready, trusting ? kMost : kLeast) ? (trusting ? 0 : in_vain_) : in_vain_ + 1;
    last_ = Clock::now();
  }

 private:
  template <class Ready>
  static bool until(const Ready& ready, Clock::duration most) {
    constexpr int kPauses = 16;  // between two looks at the clock
    const Clock::time_point begun = Clock::now();
    while (true) {
      for (int i = 0; i < kPauses; ++i) {
        if (ready()) return true;
        __builtin_ia32_pause();
      }
      if (Clock::now() - begun > most) return false;
    }
  }

  static constexpr std::chrono::microseconds kLeast{10}, kMost{150};
  static constexpr std::chrono::milliseconds kPause{3}, kParting{60};
  static constexpr unsigned kTrust = 2, kTry = 16;
  Clock::time_point last_, parting_;
  unsigned in_vain_ = 0, waits_ = 0;  // in vain: one after another
};

}  // namespace

struct ThreadPool::Impl {
  int threads = 1;
  std::vector<std::thread> workers;
  std::vector<std::exception_ptr> errors;
  // The job: written by the caller before `generation` moves, read by workers after.
  const Body* body = nullptr;
  std::int64_t count = 0, grain = 1;
  std::atomic<std::uint32_t> generation{0}, running{0};
  std::atomic<bool> quit{false};
  Patience patience;  // the caller's

  std::pair<std::int64_t, std::int64_t> part(int thread) const {
    const std::int64_t units = (count + grain - 1) / grain;
    const auto edge = [&](int t) { return std::min(count, units * t / threads * grain); };
    return {edge(thread), edge(thread + 1)};
  }

  void run_part(int thread) {
    const auto [begin, end] = part(thread);
    if (begin >= end) return;
    try {
      (*body)(begin, end);
    } catch (...) {
      errors[static_cast<size_t>(thread)] = std::current_exception();
    }
  }

  void work(int thread) {
    lower_priority();
    inside_parallel_for = true;
    std::uint32_t seen = 0;
    Patience own;
    while (true) {
      own.linger([&] { return generation.load(std::memory_order_acquire) != seen; });
      generation.wait(seen, std::memory_order_acquire);
      seen = generation.load(std::memory_order_acquire);
      if (quit.load()) return;
      run_part(thread);
      if (running.fetch_sub(1, std::memory_order_acq_rel) == 1) running.notify_one();
    }
  }
};

void lower_priority() {
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), getpriority(PRIO_PROCESS, 0) + kWorkerNice);
}

ThreadPool::ThreadPool(int threads) : impl_(std::make_unique<Impl>()) {
  impl_->threads = std::max(1, threads);
  impl_->errors.resize(static_cast<size_t>(impl_->threads));
  for (int t = 1; t < impl_->threads; ++t) impl_->workers.emplace_back([this, t] { impl_->work(t); });
}

ThreadPool::~ThreadPool() {
  impl_->quit = true;
  impl_->generation.fetch_add(1, std::memory_order_release);
  impl_->generation.notify_all();
  for (std::thread& worker : impl_->workers) worker.join();
}

int ThreadPool::threads() const {
  return impl_->threads;
}

void ThreadPool::parallel_for(std::int64_t count, std::int64_t grain, const Body& fn) {
  if (count <= 0) return;
  grain = std::max<std::int64_t>(1, grain);
  if (inside_parallel_for || impl_->threads == 1 || count <= grain) return fn(0, count);
  Impl& p = *impl_;
  p.body = &fn, p.count = count, p.grain = grain;
  p.running.store(static_cast<std::uint32_t>(p.threads - 1), std::memory_order_relaxed);
  p.generation.fetch_add(1, std::memory_order_release);
  p.generation.notify_all();
  inside_parallel_for = true;
  p.run_part(0);
  inside_parallel_for = false;
  p.patience.linger([&] { return p.running.load(std::memory_order_acquire) == 0; });
  for (std::uint32_t left = p.running.load(std::memory_order_acquire); left != 0;
       left = p.running.load(std::memory_order_acquire))
    p.running.wait(left, std::memory_order_acquire);
  std::exception_ptr first;
  for (std::exception_ptr& error : p.errors) {
    if (!first) first = error;
    error = nullptr;
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace mw::engine
