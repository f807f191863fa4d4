// SPDX-License-Identifier: Apache-2.0
// The rules of audit.h and the texts that they share. Pure functions; any thread.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/audit/audit.h"

namespace mw::audit::rules {

// Each function appends its findings to `out`.
using Findings = std::vector<AuditFinding>;
void check_floors(const formats::BenchSet& set, const AuditReference& reference, Findings& out);  // physical limits
void check_arithmetic(const formats::BenchSet& set, Findings& out);  // units, totals, percentiles, lengths of one point
void check_load(const formats::BenchSet& set, Findings& out);    // Little's law, counts, failures, loops, saturation
void check_trends(const formats::BenchSet& set, Findings& out);  // monotony over lengths and rates

// Rules about one point of a set.
class PointRules {
 public:
  PointRules(const formats::BenchSet& set, size_t i, Findings& out) : set_(set), p_(set.points[i]), i_(i), out_(out) {}

 protected:
  struct Violation {
    std::string metric;
    double value, floor;
  };
  void add(std::string rule, Violation violation, Verdict verdict, std::string text, std::string formula = {}) {
    out_.push_back({i_, std::move(rule), std::move(violation.metric), violation.value, violation.floor, verdict,
                    std::move(text), std::move(formula)});
  }

  const formats::BenchSet& set_;
  const formats::BenchPoint& p_;
  const size_t i_;
  Findings& out_;
};

struct WeightCounts {
  double matmul_elements = 0;  // multiplied with every prompt token; of experts the active ones
  double output_elements = 0;  // of the logits, multiplied once per prompt
  double expert_elements = 0;  // of all experts
  // Read in a decode step of `tokens` requests, with the experts that they are expected to choose.
  double decode_elements(const model::Config& config, double tokens) const;
};

WeightCounts weight_counts(const model::Config& config);

std::string grouped(double whole);                             // "15,360"
std::string ms_text(double ms);                                // "62.0 ms"
std::string percent_text(double share);                        // "96 %"
std::string rate_text(double request_rate);                    // "4 requests/s", "all at once", "a closed loop"
std::string point_text(const formats::BenchPoint& point);      // "4,096 tokens at 4 requests/s"
double typical(const formats::LatencyStats& stats);            // the median, or the mean if it is unknown
const char* typical_name(const formats::LatencyStats& stats);  // "median" or "mean"
std::string metric_name(const formats::LatencyStats& stats, const std::string& name);  // "median_ttft_ms"
// The most requests that the client had in flight; 0: unknown.
long client_limit(const formats::BenchPoint& point);

}  // namespace mw::audit::rules
