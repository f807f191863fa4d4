// SPDX-License-Identifier: Apache-2.0
#include "core/launch/launch_job.h"

namespace mw::launch {

LaunchJob::LaunchJob(LaunchRequest request, plan::LoadContext context, EventSink sink)
    : LaunchJob([request = std::move(request), context = std::move(context),
                 sink = std::move(sink)](const StopTokens& stops) { launch(request, *context(), sink, stops); }) {}

LaunchJob::LaunchJob(ReattachRequest again, EventSink sink)
    : LaunchJob([again = std::move(again), sink = std::move(sink)](const StopTokens& stops) {
        reattach(again, sink, stops);
      }) {}

LaunchJob::LaunchJob(importing::FollowRequest follow, EventSink sink)
    : LaunchJob([follow = std::move(follow), sink = std::move(sink)](const StopTokens& stops) {
        const CombinedStopToken stop(stops.detach, stops.cancel);
        importing::follow(
            follow, sink, [](const std::string&) {}, stop.token());
      }) {}

LaunchJob::LaunchJob(std::function<void(const StopTokens&)> work) {
  thread_ = std::jthread([this, work = std::move(work)] {
    try {
      work({detach_.get_token(), cancel_.get_token()});
    } catch (const Error& error) {
      if (error.kind() != Error::Kind::cancelled) problem_ = error.problem();
    } catch (const std::exception& error) {
      problem_ = Problem{.id = "INTERNAL", .message = error.what()};
    }
    finished_ = true;
  });
}

}  // namespace mw::launch
