// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/replicated_backend.h"

#include <algorithm>
#include <cmath>

namespace mw::serve {
namespace {

using formats::LoadSample;
using formats::RequestResult;

std::vector<TimedRequest> share_of(const std::vector<TimedRequest>& requests, size_t server, size_t servers) {
  std::vector<TimedRequest> out;
  for (size_t i = server; i < requests.size(); i += servers) out.push_back(requests[i]);
  return out;
}

// The state of all servers together at each time at which one of them was sampled.
std::vector<LoadSample> together(const std::vector<LoadResult>& results) {
  struct Sample {
    size_t server;
    LoadSample state;
  };
  std::vector<Sample> samples;
  for (size_t s = 0; s < results.size(); ++s)
    for (const LoadSample& state : results[s].timeline) samples.push_back({s, state});
  std::stable_sort(samples.begin(), samples.end(),
                   [](const Sample& a, const Sample& b) { return a.state.time_s < b.state.time_s; });
  std::vector<LoadSample> last(results.size()), out;
  for (const Sample& sample : samples) {
    last[sample.server] = sample.state;
    LoadSample all{.time_s = sample.state.time_s};
    for (const LoadSample& each : last) {
      all.running += each.running;
      all.waiting += each.waiting;
      all.kv_used += each.kv_used / static_cast<double>(last.size());
      all.output_tokens_s += each.output_tokens_s;
    }
    out.push_back(all);
  }
  return out;
}

LoadResult merged(std::vector<LoadResult> results) {
  LoadResult out;
  out.timeline = together(results);
  double prompt = 0, cached = 0, first = INFINITY, last = -INFINITY;
  for (LoadResult& result : results) {
    for (const RequestResult& r : result.requests) {
      first = std::min(first, r.intended_s);
      last = std::max(last, r.end_s);
      prompt += r.completed() ? r.prompt_tokens : 0;
      cached += r.cached_tokens;
    }
    std::move(result.requests.begin(), result.requests.end(), std::back_inserter(out.requests));
    out.steps.insert(out.steps.end(), result.steps.begin(), result.steps.end());
    out.warnings.insert(out.warnings.end(), result.warnings.begin(), result.warnings.end());
  }
  std::stable_sort(out.requests.begin(), out.requests.end(),
                   [](const RequestResult& a, const RequestResult& b) { return a.intended_s < b.intended_s; });
  if (!out.requests.empty()) out.duration_s = last - first;
  if (prompt > 0) out.prefix_hits = cached / prompt;
  return out;
}

class ReplicatedBackend : public LoadBackend {
 public:
  explicit ReplicatedBackend(std::vector<std::unique_ptr<LoadBackend>> servers) : servers_(std::move(servers)) {}

  LoadResult run(const Load& load, const OnProgress& progress, std::stop_token stop) override {
    const long total = static_cast<long>(load.requests.size());
    std::vector<LoadResult> results;
    long before = 0;
    for (size_t s = 0; s < servers_.size(); ++s) {
      Load part{.settings = load.settings,
                .warmups = share_of(load.warmups, s, servers_.size()),
                .requests = share_of(load.requests, s, servers_.size())};
      if (part.requests.empty()) continue;
      if (load.settings.concurrency > 0)
        part.settings.concurrency = std::max(1, load.settings.concurrency / static_cast<int>(servers_.size()));
      const auto report = [&](long done, long) { progress(before + done, total); };
      results.push_back(servers_[s]->run(part, progress ? OnProgress(report) : OnProgress(), stop));
      before += static_cast<long>(part.requests.size());
    }
    return merged(std::move(results));
  }

 private:
  std::vector<std::unique_ptr<LoadBackend>> servers_;
};

}  // namespace

std::unique_ptr<LoadBackend> make_replicated_backend(std::vector<std::unique_ptr<LoadBackend>> servers) {
  return std::make_unique<ReplicatedBackend>(std::move(servers));
}

}  // namespace mw::serve
