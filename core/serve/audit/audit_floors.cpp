// SPDX-License-Identifier: Apache-2.0
// Physical lower bounds: the matrix products of prompt tokens that were not cached, reading weights and KV cache for
// each token, and the all-reduces of a tensor-parallel group. Leaves out everything that could be faster than the peak
// numbers suggest, so "impossible" has no exceptions.
#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "core/model/inventory.h"
#include "core/serve/audit/audit_rules.h"

namespace mw::serve::rules {
namespace {

using formats::BenchPoint;
using formats::BenchSet;
using model::Role;

// Published prefill times of single requests reach 15 to 57 % of the peak.
constexpr double kHighPrefillShare = 0.5;

struct ChipTotals {
  double flops = 0, bandwidth = 0;  // of all chips, per second; bandwidth in bytes
  double link = 0;                  // bytes/s of one chip in one direction
  int count = 0;
  std::string flops_text{}, bandwidth_text{};
};

struct WeightCounts {
  double matmul_elements = 0;  // multiplied with every prompt token; of experts the active ones
  double output_elements = 0;  // of the logits, multiplied once per prompt
  double decode_elements() const { return matmul_elements + output_elements; }  // read in every decode step
};

bool is_expert(Role role) {
  return role == Role::experts_gate_up || role == Role::experts_down;
}

WeightCounts weight_counts(const model::Config& config) {
  const model::TensorInventory inventory(config);
  const double active =
      config.experts > 0 ? static_cast<double>(config.experts_per_token) / static_cast<double>(config.experts) : 1;
  WeightCounts counts;
  for (const model::Tensor& t : inventory.tensors()) {
    const auto n = static_cast<double>(t.elements());
    if (t.role == Role::ple_embed || t.hf_shape.size() < 2) continue;  // lookups; norms are negligible
    if (t.role == Role::embed || t.role == Role::lm_head) {
      if (t.role == Role::lm_head || config.tied_embeddings) counts.output_elements = n;
      continue;
    }
    counts.matmul_elements += is_expert(t.role) ? n * active : n;
  }
  return counts;
}

ChipTotals chip_totals(const AuditReference& a) {
  const hardware::Chip& c = a.target.chip;
  ChipTotals out{.count = a.target.chips()};
  double per_chip = c.bf16_flops.value;
  if (a.weight_bytes <= 1) per_chip = std::max({per_chip, c.fp8_flops.value, c.int8_ops.value});
  out.flops = per_chip * out.count;
  out.bandwidth = c.memory_bandwidth.value * out.count;
  out.link = c.link_bandwidth.value * std::max(1, c.links);
  out.flops_text = "(" + std::to_string(out.count) + " x " + number_text(per_chip / 1e12, 4) + " TFLOP/s)";
  out.bandwidth_text =
      "(" + std::to_string(out.count) + " x " + number_text(c.memory_bandwidth.value / 1e9, 4) + " GB/s)";
  return out;
}

// (query, key) pairs of queries [first, n) with causal attention, in a window if window > 0.
double causal_query_pairs(double first, double n, double window) {
  const auto up_to = [&](double k) {  // of the first k queries
    if (window <= 0 || k <= window) return k * (k + 1) / 2;
    return window * (window + 1) / 2 + (k - window) * window;
  };
  return up_to(n) - up_to(first);
}

double attention_flops(const model::Config& config, double cached, double tokens) {
  double flops = 0;
  for (const model::Layer& l : config.layers) {
    const double window = l.attention == model::Attention::sliding ? config.sliding_window : 0;
    flops += 4 * causal_query_pairs(cached, tokens, window) * l.heads * l.head_dim;
  }
  return flops;
}

struct PrefillFlops {
  double weights = 0, attention = 0;
  double total() const { return weights + attention; }
};

PrefillFlops prefill_flops(const model::Config& config, const WeightCounts& work, double cached, double tokens) {
  return {.weights = 2 * work.matmul_elements * (tokens - cached) + 2 * work.output_elements,
          .attention = attention_flops(config, cached, tokens)};
}

// Bytes of KV cache that a token reads after `tokens` earlier ones. Excludes layers that share the cache of others,
// which may still be on the chip, and V where it equals K.
double cache_read(const AuditReference& a, double tokens) {
  double bytes = 0;
  for (const model::Layer& l : a.model.layers) {
    const double seen = l.attention == model::Attention::sliding && a.model.sliding_window > 0
                            ? std::min<double>(tokens, a.model.sliding_window)
                            : tokens;
    bytes += seen * l.kv_heads * l.head_dim * ((l.has_k ? 1 : 0) + (l.has_v ? 1 : 0)) * a.kv_bytes;
  }
  return bytes;
}

std::string cache_text(const BenchSet& set, const BenchPoint& p) {
  if (p.prefix_hits == 0 || set.condition("prefix_cache") == "off")
    return "according to the source, no prefix cache was used";
  return "possible only if most of the prompt was in a prefix cache or the request was rejected";
}

class FloorRules {
 public:
  FloorRules(const BenchSet& set, const AuditReference& reference, Findings& out)
      : set_(set),
        reference_(reference),
        out_(out),
        weights_(weight_counts(reference.model)),
        chips_(chip_totals(reference)) {}

