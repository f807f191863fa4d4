// SPDX-License-Identifier: Apache-2.0
#include "core/compare/waterfall.h"

#include "core/experiment/bind.h"

#include <algorithm>

namespace mw::compare {
namespace {

struct Factor {
  std::string_view name;
  std::vector<std::string_view> keys;  // "mesh" and "sweep" include all keys below them
};
const std::vector<Factor>& factors() {
  static const std::vector<Factor> kFactors{
      {"chips and software", {"target.id", "mesh", "serve.stack", "sharding", "target.memory_gib"}},
      {"model", {"model.id", "model.path", "train.dtype", "lora.rank"}},
      {"KV type", {"serve.kv_dtype"}},
      {"window caches", {"serve.sliding_window_kv"}},
      {"prefix cache", {"serve.prefix_cache", "sweep.prompts", "sweep.shared_prefix"}},
      {"chunked prefill", {"serve.chunked_prefill", "serve.max_num_batched_tokens"}},
      {"server limits",
       {"serve.max_num_seqs", "serve.max_model_len", "serve.memory_utilisation", "serve.block_size", "serve.policy",
        "serve.async_scheduling"}},
      {"load", {"sweep"}}};
  return kFactors;
}

std::string text_of(const experiment::Experiment& e, std::string_view key) {
  if (key == "mesh") {
    std::string text;
    for (const mesh::MeshAxis& axis : experiment::bind_valid(e).mesh.axes)
      text += (text.empty() ? "" : " x ") + axis.name + " " + std::to_string(axis.size);
    return text;
  }
  if (key.find('.') == std::string_view::npos) {
    const Json* part = e.find(key);
    return part ? part->dump() : "";
  }
  const Json value = e.value(key);
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// Copies the keys of a factor from the other document, including missing keys.
experiment::Experiment switched(experiment::Experiment e, const experiment::Experiment& other, const Factor& factor) {
  for (const std::string_view key : factor.keys) {
    e.erase(key);
    if (const Json* value = other.find(key)) e.set_value(key, *value);
  }
  return e;
}

std::string changes(const experiment::Experiment& before, const experiment::Experiment& after, const Factor& factor) {
  std::string text;
  for (const std::string_view key : factor.keys) {
    const std::string a = text_of(before, key), b = text_of(after, key);
    if (a == b) continue;
    const bool is_long = a.size() + b.size() > 80;
    text += (text.empty() ? "" : ", ") + std::string(key) + (is_long ? "" : ": " + a + " -> " + b);
  }
  return text;
}

bool is_latency(WaterfallMetric metric) {
  return metric != WaterfallMetric::output_throughput;
}

class Builder {
 public:
  Builder(const WaterfallRequest& request, const hardware::Catalogue& catalogue, const std::stop_token& stop)
      : request_(request), catalogue_(catalogue), stop_(stop) {}

  double simulated(const experiment::Experiment& e, Queueing queueing) const {
    return value_of(simulated_point(e, request_.point, catalogue_, queueing, stop_), request_.metric);
  }
  void add(std::string name, std::string text, double after) {
    parts_.push_back({std::move(name), std::move(text), now_, after});
    now_ = after;
  }
  void begin(double from) { now_ = from; }
  double now() const { return now_; }
  std::vector<WaterfallPart> take() { return std::move(parts_); }

 private:
  const WaterfallRequest& request_;
  const hardware::Catalogue& catalogue_;
  const std::stop_token& stop_;
  double now_ = 0;
  std::vector<WaterfallPart> parts_;
};

}  // namespace

double value_of(const formats::BenchPoint& p, WaterfallMetric metric) {
  const double values[] = {p.ttft.median, p.tpot.median, p.e2el.median, p.output_throughput};
  return values[static_cast<size_t>(metric)];
}

Waterfall waterfall(const WaterfallRequest& request, const hardware::Catalogue& catalogue,
                    const std::stop_token& stop) {
  const auto& [baseline, other, point, metric, measured] = request;
  Builder b(request, catalogue, stop);
  Waterfall out{.metric = metric, .point = point, .from = 0, .to = 0, .parts = {}};
  const Queueing factors_at = is_latency(metric) ? Queueing::none : Queueing::as_offered;
  const double loaded_from = b.simulated(baseline, Queueing::as_offered),
               loaded_to = b.simulated(other, Queueing::as_offered);
  const double alone_from = is_latency(metric) ? b.simulated(baseline, Queueing::none) : loaded_from;
  out.from = measured.from.value_or(loaded_from);
  out.to = measured.to.value_or(loaded_to);

  b.begin(out.from);
  if (measured.from) b.add("model's error at the baseline", "measured -> simulated", loaded_from);
  // Shifted by the queueing time of the baseline, so that consecutive parts are contiguous.
  const double waiting_before = loaded_from - alone_from;
  experiment::Experiment now = baseline;
  double alone = alone_from;
  for (const Factor& factor : factors()) {
    experiment::Experiment next = switched(now, other, factor);
    if (next == now) continue;
    const std::string text = changes(now, next, factor);
    if (!text.empty()) {
      alone = b.simulated(next, factors_at);
      b.add(std::string(factor.name), text, alone + waiting_before);
    }
    now = std::move(next);
  }
  if (is_latency(metric)) {
    const double alone_to = b.simulated(other, Queueing::none);
    if (alone_to != alone) b.add("the rest", "keys that belong to no factor", alone_to + waiting_before);
    b.add("queueing", "waiting, and steps shared with other requests", loaded_to);
  } else if (b.now() != loaded_to) {
    b.add("the rest", "keys that belong to no factor", loaded_to);
  }
  if (measured.to) b.add("model's error at the other", "simulated -> measured", out.to);
  out.parts = b.take();
  return out;
}

}  // namespace mw::compare
