// SPDX-License-Identifier: Apache-2.0
// Contradictions between the numbers of one point: totals, units, order of percentiles, lengths.
#include <cmath>

#include "core/audit/audit_rules.h"
#include "core/base/counted.h"
#include "core/base/units.h"

namespace mw::audit::rules {
namespace {

using formats::BenchPoint;
using formats::BenchSet;
using formats::Definitions;
using formats::LatencyStats;

constexpr double kRounding = 0.02,
                 kWrong = 0.2;  // relative: tables round, and speculative tokens are counted differently

class ArithmeticRules : PointRules {
 public:
  using PointRules::PointRules;

  void check() {
    if (set_.definitions.peak == Definitions::Peak::mean) totals();
    counts();
    latencies();
    lengths();
    throughput_above_offered();
  }

 private:
  // A rate must be its total over the duration.
  void rate(const char* name, double given, double total, const std::string& what) {
    if (std::isnan(given) || std::isnan(p_.duration_s) || p_.duration_s <= 0 || total <= 0) return;
    const double expected = total / p_.duration_s, off = std::abs(given / expected - 1);
    if (off <= kRounding || given <= 0) return;
    const double thousand = std::abs(std::log10(given / expected));
    const bool units = thousand > 2.7 && thousand < 3.3;
    add("UNITS", {name, given, expected}, off > kWrong ? Verdict::impossible : Verdict::suspicious,
        number_text(given) + " " + what + "/s is not " + grouped(total) + " in " + number_text(p_.duration_s) +
            " s, which is " + number_text(expected) + (units ? ": one of them is wrong by a factor of a thousand" : ""),
        grouped(total) + " / " + number_text(p_.duration_s) + " s = " + number_text(expected) + "/s");
  }

  void totals() {
    rate("output_throughput", p_.output_throughput, static_cast<double>(p_.total_output_tokens), "tokens");
    rate("request_throughput", p_.request_throughput, static_cast<double>(p_.completed), "requests");
    if (p_.total_input_tokens > 0)
      rate("total_token_throughput", p_.total_token_throughput,
           static_cast<double>(p_.total_input_tokens + p_.total_output_tokens), "tokens");
  }

  void counts() {
    if (p_.num_prompts <= 0) return;
    const long ended = p_.completed + p_.failed;
    const auto n = static_cast<double>(p_.num_prompts);
    if (ended > p_.num_prompts)
      add("UNITS", {"completed", static_cast<double>(ended), n}, Verdict::impossible,
          counted(grouped(static_cast<double>(ended)), "request") + " ended, but only " + grouped(n) + " were sent",
          "completed + failed <= num_prompts");
    else if (ended > 0 && ended < p_.num_prompts && !p_.rest.contains("incomplete"))
      add("UNITS", {"completed", static_cast<double>(ended), n}, Verdict::suspicious,
          grouped(n - static_cast<double>(ended)) + " of " + counted(grouped(n), "request") +
              " neither completed nor failed",
          "completed + failed = num_prompts");
  }

  void order(const LatencyStats& stats, const std::string& name) {
    double before = -1, at = 0;
    std::map<double, double> all = stats.percentiles;
    if (!std::isnan(stats.median)) all[50] = stats.median;
    for (const auto& [p, value] : all) {
      if (value < before * (1 - 1e-9)) {
        add("UNITS", {"p" + number_text(p) + "_" + name + "_ms", value, before}, Verdict::impossible,
            "the " + number_text(p) + "th percentile of " + name + " is " + ms_text(value) + ", below the " +
                number_text(at) + "th of " + ms_text(before),
            "percentiles do not decrease");
        return;
      }
      before = value;
      at = p;
    }
  }

