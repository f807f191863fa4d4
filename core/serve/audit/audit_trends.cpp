// SPDX-License-Identifier: Apache-2.0
// Compares points: longer prompts do not have lower latencies under the same load, and the throughput of an overloaded
// server does not rise with the load.
#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/base/units.h"
#include "core/serve/audit/audit_rules.h"

namespace mw::serve::rules {
namespace {

using formats::BenchPoint;
using formats::BenchSet;

// Unknown loads are never the same.
bool is_same_load(const BenchPoint& a, const BenchPoint& b) {
  const bool closed = std::isnan(a.request_rate) && std::isnan(b.request_rate) && a.max_concurrency > 0;
  return (closed || a.request_rate == b.request_rate) && a.max_concurrency == b.max_concurrency &&
         a.output_len == b.output_len;
}

// The point with the next shorter prompt under the same load; null: none.
const BenchPoint* next_shorter(const BenchSet& set, const BenchPoint& point) {
  const BenchPoint* best = nullptr;
  for (const BenchPoint& p : set.points)
    if (is_same_load(p, point) && p.input_len > 0 && p.input_len < point.input_len &&
        (!best || p.input_len > best->input_len))
      best = &p;
  return best;
}

void check_latency(const BenchSet& set, size_t i, formats::LatencyStats BenchPoint::*field, const std::string& name,
                   double min_ratio, Findings& out) {
  const BenchPoint& p = set.points[i];
  const BenchPoint* shorter = next_shorter(set, p);
  if (!shorter) return;
  const double a = typical(shorter->*field), b = typical(p.*field);
  if (std::isnan(a) || std::isnan(b) || b >= a * min_ratio) return;
  std::string label = name;
  std::transform(label.begin(), label.end(), label.begin(), [](unsigned char c) { return std::toupper(c); });
  out.push_back({.point = i,
                 .rule = "MONOTONY",
                 .metric = metric_name(p.*field, name),
                 .value = b,
                 .floor = a,
                 .verdict = Verdict::suspicious,
                 .text = label + " falls from " + ms_text(a) + " to " + ms_text(b) + " as prompts grow from " +
                         grouped(shorter->input_len) + " to " + grouped(p.input_len) +
                         " tokens under the same load: the conditions must differ",
                 .formula = "latency does not fall with the prompt length"});
}

// Throughput must not rise much from an overloaded point to one with a higher rate.
void check_throughput(const BenchSet& set, size_t i, Findings& out) {
  const BenchPoint& p = set.points[i];
  if (!std::isfinite(p.request_rate) || std::isnan(p.output_throughput)) return;
  for (const BenchPoint& less : set.points) {
    if (less.input_len != p.input_len || less.output_len != p.output_len || !(less.request_rate < p.request_rate))
      continue;
    const bool is_overloaded = less.verdict == "overloaded" || (less.verdict.empty() && less.num_prompts >= 100 &&
                                                                less.request_throughput < 0.7 * less.request_rate);
    if (!is_overloaded || p.output_throughput <= 1.2 * less.output_throughput) continue;
    out.push_back({.point = i,
                   .rule = "MONOTONY",
                   .metric = "output_throughput",
                   .value = p.output_throughput,
                   .floor = less.output_throughput,
                   .verdict = Verdict::suspicious,
                   .text = "at " + rate_text(less.request_rate) + " the server was overloaded with " +
                           grouped(less.output_throughput) + " tokens/s, but it reaches " +
                           grouped(p.output_throughput) + " at " + rate_text(p.request_rate),
                   .formula = "throughput does not rise beyond saturation"});
    return;
  }
}

}  // namespace

void check_trends(const BenchSet& set, Findings& out) {
  for (size_t i = 0; i < set.points.size(); ++i) {
    check_latency(set, i, &BenchPoint::ttft, "ttft", 0.9, out);
    check_latency(set, i, &BenchPoint::tpot, "tpot", 0.8, out);
    check_throughput(set, i, out);
  }
}

}  // namespace mw::serve::rules