  void check() {
    for (size_t i = 0; i < set_.points.size(); ++i) {
      prefill(i);
      rate(i);
      decode(i);
      link(i);
      context(i);
    }
    slopes();
  }

 private:
  std::string target() const { return reference_.target.id; }

  void prefill(size_t i) {
    const BenchPoint& p = set_.points[i];
    const double ms = typical(p.ttft);
    if (p.input_len <= 0 || std::isnan(ms)) return;
    const double cached = p.prefix_hits > 0 ? std::floor(std::min(1.0, p.prefix_hits) * (p.input_len - 1)) : 0;
    const PrefillFlops work = prefill_flops(reference_.model, weights_, cached, p.input_len);
    const double floor = work.total() / chips_.flops * 1e3, share = floor / ms;
    if (share < kHighPrefillShare) return;
    const bool impossible = share > 1;
    const std::string fact = "a " + std::string(typical_name(p.ttft)) + " TTFT of " + ms_text(ms) + " for " +
                             grouped(p.input_len) + " tokens";
    const double ceiling = reference_.target.chip.matmul_efficiency.value;
    out_.push_back(
        {.point = i,
         .rule = "FLOOR-PREFILL",
         .metric = metric_name(p.ttft, "ttft"),
         .value = ms,
         .floor = floor,
         .verdict = impossible ? Verdict::impossible : Verdict::suspicious,
         .text = impossible ? fact + " is below the floor of " + ms_text(floor) + " that " + target() +
                                  " needs at its peak: " + cache_text(set_, p)
                            : fact + " is " + percent_text(share) + " of " + target() + "'s peak (floor " +
                                  ms_text(floor) + "): single requests usually stay well below" +
                                  (share > ceiling && ceiling > 0
                                       ? ", and even large matrix products only reach " + percent_text(ceiling)
                                       : ""),
         .formula = "(2 x " + number_text(weights_.matmul_elements / 1e9, 3) + "e9 x " + grouped(p.input_len - cached) +
                    " + " + number_text(work.attention / 1e12, 3) + "e12 of attention) FLOP / " + chips_.flops_text});
  }

