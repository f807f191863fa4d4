// SPDX-License-Identifier: Apache-2.0
// Limits how many progress events a run records. Not thread-safe.
#pragma once
#include <optional>

#include "core/base/event.h"

namespace mw {

// Passes on every event but most of the progress within a phase: one in a tenth of a second (of the time of the
// events), and always the first and the last of a phase.
class ProgressLimit {
 public:
  static constexpr double kSeconds = 0.1;
  explicit ProgressLimit(EventSink next) : next_(std::move(next)) {}
  void operator()(const Event& event);
  void end_phase();  // passes on the last progress, if it was not; call it at the end of the run

 private:
  void pass(const Event& event);
  EventSink next_;
  std::optional<event::Progress> phase_, waiting_;  // the last that was passed on; newer than it
  double passed_s_ = 0, last_s_ = 0;                // time of phase_, and of any event that was passed on
};

}  // namespace mw
