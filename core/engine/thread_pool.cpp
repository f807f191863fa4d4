// SPDX-License-Identifier: Apache-2.0
#include "core/engine/thread_pool.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

namespace mw::engine {
namespace {

constexpr int kWorkerNice = 5;
constexpr int kSpins = 500;  // about 10 us: kernels follow each other closely within a step

thread_local bool inside_parallel_for = false;

using Body = std::function<void(std::int64_t, std::int64_t)>;

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
    while (true) {
      for (int i = 0; i < kSpins && generation.load(std::memory_order_acquire) == seen; ++i) __builtin_ia32_pause();
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
  for (int i = 0; i < kSpins && p.running.load(std::memory_order_acquire) != 0; ++i) __builtin_ia32_pause();
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
