// SPDX-License-Identifier: Apache-2.0
#include "core/views/sweep_view.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/json.h"
#include "core/base/text.h"

namespace mw::views {
namespace {

formats::BenchSet set_of(const Json& info) {
  const Json* set = find_member(info, "set");
  if (!set) return {};
  try {
    return formats::bench_set(*set);
  } catch (const Error&) {  // from another version or program; the points are still valid
    return {};
  }
}

double limit(const Json& slo, const char* key) {
  const Json* value = find_member(slo, key);
  return value && value->is_number() && std::isfinite(value->get<double>()) ? std::max(0.0, value->get<double>()) : 0;
}

options::Slo slo_of(const Json& info) {
  const Json* slo = find_member(info, "slo");
  if (!slo) return {};
  return {.ttft_ms = limit(*slo, "ttft_ms"), .tpot_ms = limit(*slo, "tpot_ms"), .e2e_ms = limit(*slo, "e2e_ms")};
}

// Sorts by offered rate, closed loops by users.
bool before(const formats::BenchPoint& a, const formats::BenchPoint& b) {
  if (std::isnan(a.request_rate) != std::isnan(b.request_rate)) return std::isnan(a.request_rate);
  return std::isnan(a.request_rate) ? a.max_concurrency < b.max_concurrency : a.request_rate < b.request_rate;
}

void add_lines(SweepView& view) {
  for (size_t i = 0; i < view.set.points.size(); ++i) {
    const int len = view.set.points[i].input_len;
    const auto at = std::lower_bound(view.lines.begin(), view.lines.end(), len,
                                     [](const SweepLine& line, int wanted) { return line.input_len < wanted; });
    const bool known = at != view.lines.end() && at->input_len == len;
    (known ? at : view.lines.insert(at, {.input_len = len, .points = {}, .capacity = {}}))->points.push_back(i);
  }
  for (SweepLine& line : view.lines) {
    std::stable_sort(line.points.begin(), line.points.end(),
                     [&](size_t a, size_t b) { return before(view.set.points[a], view.set.points[b]); });
    std::vector<formats::BenchPoint> points;
    for (const size_t i : line.points) {
      // The capacity does not need single requests; moves them out instead of copying them.
      formats::BenchPoint& p = view.set.points[i];
      auto requests = std::exchange(p.requests, {});
      points.push_back(p);
      p.requests = std::move(requests);
    }
    line.capacity = serve::find_capacity(points, view.slo);
  }
}

}  // namespace

SweepView sweep_view(formats::BenchSet set, const options::Slo& slo) {
  SweepView view{.set = std::move(set), .slo = slo};
  add_lines(view);
  view.findings = audit::audit(view.set);
  return view;
}

GrowingSweep::GrowingSweep(const Json& info) : set_(set_of(info)), slo_(slo_of(info)) {
  if (const Json* name = find_member(info, "name"); name && name->is_string()) set_.name = name->get<std::string>();
}

void GrowingSweep::add(const event::ResultPoint& point) {
  if (point.kind != "sweep") return;
  try {
    set_.points.push_back(formats::bench_point(point.values));
    for (auto& r : set_.points.back().requests) r.gaps_ms = {};
  } catch (const Error&) {  // from another version or program; other points are still valid
    ++ignored_;
  }
}

SweepView GrowingSweep::view() const {
  return GrowingSweep(*this).take();
}

SweepView GrowingSweep::take() {
  SweepView view = sweep_view(std::move(set_), slo_);
  view.ignored = ignored_;
  return view;
}

SweepView sweep_view(const RunView& run) {
  GrowingSweep sweep(run.info());
  for (const event::ResultPoint& point : run.points()) sweep.add(point);
  return sweep.take();
}

namespace {

enum Load { rate, burst, closed, unknown };

std::string plain(double v) {
  return formatted("%g", v);
}

double first_known(double a, double b) {
  return std::isfinite(a) ? a : b;
}

MetricValue of_latency(const formats::LatencyStats& ms) {
  return {first_known(ms.median, ms.mean) / 1e3, ms.percentile(99) / 1e3};
}

struct Gathered {
  ChartSample sample;
  int known = 0;
};

void widen(Gathered& gathered, const MetricValue& v) {
  if (!std::isfinite(v.value)) return;
  ChartSample& sample = gathered.sample;
  const double before = gathered.known++, high = first_known(v.high, v.value);
  sample.value = before == 0 ? v.value : (sample.value * before + v.value) / (before + 1);
  sample.low = before == 0 ? v.value : std::min(sample.low, v.value);
  sample.high = before == 0 ? high : std::max(sample.high, high);
}

}  // namespace

LoadAxis::Key LoadAxis::key_of(const formats::BenchPoint& p) {
  if (std::isinf(p.request_rate)) return {burst, 0};
  if (std::isfinite(p.request_rate) && p.request_rate > 0) return {rate, p.request_rate};
  if (p.max_concurrency > 0) return {closed, p.max_concurrency};
  return {unknown, 0};
}

void LoadAxis::add_rate(double wanted) {
  formats::BenchPoint point;
  point.request_rate = wanted;
  add(point);
}

double LoadAxis::place(const Key& key) const {
  if (key.first == rate) return std::log2(key.second);
  double last = 0, beyond = 0;
  for (const Key& other : loads_) {
    if (other.first == rate) last = std::max(last, std::log2(other.second));
    if (other.first != rate && other <= key) ++beyond;
  }
  return last + beyond;
}

double LoadAxis::place(const formats::BenchPoint& point) const {
  return place(key_of(point));
}

std::vector<LoadAxis::Stop> LoadAxis::stops() const {
  std::vector<Stop> out;
  for (const Key& key : loads_)
    out.push_back({place(key), key.first == rate     ? plain(key.second)
                               : key.first == burst  ? "burst"
                               : key.first == closed ? plain(key.second) + " users"
                                                     : "n/a"});
  std::sort(out.begin(), out.end(), [](const Stop& a, const Stop& b) { return a.place < b.place; });
  return out;
}

std::optional<double> LoadAxis::rate_at(double where) const {
  for (const Key& key : loads_)
    if (key.first == rate && std::abs(std::log2(key.second) - where) < 1e-9) return key.second;
  return std::nullopt;
}

std::string load_text(const formats::BenchPoint& p) {
  if (std::isinf(p.request_rate)) return "burst";
  if (std::isfinite(p.request_rate) && p.request_rate > 0) return plain(p.request_rate) + " requests/s";
  return p.max_concurrency > 0 ? plain(p.max_concurrency) + " users" : "rate not recorded";
}

bool is_latency(SweepMetric m) {
  return m == SweepMetric::ttft || m == SweepMetric::tpot || m == SweepMetric::itl || m == SweepMetric::e2el;
}

std::string label_of(SweepMetric metric) {
  static constexpr const char* kLabels[] = {
      "TTFT", "TPOT", "ITL", "E2E", "Output throughput", "Total throughput", "Requests", "Goodput", "Cost"};
  return kLabels[static_cast<size_t>(metric)];
}

double usd_per_million(double usd_per_hour, double tokens_per_second) {
  return tokens_per_second > 0 ? usd_per_hour / 3600 / tokens_per_second * 1e6 : formats::kUnknown;
}

MetricValue metric_value(const formats::BenchPoint& p, SweepMetric metric, double usd_per_hour) {
  const formats::LatencyStats* const latencies[] = {&p.ttft, &p.tpot, &p.itl, &p.e2el};  // in the order of SweepMetric
  const double rates[] = {p.output_throughput, p.total_token_throughput, p.request_throughput, p.request_goodput};
  if (metric == SweepMetric::cost) return {.value = usd_per_million(usd_per_hour, p.output_throughput)};
  const auto index = static_cast<size_t>(metric);
  if (is_latency(metric)) return of_latency(*latencies[index]);
  return {.value = rates[index - std::size(latencies)]};
}

std::vector<ChartSample> samples_of(const formats::BenchSet& set, const std::vector<size_t>& points,
                                    const PlaceOf& place, SweepMetric metric) {
  std::map<double, Gathered> by_place;
  for (const size_t i : points) {
    const formats::BenchPoint& p = set.points[i];
    const double where = place(p);
    Gathered& gathered = by_place.try_emplace(where, Gathered{.sample = {.place = where}}).first->second;
    widen(gathered, metric_value(p, metric, set.usd_per_hour));
    gathered.sample.points.push_back(i);
  }
  std::vector<ChartSample> out;
  for (auto& [where, gathered] : by_place) out.push_back(std::move(gathered.sample));
  return out;
}

std::string verdict_text(const formats::BenchSet& set, const SweepLine& line, const options::Slo& slo) {
  std::string out;
  const auto say = [&out](const std::string& more) { out += (out.empty() ? "" : ", ") + more; };
  std::string stable, before;
  for (const size_t i : line.points) {
    const auto& p = set.points[i];
    if (p.verdict == "stable" && !serve::is_too_short(p)) stable = load_text(p);
  }
  if (!stable.empty()) say("stable to " + stable);
  for (const size_t i : line.points) {
    const auto& p = set.points[i];
    const std::string verdict = serve::verdict_text(p);
    if (verdict.empty() || verdict == "stable" || verdict == before) continue;
    before = verdict;
    say(verdict + " from " + load_text(p));
  }
  if (std::isfinite(line.capacity.knee)) say("knee at " + plain(std::round(line.capacity.knee * 100) / 100));
  if (!slo.any() || out.empty()) return out;
  return out + ", " + serve::slo_text(line.capacity);
}

const audit::AuditFinding* worst_finding(const std::vector<audit::AuditFinding>& findings, size_t point,
                                         std::string_view field) {
  const audit::AuditFinding* worst = nullptr;
  for (const audit::AuditFinding& f : findings)
    if (f.point == point && f.verdict != audit::Verdict::fine && f.rule != "TOO-FEW" &&
        f.metric.find(field) != std::string::npos && (!worst || f.verdict > worst->verdict))
      worst = &f;
  return worst;
}

RequestPhases phases_of(const formats::RequestResult& r) {
  RequestPhases p{.intended = r.intended_s, .failed = !r.completed(), .queue_known = std::isfinite(r.scheduled_s)};
  p.sent = std::max(p.intended, first_known(r.sent_s, p.intended));
  p.scheduled = std::max(p.sent, first_known(r.scheduled_s, p.sent));
  p.first_token = std::max(p.scheduled, first_known(r.first_token_s, p.scheduled));
  p.end = std::max(p.first_token, first_known(r.end_s, p.first_token));
  return p;
}

}  // namespace mw::views