  // Every token is multiplied with the weights at least once.
  void rate(size_t i) {
    const BenchPoint& p = set_.points[i];
    double tokens = p.total_token_throughput;
    std::string name = "total_token_throughput";
    if (std::isnan(tokens)) {
      tokens = p.output_throughput;
      name = "output_throughput";
    }
    const double most = chips_.flops / (2 * weights_.matmul_elements);
    const double computed = tokens * (1 - (p.prefix_hits > 0 ? std::min(1.0, p.prefix_hits) : 0));
    if (std::isnan(tokens) || computed <= most) return;
    out_.push_back(
        {.point = i,
         .rule = "FLOOR-PREFILL",
         .metric = name,
         .value = tokens,
         .floor = most,
         .verdict = Verdict::impossible,
         .text = grouped(tokens) + " tokens/s exceed the " + grouped(most) + " that " + target() +
                 " can compute at its peak: " + cache_text(set_, p),
         .formula = chips_.flops_text + " / (2 x " + number_text(weights_.matmul_elements / 1e9, 3) + "e9 FLOP)"});
  }

  // With speculative decoding, several tokens share a step.
  bool is_speculative(const BenchPoint& p) const {
    return p.rest.contains("spec_decode_acceptance_rate") || p.rest.contains("spec_decode_num_drafts") ||
           !set_.condition("speculative").empty();
  }

  void decode(size_t i) {
    const BenchPoint& p = set_.points[i];
    const double ms = typical(p.tpot);
    if (std::isnan(ms) || is_speculative(p)) return;
    const double weights = weights_.decode_elements() * reference_.weight_bytes,
                 row = cache_read(reference_, p.input_len);
    // Requests decoded at once on average, by Little's law.
    const double at_once = std::isnan(p.output_throughput) || set_.definitions.peak != formats::Definitions::Peak::mean
                               ? 1
                               : std::max(1.0, p.output_throughput * ms / 1e3);
    const double floor = (weights + row) / chips_.bandwidth * 1e3,
                 full = (weights + at_once * row) / chips_.bandwidth * 1e3;
    if (ms >= full) return;
    const bool impossible = ms < floor;
    out_.push_back(
        {.point = i,
         .rule = "FLOOR-DECODE",
         .metric = metric_name(p.tpot, "tpot"),
         .value = ms,
         .floor = impossible ? floor : full,
         .verdict = impossible ? Verdict::impossible : Verdict::suspicious,
         .text = ms_text(ms) + " per token are below the " + ms_text(impossible ? floor : full) + " in which " +
                 target() + " can read the weights" + (row > 0 ? " and the cache of " : "") +
                 (row > 0 ? (impossible ? "one request" : number_text(at_once, 3) + " requests at once") : ""),
         .formula = "(" + number_text(weights / 1e9, 3) + " GB + " +
                    (impossible ? "" : number_text(at_once, 3) + " x ") + number_text(row / 1e9, 3) + " GB) / " +
                    chips_.bandwidth_text});
  }

  // Two all-reduces per layer of the activations of every prompt token over the tp group.
  void link(size_t i) {
    const BenchPoint& p = set_.points[i];
    const double ms = typical(p.ttft);
    const int tp = std::atoi(set_.condition("tp").c_str());
    if (tp < 2 || tp > chips_.count || p.input_len <= 0 || std::isnan(ms) || chips_.link <= 0) return;
    const double cached = p.prefix_hits > 0 ? std::min(1.0, p.prefix_hits) * p.input_len : 0;
    const double bytes =
        (p.input_len - cached) * reference_.model.dim * 2.0 * 2 * static_cast<double>(reference_.model.layers.size());
    // In a ring each chip sends 2 (n-1)/n of the data; a switch that reduces in the network needs it once.
    const bool has_reducing_switch = reference_.target.chip.vendor == hardware::Vendor::gpu;
    const double times = has_reducing_switch ? std::min(1.0, 2.0 * (tp - 1) / tp) : 2.0 * (tp - 1) / tp;
    const double floor = bytes * times / chips_.link * 1e3;
    if (ms >= floor) return;
    out_.push_back({.point = i,
                    .rule = "LINK",
                    .metric = metric_name(p.ttft, "ttft"),
                    .value = ms,
                    .floor = floor,
                    .verdict = Verdict::impossible,
                    .text = ms_text(ms) + " to the first token are less than the " + ms_text(floor) +
                            " that the links of " + target() + " need for the all-reduces over tp " +
                            std::to_string(tp) + ": " + cache_text(set_, p),
                    .formula = number_text(times, 3) + " x 2 x " + std::to_string(reference_.model.layers.size()) +
                               " layers x " + grouped(p.input_len - cached) + " x " + grouped(reference_.model.dim) +
                               " x 2 B / " + number_text(chips_.link / 1e9, 3) + " GB/s"});
  }

