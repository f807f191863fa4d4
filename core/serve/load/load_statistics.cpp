// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/load_statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mw::serve {
namespace {

const double kGrowth = (1 + QuantileSketch::kError) / (1 - QuantileSketch::kError);
const double kPerLog = 1 / std::log(kGrowth);

size_t bucket_of(double value) {
  if (!(value > QuantileSketch::kLeast)) return 0;
  const double steps = std::log(std::min(value, QuantileSketch::kMost) / QuantileSketch::kLeast) * kPerLog;
  return 1 + static_cast<size_t>(steps);
}

// The value whose largest relative distance to the bounds of the bucket is kError.
double value_of(size_t bucket) {
  if (bucket == 0) return 0;
  const double low = QuantileSketch::kLeast * std::exp(static_cast<double>(bucket - 1) / kPerLog);
  return low * (1 + QuantileSketch::kError);
}

}  // namespace

void QuantileSketch::add(double value, std::int64_t times) {
  if (times < 1) return;
  if (value != last_) last_ = value, last_bucket_ = bucket_of(value);
  if (last_bucket_ >= buckets_.size()) buckets_.resize(last_bucket_ + 1);
  buckets_[last_bucket_] += times;
  const double distance = value - mean_, n = static_cast<double>(times);
  count_ += times;
  mean_ += distance * n / static_cast<double>(count_);
  squares_ += distance * (value - mean_) * n;
}

double QuantileSketch::at_rank(double rank) const {
  std::int64_t below = 0;
  for (size_t i = 0; i < buckets_.size(); ++i)
    if (static_cast<double>(below += buckets_[i]) > rank) return value_of(i);
  return buckets_.empty() ? 0 : value_of(buckets_.size() - 1);
}

double QuantileSketch::percentile(double p) const {
  if (count_ == 0) return 0;
  const double rank = p / 100 * static_cast<double>(count_ - 1), lower = std::floor(rank);
  const double low = at_rank(lower), high = at_rank(std::min(lower + 1, static_cast<double>(count_ - 1)));
  return low + (high - low) * (rank - lower);
}

formats::LatencyStats QuantileSketch::stats() const {
  formats::LatencyStats stats;
  if (count_ == 0) return stats;
  stats.mean = mean_;
  stats.deviation = std::sqrt(squares_ / static_cast<double>(count_));
  for (const double p : {25, 50, 75, 90, 95, 99}) (p == 50 ? stats.median : stats.percentiles[p]) = percentile(p);
  return stats;
}

namespace {

constexpr double kFirstTenth = 0.1, kLastTenth = 0.9;

double ms_of(double seconds) {
  return 1e3 * seconds;
}

}  // namespace

void LoadStatistics::flight(double at_s, int change) {
  if (at_s > flight_s_) {
    in_flight_ += std::exchange(sent_now_, 0);
    most_in_flight_ = std::max(most_in_flight_, in_flight_);
    flight_s_ = at_s;
  }
  (change > 0 ? sent_now_ : in_flight_) += change;
}

void LoadStatistics::tokens(double at_s, std::int64_t count) {
  const auto second = static_cast<std::int64_t>(at_s);
  if (second != second_) second_ = second, in_second_ = 0;
  best_second_ = std::max(best_second_, in_second_ += count);
}

void LoadStatistics::finished(std::int64_t index, const formats::RequestResult& r) {
  flight(r.end_s, -1);
  last_end_ = std::max(last_end_, r.end_s);
  if (index == 0) first_intended_ = r.intended_s;
  if (!r.completed()) {
    ++point_.failed;
    return;
  }
  ++point_.completed;
  point_.total_input_tokens += r.prompt_tokens;
  point_.total_output_tokens += r.output_tokens;
  last_intended_ = std::max(last_intended_, r.intended_s);
  const double first = r.first_token_s, start = std::isnan(r.scheduled_s) ? r.sent_s : r.scheduled_s;
  ttft_.add(ms_of(first - r.sent_s));
  e2el_.add(ms_of(r.end_s - r.sent_s));
  intended_ttft_.add(ms_of(first - r.intended_s));
  intended_e2el_.add(ms_of(r.end_s - r.intended_s));
  if (r.output_tokens > 1) tpot_.add(tpot_ms(r));
  good_ += meets(r, slo_) ? 1 : 0;
  service_.add(ms_of(r.end_s - start));
  wait_.add(ms_of(start - r.intended_s));
  unserved_.add(ms_of((std::isnan(r.scheduled_s) ? first : r.scheduled_s) - r.intended_s));
  Part& part = parts_[static_cast<size_t>(index * static_cast<std::int64_t>(kEvidenceParts) / load_.num_prompts)];
  ++part.count;
  part.time += r.intended_s;
  part.ttft += first - r.intended_s;
  for (size_t i = 0; i < 2; ++i) {
    const double rank = (i == 0 ? kFirstTenth : kLastTenth) * (load_.num_prompts - 1);
    if (static_cast<double>(index) <= rank) arrival_at_[i] = std::max(arrival_at_[i], r.intended_s);
    if (static_cast<double>(point_.completed - 1) <= rank) end_at_[i] = r.end_s;
  }
}