  void latencies() {
    for (const auto& [stats, name] :
         {std::pair(&p_.ttft, "ttft"), {&p_.tpot, "tpot"}, {&p_.itl, "itl"}, {&p_.e2el, "e2el"}})
      order(*stats, name);
    if (p_.ttft.mean > p_.e2el.mean * (1 + kRounding))
      add("UNITS", {"mean_ttft_ms", p_.ttft.mean, p_.e2el.mean}, Verdict::impossible,
          "the first token takes " + ms_text(p_.ttft.mean) + " and the whole request " + ms_text(p_.e2el.mean),
          "TTFT <= E2E");
    const double tpot = typical(p_.tpot), ttft = typical(p_.ttft);
    const bool ours = set_.tool.starts_with("meshwright");  // always ms; small models are that fast
    if (!ours && tpot < 0.5 && tpot > 0 && (std::isnan(ttft) || ttft < 20))
      add("UNITS", {metric_name(p_.tpot, "tpot"), tpot, 0.5}, Verdict::suspicious,
          number_text(tpot) + " ms per token" +
              (std::isnan(ttft) ? "" : " and " + number_text(ttft) + " ms to the first") + " look like seconds, not ms",
          "ms = 1000 x s");
    latency_sum();
  }

  // Means add up for any distribution if all completions have the same length.
  void latency_sum() {
    const bool includes_first = set_.definitions.tpot == Definitions::Tpot::with_first;
    const bool divides_by_all = set_.definitions.tpot == Definitions::Tpot::after_first_per_token;
    const double n = p_.completed > 0 && p_.total_output_tokens > 0
                         ? static_cast<double>(p_.total_output_tokens) / static_cast<double>(p_.completed)
                         : p_.output_len;
    if (n < 2) return;
    const double expected =
        includes_first ? p_.tpot.mean * n : p_.ttft.mean + p_.tpot.mean * (divides_by_all ? n : n - 1);
    if (std::isnan(expected) || std::isnan(p_.e2el.mean) || expected <= 0 || p_.e2el.mean <= 0) return;
    const double ratio = p_.e2el.mean / expected;
    if (ratio > 1 / 3.0 && ratio < 3) return;
    add("UNITS", {"mean_e2el_ms", p_.e2el.mean, expected}, Verdict::suspicious,
        "requests of " + ms_text(p_.e2el.mean) + " are not " + counted(grouped(n), "token") + " of " +
            ms_text(p_.tpot.mean) + (includes_first ? "" : " after " + ms_text(p_.ttft.mean)) + ", which is " +
            ms_text(expected),
        includes_first   ? "E2E = n x TPOT"
        : divides_by_all ? "E2E = TTFT + n x TPOT"
                         : "E2E = TTFT + (n - 1) x TPOT");
  }

  // Completions that ended early or prompts that were truncated: the load differs from the stated one.
  void length(const char* name, int asked, long total) {
    if (asked <= 0 || total <= 0 || p_.completed <= 0) return;
    const double mean = static_cast<double>(total) / static_cast<double>(p_.completed);
    if (std::abs(mean / asked - 1) <= 0.1) return;
    add("LENGTHS", {name, mean, static_cast<double>(asked)}, Verdict::suspicious,
        std::string(name == std::string("output_len") ? "completions" : "prompts") + " have " +
            counted(grouped(mean), "token") + " on average instead of " + grouped(asked),
        grouped(static_cast<double>(total)) + " / " + grouped(static_cast<double>(p_.completed)));
  }
  void lengths() {
    length("input_len", p_.input_len, p_.total_input_tokens);
    length("output_len", p_.output_len, p_.total_output_tokens);
  }

  // n arrivals take at least (n - 1) / rate, which limits the throughput.
  void throughput_above_offered() {
    if (!std::isfinite(p_.request_rate) || std::isnan(p_.request_throughput) || p_.num_prompts < 10) return;
    const auto n = static_cast<double>(p_.num_prompts);
    const double most = p_.request_rate * n / (n - 1);
    if (p_.request_throughput <= most * 1.1) return;
    add("UNITS", {"request_throughput", p_.request_throughput, most}, Verdict::suspicious,
        number_text(p_.request_throughput) + " requests/s were served, but only " + number_text(p_.request_rate) +
            " were offered",
        "served <= offered");
  }
};

}  // namespace

void check_arithmetic(const BenchSet& set, Findings& out) {
  for (size_t i = 0; i < set.points.size(); ++i) ArithmeticRules(set, i, out).check();
}

}  // namespace mw::audit::rules
