// SPDX-License-Identifier: Apache-2.0
#include "core/serve/scheduling/load_timeline.h"

#include <utility>

namespace mw::serve {

void LoadTimeline::sample(double now_s, const SchedulerState& state, std::int64_t output_tokens) {
  const double since = now_s - last_s_;
  samples_.push_back({.time_s = now_s,
                      .running = state.running,
                      .waiting = state.waiting,
                      .kv_used = state.kv_used,
                      .output_tokens_s = since > 0 ? static_cast<double>(output_tokens - tokens_) / since : 0});
  last_s_ = now_s, tokens_ = output_tokens;
  if (samples_.size() == kMaxSamples) halve();
  next_s_ = now_s + interval_s_;
}

std::vector<formats::LoadSample> LoadTimeline::take() {
  interval_s_ = kShortest;
  begin_s_ = last_s_;
  next_s_ = last_s_ + interval_s_;
  return std::exchange(samples_, {});
}

// Keeps the later of each pair of samples, with the mean rate of both.
void LoadTimeline::halve() {
  double before = begin_s_;
  for (size_t i = 0; i + 1 < samples_.size(); i += 2) {
    const formats::LoadSample &first = samples_[i], &second = samples_[i + 1];
    const double one = first.time_s - before, two = second.time_s - first.time_s, both = one + two;
    before = second.time_s;
    const double rate = both > 0 ? (first.output_tokens_s * one + second.output_tokens_s * two) / both : 0;
    samples_[i / 2] = second;
    samples_[i / 2].output_tokens_s = rate;
  }
  samples_.resize(kMaxSamples / 2);
  interval_s_ *= 2;
}

}  // namespace mw::serve
