// SPDX-License-Identifier: Apache-2.0
// Runs launch() or reattach() on a thread of its own; the sink is called on that thread.
#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "core/launch/launch.h"

namespace mw::launch {

class LaunchJob {
 public:
  LaunchJob(LaunchRequest request, hardware::LoadCatalogue catalogue, EventSink sink);
  LaunchJob(ReattachRequest again, EventSink sink);
  ~LaunchJob();   // detaches and joins
  void cancel();  // stops the job
  void detach();  // stops supervising; the job continues
  // When finished, the sink has received a Finished event, the job is detached, or problem() is the reason.
  bool finished() const;
  std::optional<Problem> problem() const;  // once finished

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mw::launch
