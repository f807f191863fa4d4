// SPDX-License-Identifier: Apache-2.0
#include "core/audit/audit.h"

#include <algorithm>
#include <cmath>

#include "core/audit/audit_rules.h"
#include "core/base/counted.h"
#include "core/base/units.h"

namespace mw::audit {

namespace rules {

std::string grouped(double whole) {
  std::string digits = std::to_string(std::llround(whole));
  for (long at = static_cast<long>(digits.size()) - 3; at > (digits[0] == '-' ? 1 : 0); at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

std::string ms_text(double ms) {
  return (ms >= 999.5 ? grouped(ms) : number_text(ms, 3)) + " ms";
}

std::string percent_text(double share) {
  return (share >= 0.1 ? grouped(share * 100) : number_text(share * 100, 2)) + " %";
}

std::string rate_text(double request_rate) {
  if (std::isnan(request_rate)) return "a closed loop";
  if (std::isinf(request_rate)) return "all at once";
  return number_text(request_rate, 4) + " requests/s";
}

std::string point_text(const formats::BenchPoint& point) {
  const std::string tokens = point.input_len > 0 ? counted(grouped(point.input_len), "token") : "prompts";
  if (std::isinf(point.request_rate)) return tokens + ", all at once";
  if (!std::isnan(point.request_rate)) return tokens + " at " + rate_text(point.request_rate);
  return point.max_concurrency > 0 ? tokens + " by " + counted(grouped(point.max_concurrency), "user") : tokens;
}

double typical(const formats::LatencyStats& stats) {
  return std::isnan(stats.percentile(50)) ? stats.mean : stats.percentile(50);
}

const char* typical_name(const formats::LatencyStats& stats) {
  return std::isnan(stats.percentile(50)) ? "mean" : "median";
}

std::string metric_name(const formats::LatencyStats& stats, const std::string& name) {
  return std::string(typical_name(stats)) + "_" + name + "_ms";
}

long client_limit(const formats::BenchPoint& point) {
  if (point.num_prompts > 0 && point.max_concurrency > 0)
    return std::min<long>(point.num_prompts, point.max_concurrency);
  return std::max<long>(point.num_prompts, point.max_concurrency);
}

namespace {

// Sorts by point, the worst first.
void sort_findings(Findings& findings) {
  std::stable_sort(findings.begin(), findings.end(), [](const AuditFinding& a, const AuditFinding& b) {
    return a.point != b.point ? a.point < b.point : a.verdict > b.verdict;
  });
}

}  // namespace
}  // namespace rules

std::string_view unit_of(std::string_view metric) {
  static constexpr std::pair<std::string_view, std::string_view> kUnits[] = {{"completed", "requests"},
                                                                             {"num_prompts", "requests"},
                                                                             {"failed", "requests"},
                                                                             {"max_concurrent_requests", "requests"},
                                                                             {"request_throughput", "requests/s"},
                                                                             {"request_rate", "requests/s"},
                                                                             {"output_throughput", "tokens/s"},
                                                                             {"total_token_throughput", "tokens/s"},
                                                                             {"tokens_per_second", "tokens/s"},
                                                                             {"padded_tokens_per_second", "tokens/s"},
                                                                             {"input_len", "tokens"},
                                                                             {"output_len", "tokens"},
                                                                             {"peak_bytes", "bytes"},
                                                                             {"seconds", "s"},
                                                                             {"seconds_per_step", "s"},
                                                                             {"steps", "steps"}};
  if (metric.ends_with("_ms")) return "ms";
  for (const auto& [name, unit] : kUnits)
    if (name == metric) return unit;
  return {};
}

std::vector<AuditFinding> audit(const formats::BenchSet& set) {
  rules::Findings out;
  rules::check_arithmetic(set, out);
  rules::check_load(set, out);
  rules::check_trends(set, out);
  rules::sort_findings(out);
  return out;
}

std::vector<AuditFinding> audit(const formats::BenchSet& set, const AuditReference& reference) {
  rules::Findings out = audit(set);
  rules::check_floors(set, reference, out);
  rules::sort_findings(out);
  return out;
}

}  // namespace mw::audit
