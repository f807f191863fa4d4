// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/load_summary.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/serve/load/saturation.h"

namespace mw::serve {
namespace {

using formats::RequestResult;

double ms(double seconds) {
  return 1e3 * seconds;
}

}  // namespace

double tpot_ms(const RequestResult& r) {
  return r.output_tokens > 1 ? ms(r.end_s - r.first_token_s) / (r.output_tokens - 1) : formats::kUnknown;
}

// Measured from the intended time: waiting in the client counts.
bool meets(const RequestResult& r, const Slo& slo) {
  const double tpot = tpot_ms(r);
  return (slo.ttft_ms <= 0 || ms(r.first_token_s - r.intended_s) <= slo.ttft_ms) &&
         (slo.tpot_ms <= 0 || std::isnan(tpot) || tpot <= slo.tpot_ms) &&
         (slo.e2e_ms <= 0 || ms(r.end_s - r.intended_s) <= slo.e2e_ms);
}

namespace {

// Most tokens in one second of the run. kUnknown if the times of tokens are not recorded.
double max_tokens_per_second(const std::vector<RequestResult>& requests) {
  std::vector<std::int64_t> seconds;
  const auto count = [&](double at_s) {
    const auto second = static_cast<size_t>(std::clamp(at_s, 0.0, 1e7));
    if (second >= seconds.size()) seconds.resize(second + 1);
    ++seconds[second];
  };
  for (const RequestResult& r : requests) {
    if (!r.completed() || r.output_tokens < 1) continue;
    if (r.gaps_ms.size() + 1 != static_cast<size_t>(r.output_tokens)) return formats::kUnknown;
    double at = r.first_token_s;
    count(at);
    for (const float gap : r.gaps_ms) count(at += gap * 1e-3);
  }
  return seconds.empty() ? formats::kUnknown : static_cast<double>(*std::max_element(seconds.begin(), seconds.end()));
}

double max_in_flight(const std::vector<RequestResult>& requests) {
  std::vector<std::pair<double, int>> changes;  // sorts an end before a start at the same time
  for (const RequestResult& r : requests) {
    if (std::isnan(r.sent_s) || std::isnan(r.end_s)) continue;
    changes.emplace_back(r.sent_s, 1);
    changes.emplace_back(r.end_s, -1);
  }
  std::sort(changes.begin(), changes.end());
  int now = 0, max = 0;
  for (const auto& [time, change] : changes) max = std::max(max, now += change);
  return max;
}

struct Latencies {  // ms
  std::vector<double> ttft, tpot, itl, e2el, intended_ttft, intended_e2el;
};

void set_counts(formats::BenchPoint& point, const std::vector<RequestResult>& requests, long& good, const Slo& slo) {
  for (const RequestResult& r : requests) {
    if (!r.completed()) {
      ++point.failed;
      continue;
    }
    ++point.completed;
    point.total_input_tokens += r.prompt_tokens;
    point.total_output_tokens += r.output_tokens;
    good += meets(r, slo) ? 1 : 0;
  }
}

Latencies latencies_of(const std::vector<RequestResult>& requests) {
  Latencies t;
  size_t gaps = 0;
  for (const RequestResult& r : requests) gaps += r.completed() ? r.gaps_ms.size() : 0;
  t.itl.reserve(gaps);
  for (const RequestResult& r : requests) {
    if (!r.completed()) continue;
    t.ttft.push_back(ms(r.first_token_s - r.sent_s));
    t.e2el.push_back(ms(r.end_s - r.sent_s));
    t.intended_ttft.push_back(ms(r.first_token_s - r.intended_s));
    t.intended_e2el.push_back(ms(r.end_s - r.intended_s));
    if (r.output_tokens > 1) t.tpot.push_back(tpot_ms(r));
    t.itl.insert(t.itl.end(), r.gaps_ms.begin(), r.gaps_ms.end());
  }
  return t;
}

}  // namespace

void set_load(formats::BenchPoint& point, const LoadSettings& s) {
  point.request_rate = s.arrival == Arrival::closed  ? formats::kUnknown
                       : s.arrival == Arrival::burst ? std::numeric_limits<double>::infinity()
                                                     : s.request_rate;
  point.max_concurrency = s.concurrency;
  point.burstiness = s.burstiness;
  point.input_len = s.input_len, point.output_len = s.output_len;
}

void set_rates(formats::BenchPoint& point, long good, const Slo& slo) {
  if (!(point.duration_s > 0)) return;
  const auto per_second = [&](long count) { return static_cast<double>(count) / point.duration_s; };
  point.request_throughput = per_second(point.completed);
  point.output_throughput = per_second(point.total_output_tokens);
  point.total_token_throughput = per_second(point.total_input_tokens + point.total_output_tokens);
  if (slo.any()) point.request_goodput = per_second(good);
}

formats::BenchPoint summarise(const Load& load, const LoadResult& result, const Slo& slo) {
  formats::BenchPoint point;
  set_load(point, load.settings);
  point.num_prompts = static_cast<long>(load.requests.size());
  point.duration_s = result.duration_s;
  long good = 0;
  set_counts(point, result.requests, good, slo);
  set_rates(point, good, slo);
  point.max_output_tokens_per_s = max_tokens_per_second(result.requests);
  point.max_concurrent_requests = max_in_flight(result.requests);
  if (point.completed > 0) {
    const Latencies t = latencies_of(result.requests);
    point.ttft = formats::latency_stats(t.ttft);
    point.e2el = formats::latency_stats(t.e2el);
    point.intended_ttft = formats::latency_stats(t.intended_ttft);
    point.intended_e2el = formats::latency_stats(t.intended_e2el);
    if (!t.tpot.empty()) point.tpot = formats::latency_stats(t.tpot);
    if (!t.itl.empty()) point.itl = formats::latency_stats(t.itl);
    point.verdict = to_string(judge_saturation(load, result, slo.ttft_ms > 0 ? 1e-3 * slo.ttft_ms : kLongestWait));
  }
  point.prefix_hits = result.prefix_hits;
  point.requests = result.requests;
  point.timeline = result.timeline;
  point.steps = result.steps;
  for (const std::string& warning : result.warnings) point.note += (point.note.empty() ? "" : "; ") + warning;
  return point;
}

}  // namespace mw::serve
