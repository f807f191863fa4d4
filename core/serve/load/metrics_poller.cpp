// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/metrics_poller.h"

#include <charconv>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "core/base/text.h"
#include "core/base/units.h"

namespace mw::serve {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(200);

std::optional<double> find(const std::map<std::string, double>& values, const std::string& name) {
  const auto it = values.find(name);
  return it == values.end() ? std::nullopt : std::optional(it->second);
}

// Counters end in _total; older versions of vLLM left that out.
std::optional<double> counter(const std::map<std::string, double>& values, const std::string& name) {
  const auto with = find(values, name + "_total");
  return with ? with : find(values, name);
}

}  // namespace

std::map<std::string, double> sum_prometheus_metrics(std::string_view text) {
  std::map<std::string, double> out;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.empty() || line.front() == '#') continue;
    const std::string name(line.substr(0, line.find_first_of("{ ")));
    size_t at = name.size();
    if (at < line.size() && line[at] == '{') {  // values of labels may contain braces and blanks
      bool quoted = false;
      for (++at; at < line.size() && (quoted || line[at] != '}'); ++at) {
        if (line[at] == '\\')
          ++at;
        else if (line[at] == '"')
          quoted = !quoted;
      }
      ++at;
    }
    while (at < line.size() && line[at] == ' ') ++at;
    double value = 0;
    if (at >= line.size() || std::from_chars(line.data() + at, line.data() + line.size(), value).ec != std::errc())
      continue;
    out[name] += value;
  }
  return out;
}

MetricsPoller::MetricsPoller(const HttpTarget& target, HttpClock::time_point origin)
    : client_(target), origin_(origin), thread_([this](std::stop_token stop) { poll(stop); }) {}

bool MetricsPoller::sample() {
  const StreamClient::Response response = client_.get("/metrics");
  if (response.status != 200) return false;
  std::map<std::string, double> now = sum_prometheus_metrics(response.body);
  const auto running = find(now, "vllm:num_requests_running");
  if (!running) return false;
  const double at = seconds_since(origin_);
  const auto kv = find(now, "vllm:kv_cache_usage_perc");
  formats::LoadSample s{.time_s = at,
                        .running = static_cast<int>(*running),
                        .waiting = static_cast<int>(find(now, "vllm:num_requests_waiting").value_or(0)),
                        .kv_used = kv.value_or(find(now, "vllm:gpu_cache_usage_perc").value_or(0))};
  const auto tokens = counter(now, "vllm:generation_tokens");
  if (first_.empty())
    first_ = now;
  else if (const auto before = counter(last_, "vllm:generation_tokens"); tokens && before && at > last_s_)
    s.output_tokens_s = (*tokens - *before) / (at - last_s_);
  observed_.timeline.push_back(s);
  last_ = std::move(now);
  last_s_ = at;
  return true;
}

void MetricsPoller::poll(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  wake.wait_until(lock, stop, origin_, [] { return false; });
  while (sample() && !wake.wait_for(lock, stop, kInterval, [] { return false; }) && !stop.stop_requested()) {
  }
}

MetricsPoller::Observations MetricsPoller::finish() {
  thread_.request_stop();
  thread_.join();
  if (!observed_.timeline.empty()) sample();
  const auto increase = [&](const std::string& name) -> std::optional<double> {
    const auto a = counter(first_, name), b = counter(last_, name);
    if (a && b) return *b - *a;
    return std::nullopt;
  };
  for (const std::string prefix : {"vllm:prefix_cache", "vllm:gpu_prefix_cache"}) {
    const auto queries = increase(prefix + "_queries"), hits = increase(prefix + "_hits");
    if (queries && hits && *queries > 0) observed_.prefix_hits = *hits / *queries;
  }
  return std::move(observed_);
}

}  // namespace mw::serve