  void context(size_t i) {
    const BenchPoint& p = set_.points[i];
    const int most = std::atoi(set_.condition("max_model_len").c_str());
    if (most <= 0 || p.input_len + p.output_len <= most || p.completed == 0 || p.rest.contains("n_depth")) return;
    out_.push_back({.point = i,
                    .rule = "CONTEXT",
                    .metric = "input_len",
                    .value = static_cast<double>(p.input_len),
                    .floor = static_cast<double>(most - p.output_len),
                    .verdict = Verdict::impossible,
                    .text = "a server with max_model_len " + grouped(most) + " rejects prompts of " +
                            grouped(p.input_len) + " tokens that request " + grouped(p.output_len) + " more",
                    .formula = grouped(p.input_len) + " + " + grouped(p.output_len) + " > " + grouped(most)});
  }

  // Under the same load, TTFT must grow at least by the products of the additional tokens.
  void slopes() {
    for (size_t i = 0; i < set_.points.size(); ++i)
      for (size_t j = 0; j < set_.points.size(); ++j) {
        const BenchPoint &shorter = set_.points[i], &longer = set_.points[j];
        const bool next = shorter.input_len > 0 && longer.input_len > shorter.input_len &&
                          (shorter.request_rate == longer.request_rate ||
                           (std::isnan(shorter.request_rate) && std::isnan(longer.request_rate) &&
                            shorter.max_concurrency > 0 && shorter.max_concurrency == longer.max_concurrency));
        if (next && longer.prefix_hits != 0 && !(longer.prefix_hits > 0)) slope(i, j);
      }
  }

  void slope(size_t i, size_t j) {
    const BenchPoint &a = set_.points[i], &b = set_.points[j];
    const double rise = typical(b.ttft) - typical(a.ttft), tokens = b.input_len - a.input_len;
    const double floor = (prefill_flops(reference_.model, weights_, 0, b.input_len).total() -
                          prefill_flops(reference_.model, weights_, 0, a.input_len).total()) /
                         chips_.flops * 1e3;
    if (std::isnan(rise) || rise <= 0 || rise >= floor || tokens < 512) return;  // falling: MONOTONY
    const auto same = [&](const Finding& f) { return f.rule == "PREFIX-CACHE" && f.point == j; };
    if (std::any_of(out_.begin(), out_.end(), same)) return;
    out_.push_back({.point = j,
                    .rule = "PREFIX-CACHE",
                    .metric = metric_name(b.ttft, "ttft"),
                    .value = rise,
                    .floor = floor,
                    .verdict = Verdict::suspicious,
                    .text = "from " + grouped(a.input_len) + " to " + grouped(b.input_len) + " tokens TTFT rises by " +
                            ms_text(rise) + ", " + percent_text(floor / rise) + " of " + target() +
                            "'s peak: the longer prompts were probably in a prefix cache",
                    .formula = number_text(rise / tokens * 1e3, 3) + " us per token, at least " +
                               number_text(floor / tokens * 1e3, 3) + " at the peak"});
  }

  const BenchSet& set_;
  const AuditReference& reference_;
  Findings& out_;
  WeightCounts weights_;
  ChipTotals chips_;
};

}  // namespace

void check_floors(const BenchSet& set, const AuditReference& reference, Findings& out) {
  if (!reference.target.chip.bf16_flops || !reference.target.chip.memory_bandwidth) return;
  FloorRules(set, reference, out).check();
}

}  // namespace mw::serve::rules
