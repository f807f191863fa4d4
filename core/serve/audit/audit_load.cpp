// SPDX-License-Identifier: Apache-2.0
// Whether the load could show what is claimed: enough requests, enough in flight, none lost, no queue that grows.
#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "core/serve/audit/audit_rules.h"

namespace mw::serve::rules {
namespace {

using formats::BenchPoint;
using formats::BenchSet;
using formats::Definitions;

constexpr double kFull = 0.85;         // of the client's requests in flight all the time
constexpr long kUsualSequences = 256;  // vLLM's max_num_seqs where nothing is said

class Load {
 public:
  Load(const BenchSet& set, size_t i, Findings& out) : set_(set), p_(set.points[i]), i_(i), out_(out) {}

  void all() {
    if (set_.tool.starts_with("llama-bench")) return;  // one sequence is all it means to measure
    little();
    few();
    failures();
    loops();
    saturation();
    warm_up();
  }

 private:
  void add(std::string rule, std::string metric, double value, double floor, std::string text, std::string formula) {
    out_.push_back({.point = i_,
                    .rule = std::move(rule),
                    .metric = std::move(metric),
                    .value = value,
                    .floor = floor,
                    .verdict = Verdict::suspicious,
                    .text = std::move(text),
                    .formula = std::move(formula)});
  }

  long server_limit() const {
    const auto said = set_.conditions.find("max_num_seqs");
    const long n = said == set_.conditions.end() ? 0 : std::atol(said->second.c_str());
    return n > 0 ? n : kUsualSequences;
  }

  // In flight on average: tokens/s x seconds per token. What equals the client's requests is the client's.
  void little() {
    const long limit = client_limit(p_), server = server_limit();
    const double rate = p_.output_throughput, tpot = typical(p_.tpot);
    const bool closed = std::isnan(p_.request_rate) && p_.max_concurrency > 0;  // full by design
    if (closed || limit <= 1 || std::isnan(rate) || limit >= server) return;
    const bool users = p_.max_concurrency > 0 && p_.max_concurrency <= p_.num_prompts;
    const std::string what = grouped(static_cast<double>(limit)) + (users ? " users" : " prompts");
    if (!std::isnan(tpot)) {
      const double busy = rate * tpot / 1e3;
      if (busy < kFull * static_cast<double>(limit)) return;
      const double most = static_cast<double>(limit) / tpot * 1e3;
      add("LITTLE", "output_throughput", rate, most,
          grouped(rate) + " tokens/s are " + percent_text(rate / most) + " of what " + what + " can ever show (" +
              number_text(busy, 3) + " were in flight): the client's load was measured, not the server's capacity",
          grouped(static_cast<double>(limit)) + " / " + number_text(tpot, 4) + " ms = " + grouped(most) + " tokens/s");
      return;
    }
    if (!std::isinf(p_.request_rate)) return;
    const auto said = set_.conditions.contains("max_num_seqs");
    add("LITTLE", "output_throughput", rate, rate,
        "a burst of " + what + " cannot fill a server of " + grouped(static_cast<double>(server)) + " sequences" +
            (said ? "" : " (vLLM's default; the source does not say)") + ": " + grouped(rate) +
            " tokens/s is what the prompts took, not what the server can",
        grouped(static_cast<double>(limit)) + " in flight at most, of " + grouped(static_cast<double>(server)));
  }

  void few() {
    const auto n = static_cast<double>(p_.completed > 0 ? p_.completed : p_.num_prompts);
    if (n <= 0) return;
    for (const auto& [stats, name] : {std::pair(&p_.ttft, "ttft"), {&p_.tpot, "tpot"}, {&p_.e2el, "e2el"}})
      for (const auto& [p, value] : stats->percentiles) {
        const double beyond = n * (1 - p / 100);
        if (p < 90 || beyond >= 5) continue;
        add("TOO-FEW", "p" + number_text(p) + "_" + std::string(name) + "_ms", n, 5 / (1 - p / 100),
            "the " + number_text(p) + "th percentile of " + grouped(n) + " requests is decided by " +
                (beyond < 1 ? "the slowest one" : number_text(beyond, 2) + " of them") + ": " +
                grouped(5 / (1 - p / 100)) + " requests would give it five",
            grouped(n) + " x " + number_text(1 - p / 100, 2) + " = " + number_text(beyond, 2));
      }
    if (n < 100 && p_.ttft.known()) add("TOO-FEW", "num_prompts", n, 100, median_text(n), "ranks n/2 +- 0.98 sqrt(n)");
    if (p_.max_concurrency > 1 && p_.num_prompts > 0 && p_.num_prompts < 5L * p_.max_concurrency &&
        std::isnan(p_.request_rate))
      add("TOO-FEW", "num_prompts", n, 5.0 * p_.max_concurrency,
          grouped(n) + " requests for " + grouped(p_.max_concurrency) + " users: the start and the end are most of it",
          "num_prompts >= 5 x max_concurrency");
  }

