// SPDX-License-Identifier: Apache-2.0
// Runs launch(), reattach() or the following of a running program on a thread of its own; the sink is called on that
// thread.
#pragma once
#include <atomic>
#include <functional>
#include <optional>
#include <stop_token>
#include <thread>

#include "core/import/follow.h"
#include "core/launch/launch.h"

namespace mw::launch {

class LaunchJob {
 public:
  LaunchJob(LaunchRequest request, plan::LoadContext context, EventSink sink);
  LaunchJob(ReattachRequest again, EventSink sink);
  LaunchJob(importing::FollowRequest follow, EventSink sink);  // cancel() and detach() both end the record
  ~LaunchJob() { detach(); }                                   // and joins
  void cancel() { cancel_.request_stop(); }                    // stops the job
  void detach() { detach_.request_stop(); }                    // stops supervising; the job continues
  // When finished, the sink has received a Finished event, the job is detached, or problem() is the reason.
  bool finished() const { return finished_; }
  std::optional<Problem> problem() const { return finished_ ? problem_ : std::nullopt; }  // once finished

 private:
  explicit LaunchJob(std::function<void(const StopTokens&)> work);

  std::stop_source detach_, cancel_;
  std::atomic<bool> finished_{false};
  std::optional<Problem> problem_;  // written before finished_
  std::jthread thread_;
};

}  // namespace mw::launch
