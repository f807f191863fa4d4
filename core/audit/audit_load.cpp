// SPDX-License-Identifier: Apache-2.0
// Whether the load can support the result: enough requests, enough in flight, no failures, no growing queue.
#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/audit/audit_rules.h"
#include "core/base/counted.h"
#include "core/base/units.h"

namespace mw::audit::rules {
namespace {

using formats::BenchPoint;
using formats::BenchSet;
using formats::Definitions;

constexpr double kFull = 0.85;           // share of the client's limit that is in flight on average
constexpr long kDefaultSequences = 256;  // vLLM's default for max_num_seqs

class LoadRules : PointRules {
 public:
  using PointRules::PointRules;

  void check() {
    if (set_.tool.starts_with("llama-bench")) return;  // measures single sequences by design
    littles_law();
    request_count();
    failures();
    loops();
    saturation();
    warm_up();
  }

 private:
  long server_limit() const {
    const long n = std::atol(set_.condition("max_num_seqs").c_str());
    return n > 0 ? n : kDefaultSequences;
  }

  // Average in flight: tokens/s x seconds per token. If it equals the limit of the client, the client was the
  // bottleneck.
  void littles_law() {
    const long limit = client_limit(p_), server = server_limit();
    const double rate = p_.output_throughput, tpot = typical(p_.tpot);
    const bool closed = std::isnan(p_.request_rate) && p_.max_concurrency > 0;  // always at its limit
    if (closed || limit <= 1 || std::isnan(rate) || limit >= server) return;
    const bool users = p_.max_concurrency > 0 && p_.max_concurrency <= p_.num_prompts;
    const std::string limit_text = grouped(static_cast<double>(limit)) + (users ? " users" : " prompts");
    if (!std::isnan(tpot)) {
      const double busy = rate * tpot / 1e3;
      if (busy < kFull * static_cast<double>(limit)) return;
      const double most = static_cast<double>(limit) / tpot * 1e3;
      add("LITTLE", {"output_throughput", rate, most}, Verdict::suspicious,
          grouped(rate) + " tokens/s are " + percent_text(rate / most) + " of what " + limit_text + " can produce (" +
              number_text(busy, 3) +
              " were in flight): this measures the load of the client, not the capacity of the server",
          grouped(static_cast<double>(limit)) + " / " + number_text(tpot, 4) + " ms = " + grouped(most) + " tokens/s");
      return;
    }
    if (!std::isinf(p_.request_rate)) return;
    const bool is_stated = set_.conditions.contains("max_num_seqs");
    add("LITTLE", {"output_throughput", rate, rate}, Verdict::suspicious,
        "a burst of " + limit_text + " cannot fill a server of " +
            counted(grouped(static_cast<double>(server)), "sequence") +
            (is_stated ? "" : " (vLLM's default, because the source does not state it)") + ": " + grouped(rate) +
            " tokens/s is not the capacity of the server",
        grouped(static_cast<double>(limit)) + " in flight at most, of " + grouped(static_cast<double>(server)));
  }

  void request_count() {
    const auto n = static_cast<double>(p_.completed > 0 ? p_.completed : p_.num_prompts);
    if (n <= 0) return;
    for (const auto& [stats, name] : {std::pair(&p_.ttft, "ttft"), {&p_.tpot, "tpot"}, {&p_.e2el, "e2el"}})
      for (const auto& [p, value] : stats->percentiles) {
        const double beyond = n * (1 - p / 100);
        if (p < 90 || beyond >= 5) continue;
        add("TOO-FEW", {"completed", n, std::round(500 / (100 - p))}, Verdict::suspicious,
            "p" + number_text(p) + "_" + std::string(name) + "_ms: the " + number_text(p) + "th percentile of " +
                counted(grouped(n), "request") + " depends on " +
                (beyond < 1 ? "the slowest one" : number_text(beyond, 2) + " of them") + ": " +
                counted(grouped(5 / (1 - p / 100)), "request") + " would leave five above it",
            grouped(n) + " x " + number_text(1 - p / 100, 2) + " = " + number_text(beyond, 2));
      }
    if (n < 100 && p_.ttft.known())
      add("TOO-FEW", {"completed", n, 100}, Verdict::suspicious, median_text(n), "ranks n/2 +- 0.98 sqrt(n)");
    if (p_.max_concurrency > 1 && p_.num_prompts > 0 && p_.num_prompts < 5L * p_.max_concurrency &&
        std::isnan(p_.request_rate))
      add("TOO-FEW", {"completed", n, 5.0 * p_.max_concurrency}, Verdict::suspicious,
          counted(grouped(n), "request") + " for " + counted(grouped(p_.max_concurrency), "user") +
              ": start and end dominate the measurement",
          "num_prompts >= 5 x max_concurrency");
  }