  static std::string median_text(double n) {
    const double half = 0.98 * std::sqrt(n);
    return "the median of " + grouped(n) + " requests lies between ranks " +
           grouped(std::max(1.0, std::floor(n / 2 - half))) + " and " +
           grouped(std::min(n, std::ceil(n / 2 + half + 1))) + " with 95 % confidence";
  }

  void failures() {
    const auto n = static_cast<double>(std::max(p_.num_prompts, p_.completed + p_.failed));
    if (p_.failed > 0)
      add("FAILED", "failed", static_cast<double>(p_.failed), 0,
          p_.completed == 0 ? "all " + grouped(n) + " requests failed: nothing was measured"
                            : grouped(static_cast<double>(p_.failed)) + " of " + grouped(n) +
                                  " requests failed: latencies are of the others, and the server had less to do",
          "");
    const bool timed = p_.ttft.known() || p_.e2el.known();
    if (p_.completed == 0 && p_.failed > 0 && timed)
      add("FAILED", metric(p_.ttft, "ttft"), typical(p_.ttft), 0, "no request completed, and yet latencies are given",
          "");
  }

  void loops() {
    if (!std::isnan(p_.request_rate) && p_.max_concurrency > 0 && p_.max_concurrency < p_.num_prompts &&
        p_.max_concurrent_requests >= p_.max_concurrency && !std::isinf(p_.request_rate))
      add("LOOP", "request_rate", p_.max_concurrent_requests, p_.max_concurrency,
          "the cap of " + grouped(p_.max_concurrency) + " requests in flight was reached: " +
              rate_text(p_.request_rate) + " were not offered, and the waiting is in no latency",
          "open loop only while in flight < max_concurrency");
    const double sent = typical(p_.ttft), intended = typical(p_.intended_ttft);
    if (intended > sent * 1.1 && intended - sent > 1)
      add("LOOP", metric(p_.ttft, "ttft"), sent, intended,
          "the client sent late: from the moment that was meant, the first token took " + ms_text(intended) + ", not " +
              ms_text(sent),
          "coordinated omission");
  }

  // The slowest request's share of the time is not the server's fault.
  void saturation() {
    const std::string metric_name = metric(p_.ttft, "ttft");
    const double rate = p_.request_rate;
    bool overloaded = p_.verdict == "overloaded" || p_.verdict == "backlogged";
    std::string why = "its verdict is " + p_.verdict;
    if (!overloaded && p_.verdict.empty() && std::isfinite(rate) && p_.completed >= 10 && !std::isnan(p_.duration_s)) {
      const double alone =
          (p_.e2el.known() ? typical(p_.e2el) : typical(p_.ttft) + typical(p_.tpot) * std::max(0, p_.output_len - 1)) /
          1e3;
      const double kept_up = static_cast<double>(p_.completed) / rate + (std::isnan(alone) ? 0 : alone);
      overloaded = p_.duration_s > 1.3 * kept_up;
      why = "it took " + number_text(p_.duration_s, 3) + " s where " + number_text(kept_up, 3) + " s keep up";
    }
    if (!overloaded || std::isnan(typical(p_.ttft))) return;
    add("SATURATED", metric_name, typical(p_.ttft), 0,
        "the server fell behind " + (std::isnan(rate) ? std::string("the load") : rate_text(rate)) + " (" + why +
            "): TTFT says how long the run was",
        "");
  }

  void warm_up() {
    if (p_.requests.size() < 10 || !p_.ttft.known()) return;
    const auto first = std::min_element(p_.requests.begin(), p_.requests.end(),
                                        [](const auto& a, const auto& b) { return a.sent_s < b.sent_s; });
    const double ms = (first->first_token_s - first->sent_s) * 1e3, usual = typical(p_.ttft);
    if (!(ms > 10 * usual && ms > 500) || std::isinf(p_.request_rate)) return;
    add("WARM-UP", "mean_ttft_ms", ms, usual,
        "the first request took " + ms_text(ms) + " to its first token, the others " + ms_text(usual) +
            ": something was compiled or loaded inside the measurement",
        "");
  }

  const BenchSet& set_;
  const BenchPoint& p_;
  size_t i_;
  Findings& out_;
};

}  // namespace

void load(const BenchSet& set, Findings& out) {
  for (size_t i = 0; i < set.points.size(); ++i) Load(set, i, out).all();
}

}  // namespace mw::serve::rules
