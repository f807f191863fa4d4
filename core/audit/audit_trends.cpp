// SPDX-License-Identifier: Apache-2.0
// Compares points: longer prompts do not have lower latencies under the same load, and the throughput of an overloaded
// server does not rise with the load.
#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/audit/audit_rules.h"
#include "core/base/units.h"

namespace mw::audit::rules {
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

class TrendRules : PointRules {
 public:
  using PointRules::PointRules;

  void check() {
    latency(&BenchPoint::ttft, "ttft", 0.9);
    latency(&BenchPoint::tpot, "tpot", 0.8);
    throughput();
  }

 private:
  void latency(formats::LatencyStats BenchPoint::*field, const std::string& name, double min_ratio) {
    const BenchPoint* shorter = next_shorter(set_, p_);
    if (!shorter) return;
    const double a = typical(shorter->*field), b = typical(p_.*field);
    if (std::isnan(a) || std::isnan(b) || b >= a * min_ratio) return;
    std::string label = name;
    std::transform(label.begin(), label.end(), label.begin(), [](unsigned char c) { return std::toupper(c); });
    add("MONOTONY", {metric_name(p_.*field, name), b, a}, Verdict::suspicious,
        label + " falls from " + ms_text(a) + " to " + ms_text(b) + " as prompts grow from " +
            grouped(shorter->input_len) + " to " + grouped(p_.input_len) +
            " tokens under the same load: the conditions must differ",
        "latency does not fall with the prompt length");
  }

  // Throughput must not rise much from an overloaded point to one with a higher rate.
  void throughput() {
    if (!std::isfinite(p_.request_rate) || std::isnan(p_.output_throughput)) return;
    for (const BenchPoint& less : set_.points) {
      if (less.input_len != p_.input_len || less.output_len != p_.output_len || !(less.request_rate < p_.request_rate))
        continue;
      const bool is_overloaded = less.verdict == "overloaded" || (less.verdict.empty() && less.num_prompts >= 100 &&
                                                                  less.request_throughput < 0.7 * less.request_rate);
      if (!is_overloaded || p_.output_throughput <= 1.2 * less.output_throughput) continue;
      add("MONOTONY", {"output_throughput", p_.output_throughput, less.output_throughput}, Verdict::suspicious,
          "at " + rate_text(less.request_rate) + " the server was overloaded with " + grouped(less.output_throughput) +
              " tokens/s, but it reaches " + grouped(p_.output_throughput) + " at " + rate_text(p_.request_rate),
          "throughput does not rise beyond saturation");
      return;
    }
  }
};

}  // namespace

void check_trends(const BenchSet& set, Findings& out) {
  for (size_t i = 0; i < set.points.size(); ++i) TrendRules(set, i, out).check();
}

}  // namespace mw::audit::rules
