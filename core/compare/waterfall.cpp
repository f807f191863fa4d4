// SPDX-License-Identifier: Apache-2.0
#include "core/compare/waterfall.h"

#include "core/compare/factors.h"

namespace mw::compare {
namespace {

bool is_latency(WaterfallMetric metric) {
  return metric != WaterfallMetric::output_throughput;
}

class Builder {
 public:
  Builder(const WaterfallRequest& request, const plan::PlanContext& context, const std::stop_token& stop)
      : request_(request), context_(context), stop_(stop) {}

  double simulated(const experiment::Experiment& e, Queueing queueing) const {
    return value_of(simulated_point(e, request_.point, context_, queueing, stop_), request_.metric);
  }
  void add(std::string name, std::string text, double after) {
    parts_.push_back({std::move(name), std::move(text), now_, after});
    now_ = after;
  }
  void begin(double from) { now_ = from; }
  double now() const { return now_; }
  std::vector<WaterfallPart> take() { return std::move(parts_); }

 private:
  const WaterfallRequest& request_;
  const plan::PlanContext& context_;
  const std::stop_token& stop_;
  double now_ = 0;
  std::vector<WaterfallPart> parts_;
};

}  // namespace

double value_of(const formats::BenchPoint& p, WaterfallMetric metric) {
  const double values[] = {p.ttft.median, p.tpot.median, p.e2el.median, p.output_throughput};
  return values[static_cast<size_t>(metric)];
}

Waterfall waterfall(const WaterfallRequest& request, const plan::PlanContext& context, const std::stop_token& stop) {
  const auto& [baseline, other, point, metric, measured] = request;
  Builder b(request, context, stop);
  Waterfall out{.metric = metric, .point = point, .from = 0, .to = 0, .parts = {}};
  const Queueing factors_at = is_latency(metric) ? Queueing::none : Queueing::as_offered;
  const double loaded_from = b.simulated(baseline, Queueing::as_offered),
               loaded_to = b.simulated(other, Queueing::as_offered);
  const double alone_from = is_latency(metric) ? b.simulated(baseline, Queueing::none) : loaded_from;
  out.from = measured.from.value_or(loaded_from);
  out.to = measured.to.value_or(loaded_to);

  b.begin(out.from);
  if (measured.from) b.add("model's error at the baseline", "measured -> simulated", loaded_from);
  // Shifted by the queueing time of the baseline, so that consecutive parts are contiguous.
  const double waiting_before = loaded_from - alone_from;
  double alone = alone_from;
  for (const FactorChange& change : factor_changes(baseline, other)) {
    alone = b.simulated(change.server, factors_at);
    b.add(change.name, change.text, alone + waiting_before);
  }
  if (is_latency(metric)) {
    const double alone_to = b.simulated(other, Queueing::none);
    if (alone_to != alone) b.add("the rest", "keys that belong to no factor", alone_to + waiting_before);
    b.add("queueing", "waiting, and steps shared with other requests", loaded_to);
  } else if (b.now() != loaded_to) {
    b.add("the rest", "keys that belong to no factor", loaded_to);
  }
  if (measured.to) b.add("model's error at the other", "simulated -> measured", out.to);
  out.parts = b.take();
  return out;
}

}  // namespace mw::compare
