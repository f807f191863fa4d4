// SPDX-License-Identifier: Apache-2.0
// Sends the requests of a load at their times and collects the answers: each in a thread of its own, the body built
// before its time has come, so that a request leaves when it should. One thread drives it.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "core/serve/load/load.h"
#include "core/serve/load/stream_client.h"
#include "core/serve/load/sweep.h"

namespace mw::serve {

struct HttpRequestSource {
  HttpTarget target;
  std::function<std::string(const TimedRequest&)> body;  // any thread
  std::function<ExpectedUsage(const TimedRequest&)> expected;
};

class HttpLoadDriver {
 public:
  // Closed loop: `most` users. Open: `most` requests in flight at once.
  HttpLoadDriver(const HttpRequestSource& work, const std::vector<TimedRequest>& requests, Arrival arrival, int most,
                 std::stop_token stop);
  HttpClock::time_point origin() const { return origin_; }  // time 0 of the requests, a little ahead of construction
  // One for every request, in their order; `stopped` where a stop came first.
  std::vector<StreamedCompletion> play(const LoadBackend::OnProgress& progress);

 private:
  void dispatch(size_t index);
  void worker();
  bool take(size_t& index);
  void send(StreamClient& client, size_t index);
  void wait_until(HttpClock::time_point time, const LoadBackend::OnProgress& progress);
  void wait_for_all(const LoadBackend::OnProgress& progress);
  void report(const LoadBackend::OnProgress& progress);

  const HttpRequestSource& work_;
  const std::vector<TimedRequest>& requests_;
  const Arrival arrival_;
  const size_t most_;
  const std::stop_token stop_;
  const HttpClock::time_point origin_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<size_t> due_;
  size_t idle_ = 0, done_ = 0, reported_ = 0;
  bool all_dispatched_ = false;
  std::vector<StreamedCompletion> answers_;
  std::vector<std::jthread> workers_;
};

}  // namespace mw::serve
