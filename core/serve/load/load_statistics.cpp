// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/load_statistics.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/serve/load/load_summary.h"

namespace mw::serve {
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

void LoadStatistics::sent(double at_s) {
  flight(at_s, 1);
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
  LoadEvidence evidence{.is_closed = load_.arrival == Arrival::closed,
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

}  // namespace mw::serve
