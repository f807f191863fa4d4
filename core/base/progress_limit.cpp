// SPDX-License-Identifier: Apache-2.0
#include "core/base/progress_limit.h"

#include <cmath>
#include <utility>

namespace mw {

void ProgressLimit::pass(const Event& event) {
  last_s_ = event.time_s;
  next_(event);
}

void ProgressLimit::end_phase() {
  if (waiting_) pass({last_s_, *std::exchange(waiting_, std::nullopt)});
  phase_.reset();
}

void ProgressLimit::operator()(const Event& event) {
  const auto* progress = std::get_if<event::Progress>(&event.body);
  if (!progress) return pass(event);
  if (phase_ && phase_->phase != progress->phase) end_phase();
  if (phase_ && phase_->done == progress->done && phase_->total == progress->total) return;  // nothing new
  const bool is_soon = phase_ && std::abs(event.time_s - passed_s_) < kSeconds;
  const bool is_last = progress->total > 0 && progress->done >= progress->total;
  if (is_soon && !is_last) {
    waiting_ = *progress;
    return;
  }
  waiting_.reset();
  phase_ = *progress;
  passed_s_ = event.time_s;
  pass(event);
}

}  // namespace mw
