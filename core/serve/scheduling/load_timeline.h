// SPDX-License-Identifier: Apache-2.0
// State of a server over time, bounded however long it runs: evenly spaced, the spacing doubled when there are too many
// samples. One thread.
#pragma once
#include <vector>

#include "core/formats/results/bench_result.h"
#include "core/serve/scheduling/scheduler.h"

namespace mw::serve {

class LoadTimeline {
 public:
  static constexpr size_t kMost = 2000;  // samples

  // After every step; s on the server's clock, tokens since it began. Mostly nothing happens.
  void add(double now_s, const SchedulerState& state, std::int64_t output_tokens) {
    if (now_s >= next_s_) sample(now_s, state, output_tokens);
  }
  void sample(double now_s, const SchedulerState& state, std::int64_t output_tokens);
  std::vector<formats::LoadSample> take();  // and goes on with the finest spacing

 private:
  static constexpr double kFinest = 0.02;  // s
  void thin();

  std::vector<formats::LoadSample> samples_;
  double spacing_s_ = kFinest, next_s_ = 0, begin_s_ = 0, last_s_ = 0;
  std::int64_t tokens_ = 0;
};

}  // namespace mw::serve
