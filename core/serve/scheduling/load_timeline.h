// SPDX-License-Identifier: Apache-2.0
// Samples the state of a server at even intervals. Doubles the interval when the number of samples reaches a limit, so
// memory stays bounded. Not thread-safe.
#pragma once
#include <vector>

#include "core/formats/results/bench_result.h"
#include "core/serve/scheduling/scheduler.h"

namespace mw::serve {

class LoadTimeline {
 public:
  static constexpr size_t kMaxSamples = 2000;

  // Call it after every step; takes a sample when one is due. `now_s`: seconds of the server's clock; `output_tokens`:
  // generated since the server began.
  void add(double now_s, const SchedulerState& state, std::int64_t output_tokens) {
    if (is_due(now_s)) sample(now_s, state, output_tokens);
  }
  bool is_due(double now_s) const { return now_s >= next_s_; }
  void sample(double now_s, const SchedulerState& state, std::int64_t output_tokens);
  std::vector<formats::LoadSample> take();  // returns the samples and starts again with the shortest interval

 private:
  static constexpr double kShortest = 0.02;  // s
  void halve();

  std::vector<formats::LoadSample> samples_;
  double interval_s_ = kShortest, next_s_ = 0, begin_s_ = 0, last_s_ = 0;
  std::int64_t tokens_ = 0;
};

}  // namespace mw::serve
