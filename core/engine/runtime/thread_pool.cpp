// SPDX-License-Identifier: Apache-2.0
#include "core/engine/runtime/thread_pool.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "core/engine/runtime/work_split.h"

namespace mw::engine {
namespace {

constexpr int kWorkerNice = 5;
using Clock = std::chrono::steady_clock;

thread_local bool inside_parallel_for = false;

using Body = std::function<void(std::int64_t, std::int64_t)>;

// Tells the processor that this thread spins.
inline void pause_processor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins for a while before a thread sleeps. Kernels follow each other within microseconds and a server's steps within
// tens of them, but a sleeping thread takes longer than that to wake. If spinning repeatedly fails, as it does when
// other processes have the cores, the thread spins only briefly and retries the long wait now and then. After a pause
// threads may wake on the same core, and the scheduler separates them only while both run, so the long wait is used
// then.
class SpinWait {  // of one thread
 public:
  // Returns when `ready` or when the spinning time is over.
  template <class Ready>
  void spin(const Ready& ready) {
    const Clock::time_point now = Clock::now();
    if (now - last_ > kPause) separating_ = now + kSeparating;
    const bool patient = failures_ < kMaxFailures || now < separating_ || ++waits_ % kRetry == 0;
    failures_ = spin_until(ready, patient ? kLongest : kShortest) ? (patient ? 0 : failures_) : failures_ + 1;
    last_ = Clock::now();
  }

 private:
  template <class Ready>
  static bool spin_until(const Ready& ready, Clock::duration limit) {
    constexpr int kPauses = 16;  // between two looks at the clock
    const Clock::time_point begun = Clock::now();
    while (true) {
      for (int i = 0; i < kPauses; ++i) {
        if (ready()) return true;
        pause_processor();
      }
      if (Clock::now() - begun > limit) return false;
    }
  }

  static constexpr std::chrono::microseconds kShortest{10}, kLongest{150};
  static constexpr std::chrono::milliseconds kPause{3}, kSeparating{60};
  static constexpr unsigned kMaxFailures = 2, kRetry = 16;
  Clock::time_point last_, separating_;
  unsigned failures_ = 0, waits_ = 0;  // failures: consecutive
};

// Binds the calling thread to CPUs. Refused, as after a change of the process's own set, it runs where it may.
void stay_on(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus)
    if (cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

}  // namespace

struct ThreadPool::Impl {
  int threads = 1, nodes = 1;
  std::vector<std::thread> workers;
  std::vector<std::exception_ptr> errors;
  // The job: written by the caller before `generation` moves, read by workers after.
  const Body* body = nullptr;
  std::int64_t count = 0, grain = 1;
  std::atomic<std::uint32_t> generation{0}, running{0};
  std::atomic<bool> quit{false};
  SpinWait spin_wait;  // of the caller

  std::pair<std::int64_t, std::int64_t> part(int thread) const {
    return {split_edge(count, grain, thread, threads), split_edge(count, grain, thread + 1, threads)};
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
    SpinWait own;
    while (true) {
      own.spin([&] { return generation.load(std::memory_order_acquire) != seen; });
      generation.wait(seen, std::memory_order_acquire);
      seen = generation.load(std::memory_order_acquire);
      if (quit.load()) return;
      run_part(thread);
      if (running.fetch_sub(1, std::memory_order_acq_rel) == 1) running.notify_one();
    }
  }
};

void lower_priority() {
  // Relative to the main thread: a thread inherits its creator's priority, so that the pool of a device's thread would
  // be lowered twice.
  setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, static_cast<id_t>(getpid())) + kWorkerNice);
}

ThreadPool::ThreadPool(int threads, const CpuTopology& machine) : impl_(std::make_unique<Impl>()) {
  impl_->threads = std::max(1, threads);
  impl_->errors.resize(static_cast<size_t>(impl_->threads));
  const std::vector<int> nodes = nodes_of_threads(machine, impl_->threads);
  impl_->nodes = nodes.back() - nodes.front() + 1;
  for (int t = 1; t < impl_->threads; ++t) {
    std::vector<int> cpus;
    if (impl_->nodes > 1) cpus = machine.nodes[static_cast<size_t>(nodes[static_cast<size_t>(t)])];
    impl_->workers.emplace_back([this, t, own = std::move(cpus)] {
      if (!own.empty()) stay_on(own);
      impl_->work(t);
    });
  }
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

int ThreadPool::nodes() const {
  return impl_->nodes;
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
  p.spin_wait.spin([&] { return p.running.load(std::memory_order_acquire) == 0; });
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
