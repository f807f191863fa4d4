// SPDX-License-Identifier: Apache-2.0
// A launch, or the care for one again, on a thread of its own, for a window. Events arrive at the sink on that thread.
#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "core/launch/launch.h"

namespace mw::launch {

class LaunchJob {
 public:
  LaunchJob(Request request, hardware::LoadCatalogue catalogue, EventSink sink);
  LaunchJob(Again again, EventSink sink);
  ~LaunchJob();   // detaches and joins
  void cancel();  // ends the job there
  void detach();  // leaves it alone
  // Afterwards: either the sink had a Finished, or the job is detached, or problem() says why it is not attended to.
  bool finished() const;
  std::optional<Problem> problem() const;  // once finished

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mw::launch
