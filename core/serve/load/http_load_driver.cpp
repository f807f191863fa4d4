// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/http_load_driver.h"

#include <algorithm>
#include <system_error>

namespace mw::serve {
namespace {

using namespace std::chrono_literals;
constexpr auto kAhead = 50ms;  // time for the thread of a request to prepare

HttpClock::duration seconds(double s) {
  return std::chrono::duration_cast<HttpClock::duration>(std::chrono::duration<double>(s));
}

}  // namespace

HttpLoadDriver::HttpLoadDriver(const HttpRequestSource& source, const std::vector<TimedRequest>& requests,
                               Arrival arrival, int max_in_flight, std::stop_token stop)
    : source_(source),
      requests_(requests),
      arrival_(arrival),
      max_in_flight_(static_cast<size_t>(std::max(max_in_flight, 1))),
      stop_(std::move(stop)),
      origin_(HttpClock::now() + 2 * kAhead),
      completions_(requests.size()) {
  for (StreamedCompletion& a : completions_) a.stopped = true;
}

std::vector<StreamedCompletion> HttpLoadDriver::run(const LoadBackend::OnProgress& progress) {
  for (size_t i = 0; i < requests_.size() && !stop_.stop_requested(); ++i) {
    if (arrival_ != Arrival::closed) wait_until(origin_ + seconds(requests_[i].at_s) - kAhead, progress);
    dispatch(i);
  }
  {
    const std::lock_guard lock(mutex_);
    all_dispatched_ = true;
    if (stop_.stop_requested()) due_.clear();
  }
  changed_.notify_all();
  wait_for_all(progress);
  workers_.clear();  // joins
  report(progress);
  return std::move(completions_);
}

void HttpLoadDriver::dispatch(size_t index) {
  bool needs_worker = false;
  {
    const std::lock_guard lock(mutex_);
    due_.push_back(index);
    needs_worker = due_.size() > idle_ && workers_.size() < max_in_flight_;
  }
  changed_.notify_all();
  if (!needs_worker) return;
  try {
    workers_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {  // no more threads: an existing one sends it, and the delay is measured
    if (workers_.empty()) throw;
  }
}

bool HttpLoadDriver::take(size_t& index) {
  std::unique_lock lock(mutex_);
  ++idle_;
  const bool has_due = changed_.wait(lock, stop_, [&] { return !due_.empty() || all_dispatched_; }) && !due_.empty();
  --idle_;
  if (!has_due || stop_.stop_requested()) return false;
  index = due_.front();
  due_.pop_front();
  return true;
}

void HttpLoadDriver::work() {
  StreamClient client(source_.target);
  for (size_t index = 0; take(index);) {
    send(client, index);
    {
      const std::lock_guard lock(mutex_);
      ++done_;
    }
    changed_.notify_all();
  }
}

void HttpLoadDriver::send(StreamClient& client, size_t index) {
  const TimedRequest& request = requests_[index];
  const std::string body = source_.body(request);
  if (arrival_ != Arrival::closed) std::this_thread::sleep_until(origin_ + seconds(request.at_s));
  StreamedCompletion completion = client.complete(body, source_.expected(request), origin_, stop_);
  completion.result.intended_s = arrival_ == Arrival::closed ? completion.result.sent_s : request.at_s;
  completion.text.clear();
  completions_[index] = std::move(completion);
}

void HttpLoadDriver::report(const LoadBackend::OnProgress& progress) {
  size_t done = 0;
  {
    const std::lock_guard lock(mutex_);
    done = done_;
  }
  if (progress && done != reported_) progress(static_cast<long>(done), static_cast<long>(requests_.size()));
  reported_ = done;
}

void HttpLoadDriver::wait_until(HttpClock::time_point time, const LoadBackend::OnProgress& progress) {
  while (HttpClock::now() < time && !stop_.stop_requested()) {
    std::this_thread::sleep_until(std::min(time, HttpClock::now() + 100ms));
    report(progress);
  }
}

void HttpLoadDriver::wait_for_all(const LoadBackend::OnProgress& progress) {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (changed_.wait_for(lock, 100ms, [&] { return done_ == requests_.size(); }) || stop_.stop_requested()) return;
    }
    report(progress);
  }
}

}  // namespace mw::serve
