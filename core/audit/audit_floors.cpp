// SPDX-License-Identifier: Apache-2.0
// Physical lower bounds: the matrix products of prompt tokens that were not cached, reading weights and KV cache for
// each token, and the all-reduces of a tensor-parallel group. Leaves out everything that could be faster than the peak
// numbers suggest, so "impossible" has no exceptions.
#include <algorithm>
#include <cmath>

#include "core/audit/audit_rules.h"
#include "core/base/counted.h"
#include "core/base/units.h"
#include "core/model/config.h"
#include "core/model/inventory.h"

namespace mw::audit::rules {
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

bool is_expert(Role role) {
  return role == Role::experts_gate_up || role == Role::experts_down;
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

class FloorRules : PointRules {
 public:
  FloorRules(const PointRules& point, const AuditReference& reference, const WeightCounts& weights,
             const ChipTotals& chips)
      : PointRules(point), reference_(reference), weights_(weights), chips_(chips), target_(reference.target.id) {}

  void check() {
    prefill();
    rate();
    decode();
    link();
    context();
    slopes();
  }

 private:
  void prefill() {
    const double ms = typical(p_.ttft);
    if (p_.input_len <= 0 || std::isnan(ms)) return;
    const double cached = p_.prefix_hits > 0 ? std::floor(std::min(1.0, p_.prefix_hits) * (p_.input_len - 1)) : 0;
    const PrefillFlops work = prefill_flops(reference_.model, weights_, cached, p_.input_len);
    const double floor = work.total() / chips_.flops * 1e3, share = floor / ms;
    if (share < kHighPrefillShare) return;
    const bool impossible = share > 1;
    const std::string fact = "a " + std::string(typical_name(p_.ttft)) + " TTFT of " + ms_text(ms) + " for " +
                             counted(grouped(p_.input_len), "token");
    const double ceiling = reference_.target.chip.matmul_efficiency.value;
    add("FLOOR-PREFILL", {metric_name(p_.ttft, "ttft"), ms, floor},
        impossible ? Verdict::impossible : Verdict::suspicious,
        impossible ? fact + " is below the floor of " + ms_text(floor) + " that " + target_ +
                         " needs at its peak: " + cache_text(set_, p_)
                   : fact + " is " + percent_text(share) + " of " + target_ + "'s peak (floor " + ms_text(floor) +
                         "): single requests usually stay well below" +
                         (share > ceiling && ceiling > 0
                              ? ", and even large matrix products only reach " + percent_text(ceiling)
                              : ""),
        "(2 x " + number_text(weights_.matmul_elements / 1e9, 3) + "e9 x " + grouped(p_.input_len - cached) + " + " +
            number_text(work.attention / 1e12, 3) + "e12 of attention) FLOP / " + chips_.flops_text);
  }

  // Every token is multiplied with the weights at least once.
  void rate() {
    double tokens = p_.total_token_throughput;
    std::string name = "total_token_throughput";
    if (std::isnan(tokens)) {
      tokens = p_.output_throughput;
      name = "output_throughput";
    }
    const double most = chips_.flops / (2 * weights_.matmul_elements);
    const double computed = tokens * (1 - (p_.prefix_hits > 0 ? std::min(1.0, p_.prefix_hits) : 0));
    if (std::isnan(tokens) || computed <= most) return;
    add("FLOOR-PREFILL", {name, tokens, most}, Verdict::impossible,
        grouped(tokens) + " tokens/s exceed the " + grouped(most) + " that " + target_ +
            " can compute at its peak: " + cache_text(set_, p_),
        chips_.flops_text + " / (2 x " + number_text(weights_.matmul_elements / 1e9, 3) + "e9 FLOP)");
  }

  // With speculative decoding, several tokens share a step.
  bool is_speculative() const {
    return p_.rest.contains("spec_decode_acceptance_rate") || p_.rest.contains("spec_decode_num_drafts") ||
           !set_.condition("speculative").empty();
  }

  void decode() {
    const double ms = typical(p_.tpot);
    if (std::isnan(ms) || is_speculative()) return;
    const double row = cache_read(reference_, p_.input_len);
    // Requests decoded at once on average, by Little's law.
    const double at_once = std::isnan(p_.output_throughput) || set_.definitions.peak != formats::Definitions::Peak::mean
                               ? 1
                               : std::max(1.0, p_.output_throughput * ms / 1e3);
    // More requests choose more experts; how many is an expectation, so that below it a result is only suspicious.
    const auto weights_of = [&](double requests) {
      return weights_.decode_elements(reference_.model, requests) * reference_.weight_bytes;
    };
    const double floor = (weights_of(1) + row) / chips_.bandwidth * 1e3,
                 full = (weights_of(at_once) + at_once * row) / chips_.bandwidth * 1e3;
    if (ms >= full) return;
    const bool impossible = ms < floor;
    const double weights = weights_of(impossible ? 1 : at_once);
    add("FLOOR-DECODE", {metric_name(p_.tpot, "tpot"), ms, impossible ? floor : full},
        impossible ? Verdict::impossible : Verdict::suspicious,
        ms_text(ms) + " per token are below the " + ms_text(impossible ? floor : full) + " in which " + target_ +
            " can read the weights" + (row > 0 ? " and the cache of " : "") +
            (row > 0 ? (impossible ? "one request" : number_text(at_once, 3) + " requests at once") : ""),
        "(" + number_text(weights / 1e9, 3) + " GB + " + (impossible ? "" : number_text(at_once, 3) + " x ") +
            number_text(row / 1e9, 3) + " GB) / " + chips_.bandwidth_text);
  }

  // Two all-reduces per layer of the activations of every prompt token over the tp group.
  void link() {
    const double ms = typical(p_.ttft);
    const int tp = std::atoi(set_.condition("tp").c_str());
    if (tp < 2 || tp > chips_.count || p_.input_len <= 0 || std::isnan(ms) || chips_.link <= 0) return;
    const double cached = p_.prefix_hits > 0 ? std::min(1.0, p_.prefix_hits) * p_.input_len : 0;
    const double bytes =
        (p_.input_len - cached) * reference_.model.dim * 2.0 * 2 * static_cast<double>(reference_.model.layers.size());
    // In a ring each chip sends 2 (n-1)/n of the data; a switch that reduces in the network needs it once.
    const bool has_reducing_switch = reference_.target.chip.vendor == hardware::Vendor::gpu;
    const double times = has_reducing_switch ? std::min(1.0, 2.0 * (tp - 1) / tp) : 2.0 * (tp - 1) / tp;
    const double floor = bytes * times / chips_.link * 1e3;
    if (ms >= floor) return;
    add("LINK", {metric_name(p_.ttft, "ttft"), ms, floor}, Verdict::impossible,
        ms_text(ms) + " to the first token are less than the " + ms_text(floor) + " that the links of " + target_ +
            " need for the all-reduces over tp " + std::to_string(tp) + ": " + cache_text(set_, p_),
        number_text(times, 3) + " x 2 x " + counted(reference_.model.layers.size(), "layer") + " x " +
            grouped(p_.input_len - cached) + " x " + grouped(reference_.model.dim) + " x 2 B / " +
            number_text(chips_.link / 1e9, 3) + " GB/s");
  }

  void context() {
    const int most = std::atoi(set_.condition("max_model_len").c_str());
    if (most <= 0 || p_.input_len + p_.output_len <= most || p_.completed == 0 || p_.rest.contains("n_depth")) return;
    add("CONTEXT", {"input_len", static_cast<double>(p_.input_len), static_cast<double>(most - p_.output_len)},
        Verdict::impossible,
        "a server with max_model_len " + grouped(most) + " rejects prompts of " +
            counted(grouped(p_.input_len), "token") + " that request " + grouped(p_.output_len) + " more",
        grouped(p_.input_len) + " + " + grouped(p_.output_len) + " > " + grouped(most));
  }

  // Under the same load, TTFT must grow at least by the products of the additional tokens.
  void slopes() {
    if (p_.prefix_hits == 0 || p_.prefix_hits > 0) return;
    for (const BenchPoint& shorter : set_.points) {
      const bool same_load = shorter.request_rate == p_.request_rate ||
                             (std::isnan(shorter.request_rate) && std::isnan(p_.request_rate) &&
                              shorter.max_concurrency > 0 && shorter.max_concurrency == p_.max_concurrency);
      if (shorter.input_len > 0 && p_.input_len > shorter.input_len && same_load && is_too_flat(shorter)) return;
    }
  }

  // Reports the rise from a shorter prompt if it is too small. Returns whether it did.
  bool is_too_flat(const BenchPoint& shorter) {
    const double rise = typical(p_.ttft) - typical(shorter.ttft), tokens = p_.input_len - shorter.input_len;
    const double floor = (prefill_flops(reference_.model, weights_, 0, p_.input_len).total() -
                          prefill_flops(reference_.model, weights_, 0, shorter.input_len).total()) /
                         chips_.flops * 1e3;
    if (std::isnan(rise) || rise <= 0 || rise >= floor || tokens < 512) return false;  // falling: MONOTONY
    add("PREFIX-CACHE", {"rise_of_" + metric_name(p_.ttft, "ttft"), rise, floor}, Verdict::suspicious,
        "from " + grouped(shorter.input_len) + " to " + counted(grouped(p_.input_len), "token") + " TTFT rises by " +
            ms_text(rise) + ", " + percent_text(floor / rise) + " of " + target_ +
            "'s peak: the longer prompts were probably in a prefix cache",
        number_text(rise / tokens * 1e3, 3) + " \u00b5s per token, at least " + number_text(floor / tokens * 1e3, 3) +
            " at the peak");
    return true;
  }

  const AuditReference& reference_;
  const WeightCounts& weights_;
  const ChipTotals& chips_;
  const std::string& target_;
};

}  // namespace

WeightCounts weight_counts(const model::Config& config) {
  const model::TensorInventory inventory(config);
  const double active =
      config.experts > 0 ? static_cast<double>(config.experts_per_token) / static_cast<double>(config.experts) : 1;
  WeightCounts counts;
  for (const model::Tensor& t : inventory.tensors()) {
    const auto n = static_cast<double>(t.elements());
    if (t.role == Role::ple_embed || t.hf_shape.size() < 2) continue;  // lookups; norms are negligible
    if (t.role == Role::embed || t.role == Role::lm_head || t.role == Role::altup_unembed_projections) {
      if (t.role != Role::embed || config.tied_embeddings) counts.output_elements += n;
      continue;
    }
    if (is_expert(t.role)) counts.expert_elements += n;
    counts.matmul_elements += is_expert(t.role) ? n * active : n;
  }
  return counts;
}

double WeightCounts::decode_elements(const model::Config& config, double tokens) const {
  if (config.experts == 0) return matmul_elements + output_elements;
  const double more = model::expected_experts(config, tokens) - config.experts_per_token;
  return matmul_elements + output_elements + std::max(0.0, more) / config.experts * expert_elements;
}

void check_floors(const BenchSet& set, const AuditReference& reference, Findings& out) {
  if (!reference.target.chip.bf16_flops || !reference.target.chip.memory_bandwidth) return;
  const WeightCounts weights = weight_counts(reference.model);
  const ChipTotals chips = chip_totals(reference);
  for (size_t i = 0; i < set.points.size(); ++i) FloorRules({set, i, out}, reference, weights, chips).check();
}

}  // namespace mw::audit::rules
