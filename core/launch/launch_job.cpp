// SPDX-License-Identifier: Apache-2.0
#include "core/launch/launch_job.h"

#include <atomic>
#include <thread>

namespace mw::launch {

struct LaunchJob::Impl {
  std::stop_source detach, cancel;
  std::atomic<bool> finished{false};
  std::optional<Problem> problem;  // written before finished
  std::jthread thread;

  template <class Work>
  void begin(Work work) {
    thread = std::jthread([this, work = std::move(work)] {
      try {
        work(StopTokens{detach.get_token(), cancel.get_token()});
      } catch (const Error& error) {
        if (error.kind() != Error::Kind::cancelled) problem = error.problem();
      } catch (const std::exception& error) {
        problem = Problem{.id = "INTERNAL", .message = error.what()};
      }
      finished = true;
    });
  }
};

LaunchJob::LaunchJob(LaunchRequest request, hardware::LoadCatalogue catalogue, EventSink sink)
    : impl_(std::make_unique<Impl>()) {
  impl_->begin([request = std::move(request), catalogue = std::move(catalogue),
                sink = std::move(sink)](const StopTokens& stops) { launch(request, catalogue(), sink, stops); });
}

LaunchJob::LaunchJob(ReattachRequest again, EventSink sink) : impl_(std::make_unique<Impl>()) {
  impl_->begin(
      [again = std::move(again), sink = std::move(sink)](const StopTokens& stops) { reattach(again, sink, stops); });
}

LaunchJob::~LaunchJob() {
  detach();
}
void LaunchJob::cancel() {
  impl_->cancel.request_stop();
}
void LaunchJob::detach() {
  impl_->detach.request_stop();
}
bool LaunchJob::finished() const {
  return impl_->finished;
}
std::optional<Problem> LaunchJob::problem() const {
  return finished() ? impl_->problem : std::nullopt;
}

}  // namespace mw::launch
