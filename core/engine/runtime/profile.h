// SPDX-License-Identifier: Apache-2.0
// Wall time per kind of kernel, taken around whole calls on the driving thread.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/units.h"

namespace mw::engine {

enum class Kernel {
  projections,
  projections_back,
  weight_gradients,
  lora,
  attention,
  attention_back,
  norms,
  rope,
  geglu,
  head,
  cross_entropy,
  embedding,
  experts,
  sampling
};
inline constexpr size_t kKernels = 14;

struct KernelTime {
  std::string name;
  double seconds = 0;
  std::int64_t calls = 0;
  double flops = 0;
};

class Profile {
 public:
  struct Entry {
    double seconds = 0, flops = 0;
    std::int64_t calls = 0;
  };
  class Timer {
   public:
    Timer(Profile& profile, Kernel kernel, double flops)
        : entry_(profile.entries_[static_cast<size_t>(kernel)]), start_(std::chrono::steady_clock::now()) {
      entry_.flops += flops;
      ++entry_.calls;
    }
    ~Timer() { entry_.seconds += seconds_since(start_); }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

   private:
    Entry& entry_;
    std::chrono::steady_clock::time_point start_;
  };
  [[nodiscard]] Timer time(Kernel kernel, double flops = 0) { return Timer(*this, kernel, flops); }
  std::vector<KernelTime> take();  // kernels that ran since the last call

 private:
  friend class Timer;
  std::array<Entry, kKernels> entries_{};
};

}  // namespace mw::engine
