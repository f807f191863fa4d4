// SPDX-License-Identifier: Apache-2.0
// Sends the requests of a load at their times and collects the completions. Every request in flight has a thread, and
// its body is built in advance so that it leaves on time. Not thread-safe.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "core/serve/load/load_backend.h"
#include "core/serve/load/stream_client.h"

namespace mw::serve {

struct HttpRequestSource {
  HttpTarget target;
  std::function<std::string(const TimedRequest&)> body;  // called on any thread
  std::function<ExpectedUsage(const TimedRequest&)> expected;
};

class HttpLoadDriver {
 public:
  // `max_in_flight`: users of a closed loop, otherwise the limit of requests in flight.
  HttpLoadDriver(const HttpRequestSource& source, const std::vector<TimedRequest>& requests, Arrival arrival,
                 int max_in_flight, std::stop_token stop);
  HttpClock::time_point origin() const { return origin_; }  // time 0 of the requests, shortly after construction
  // Returns one completion for every request, in their order; `stopped` if the stop came first.
  std::vector<StreamedCompletion> run(const LoadBackend::OnProgress& progress);

 private:
  void dispatch(size_t index);
  void work();
  bool take(size_t& index);
  void send(StreamClient& client, size_t index);
  void wait_until(HttpClock::time_point time, const LoadBackend::OnProgress& progress);
  void wait_for_all(const LoadBackend::OnProgress& progress);
  void report(const LoadBackend::OnProgress& progress);

  const HttpRequestSource& source_;
  const std::vector<TimedRequest>& requests_;
  const Arrival arrival_;
  const size_t max_in_flight_;
  const std::stop_token stop_;
  const HttpClock::time_point origin_;

  std::mutex mutex_;  // guards due_ to all_dispatched_
  std::condition_variable_any changed_;
  std::deque<size_t> due_;
  size_t idle_ = 0, done_ = 0, reported_ = 0;
  bool all_dispatched_ = false;
  std::vector<StreamedCompletion> completions_;
  std::vector<std::jthread> workers_;
};

}  // namespace mw::serve