double LoadStatistics::share_of_ends() const {
  const double served = end_at_[1] - end_at_[0];
  return served > 0 ? (arrival_at_[1] - arrival_at_[0]) / served : 1;
}

formats::BenchPoint LoadStatistics::take(std::vector<formats::LoadSample> timeline, double prefix_hits) {
  formats::BenchPoint point = std::move(point_);
  set_load(point, load_);
  point.num_prompts = load_.num_prompts;
  point.duration_s = last_end_ - first_intended_;
  set_rates(point, good_, slo_);
  point.max_output_tokens_per_s = best_second_ > 0 ? static_cast<double>(best_second_) : formats::kUnknown;
  flight(flight_s_ + 1, 0);
  point.max_concurrent_requests = most_in_flight_;
  point.ttft = ttft_.stats();
  point.tpot = tpot_.stats();
  point.itl = itl_.stats();
  point.e2el = e2el_.stats();
  point.intended_ttft = intended_ttft_.stats();
  point.intended_e2el = intended_e2el_.stats();
  point.prefix_hits = prefix_hits;
  LoadEvidence evidence{.is_closed = load_.arrival == options::Arrival::closed,
                        .sent = point.completed + point.failed,
                        .completed = point.completed,
                        .span = last_intended_ - first_intended_,
                        .service = 1e-3 * service_.percentile(50),
                        .wait = 1e-3 * wait_.percentile(50),
                        .unserved = 1e-3 * unserved_.percentile(50),
                        .served_share = share_of_ends()};
  for (const Part& part : parts_)
    if (part.count > 0) {
      const auto n = static_cast<double>(part.count);
      evidence.ttft.emplace_back(part.time / n, part.ttft / n);
    }
  LoadEvidence::Points queue;
  for (const formats::LoadSample& s : timeline)
    if (s.time_s <= last_intended_) queue.emplace_back(s.time_s, s.waiting);
  evidence.queue = part_means(queue);
  if (point.completed > 0)
    point.verdict = to_string(judge_saturation(evidence, slo_.ttft_ms > 0 ? 1e-3 * slo_.ttft_ms : kLongestWait));
  point.timeline = std::move(timeline);
  return point;
}

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
bool meets(const RequestResult& r, const options::Slo& slo) {
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

void set_counts(formats::BenchPoint& point, const std::vector<RequestResult>& requests, long& good,
                const options::Slo& slo) {
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

void set_load(formats::BenchPoint& point, const options::LoadSettings& s) {
  point.request_rate = s.arrival == options::Arrival::closed  ? formats::kUnknown
                       : s.arrival == options::Arrival::burst ? std::numeric_limits<double>::infinity()
                                                              : s.request_rate;
  point.max_concurrency = s.concurrency;
  point.burstiness = s.burstiness;
  point.input_len = s.input_len, point.output_len = s.output_len;
}

void set_rates(formats::BenchPoint& point, long good, const options::Slo& slo) {
  if (!(point.duration_s > 0)) return;
  const auto per_second = [&](long count) { return static_cast<double>(count) / point.duration_s; };
  point.request_throughput = per_second(point.completed);
  point.output_throughput = per_second(point.total_output_tokens);
  point.total_token_throughput = per_second(point.total_input_tokens + point.total_output_tokens);
  if (slo.any()) point.request_goodput = per_second(good);
}

formats::BenchPoint summarise(const Load& load, const LoadResult& result, const options::Slo& slo) {
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