  static std::string median_text(double n) {
    const double half = 0.98 * std::sqrt(n);
    return "the median of " + counted(grouped(n), "request") + " lies between ranks " +
           grouped(std::max(1.0, std::floor(n / 2 - half))) + " and " +
           grouped(std::min(n, std::ceil(n / 2 + half + 1))) + " with 95 % confidence";
  }

  void failures() {
    const auto n = static_cast<double>(std::max(p_.num_prompts, p_.completed + p_.failed));
    if (p_.failed > 0)
      add("FAILED", {"failed", static_cast<double>(p_.failed), 0}, Verdict::suspicious,
          p_.completed == 0 ? "all " + counted(grouped(n), "request") + " failed; nothing was measured"
                            : grouped(static_cast<double>(p_.failed)) + " of " + counted(grouped(n), "request") +
                                  " failed: latencies exclude them, and the server had less load");
    const bool timed = p_.ttft.known() || p_.e2el.known();
    if (p_.completed == 0 && p_.failed > 0 && timed)
      add("FAILED", {metric_name(p_.ttft, "ttft"), typical(p_.ttft), 0}, Verdict::suspicious,
          "no request completed, but latencies are given");
  }

  void loops() {
    if (!std::isnan(p_.request_rate) && p_.max_concurrency > 0 && p_.max_concurrency < p_.num_prompts &&
        p_.max_concurrent_requests >= p_.max_concurrency && !std::isinf(p_.request_rate))
      add("LOOP", {"max_concurrent_requests", p_.max_concurrent_requests, static_cast<double>(p_.max_concurrency)},
          Verdict::suspicious,
          "the limit of " + counted(grouped(p_.max_concurrency), "request") + " in flight was reached: " +
              rate_text(p_.request_rate) + " were not offered, and latencies exclude the waiting time",
          "open loop only while in flight < max_concurrency");
    const double sent = typical(p_.ttft), intended = typical(p_.intended_ttft);
    if (intended > sent * 1.1 && intended - sent > 1)
      add("LOOP", {metric_name(p_.ttft, "ttft"), sent, intended}, Verdict::suspicious,
          "the client sent requests late: from the intended time, the first token took " + ms_text(intended) +
              ", not " + ms_text(sent),
          "coordinated omission");
  }

  // `alone`: time of the last request, which a server that keeps up also needs.
  void saturation() {
    const double rate = p_.request_rate;
    bool overloaded = p_.verdict == "overloaded" || p_.verdict == "backlogged";
    std::string why = "its verdict is " + p_.verdict;
    if (!overloaded && p_.verdict.empty() && std::isfinite(rate) && p_.completed >= 10 && !std::isnan(p_.duration_s)) {
      const double alone =
          (p_.e2el.known() ? typical(p_.e2el) : typical(p_.ttft) + typical(p_.tpot) * std::max(0, p_.output_len - 1)) /
          1e3;
      const double kept_up = static_cast<double>(p_.completed) / rate + (std::isnan(alone) ? 0 : alone);
      overloaded = p_.duration_s > 1.3 * kept_up;
      why = "it took " + number_text(p_.duration_s, 3) + " s instead of " + number_text(kept_up, 3) + " s";
    }
    if (!overloaded || std::isnan(typical(p_.ttft))) return;
    add("SATURATED", {metric_name(p_.ttft, "ttft"), typical(p_.ttft), 0}, Verdict::suspicious,
        "the server did not keep up with " + (std::isnan(rate) ? std::string("the load") : rate_text(rate)) + " (" +
            why + "): TTFT reflects the length of the run");
  }

  void warm_up() {
    if (p_.requests.size() < 10 || !p_.ttft.known()) return;
    const auto first = std::min_element(p_.requests.begin(), p_.requests.end(),
                                        [](const auto& a, const auto& b) { return a.sent_s < b.sent_s; });
    const double ms = (first->first_token_s - first->sent_s) * 1e3, usual = typical(p_.ttft);
    if (!(ms > 10 * usual && ms > 500) || std::isinf(p_.request_rate)) return;
    add("WARM-UP", {"first_ttft_ms", ms, usual}, Verdict::suspicious,
        "the first request took " + ms_text(ms) + " to its first token, the others " + ms_text(usual) +
            ": the measurement includes compilation or loading");
  }
};

}  // namespace

void check_load(const BenchSet& set, Findings& out) {
  for (size_t i = 0; i < set.points.size(); ++i) LoadRules(set, i, out).check();
}

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
            grouped(shorter->input_len) + " to " + counted(grouped(p_.input_len), "token") +
            " under the same load: the conditions must differ",
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
