// SPDX-License-Identifier: Apache-2.0
#include "core/compare/attribution.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/compare/comparison_parts.h"
#include "core/experiment/bound_experiment.h"
#include "core/experiment/parameters.h"
#include "core/plan/document/plan_request.h"

namespace mw::compare {
namespace {

using experiment::Experiment;

constexpr double kNegligible = 0.01;  // relative change; also the smallest gap that has shares

// Keys that only make sense together: another target needs another mesh and stack.
const std::vector<std::string>& hardware_keys() {
  static const std::vector<std::string> kKeys{"target.id",   "target.memory_gib", "mesh",         "sharding",
                                              "train.stack", "serve.stack",       "data.padding", "lora.module_path"};
  return kKeys;
}

// The document keys of a serving condition or row; empty if the simulator has no such setting. A condition has the name
// of its setting, unless several make it.
std::vector<std::string> serving_keys(const std::string& key) {
  static const std::map<std::string, std::vector<std::string>> kKeys{
      {"target", hardware_keys()},
      {"chips", hardware_keys()},
      {"tp", hardware_keys()},
      {"model", {"model.id", "model.path"}},
      {"weight_dtype", {"train.dtype"}},
      {"prefix_cache", {"serve.prefix_cache", "sweep.prompts", "sweep.shared_prefix", "sweep.shared_prefixes"}},
      {"prompts", {"sweep.prompts", "sweep.shared_prefix", "sweep.shared_prefixes"}},
      {"requests", {"sweep.num_prompts", "sweep.num_prompts_at"}}};
  if (const auto found = kKeys.find(key); found != kKeys.end()) return found->second;
  for (const char* section : {"sweep.", "serve."})
    if (experiment::find_parameter(section + key)) return {section + key};
  return {};
}

std::vector<std::string> training_keys(const std::string& key) {
  const auto& hardware = hardware_keys();
  if (key.starts_with("sharding.") || std::find(hardware.begin(), hardware.end(), key) != hardware.end())
    return hardware;
  if (key == "model.id" || key == "model.path") return {"model.id", "model.path"};
  if (key == "loss_mask") return {"data.loss"};
  return experiment::find_parameter(key) ? std::vector<std::string>{key} : std::vector<std::string>();
}

// Copies the keys from the other document, including missing ones.
Experiment switched(Experiment e, const Experiment& other, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    e.erase(key);
    if (const Json* value = other.find(key)) e.set_value(key, *value);
  }
  return e;
}

class Estimator {
 public:
  Estimator(Comparison& comparison, const GapInput& input, const plan::PlanContext& context,
            const std::stop_token& stop)
      : comparison_(comparison), input_(input), context_(context), stop_(stop) {}

  void run() {
    Gap gap = input_.gap;
    gap.predicted.assign(input_.documents.size(), std::nullopt);
    if (gap.missing.empty()) try {
        for (size_t c = 0; c < input_.documents.size(); ++c)
          if (gap.measured[c]) gap.predicted[c] = predicted(input_.documents[c], c);
      } catch (const Error& e) {
        if (e.kind() == Error::Kind::cancelled) throw;
        gap.missing = e.problem().message;
      }
    comparison_.gap = std::move(gap);
    for (ComparisonRow& row : comparison_.rows)
      if (row.kind == ComparisonRow::Kind::setting) row.effects = effects_of(row.key, row.texts);
    for (Confounder& confounder : comparison_.confounders) {
      const ComparisonRow* row = row_of(confounder.key);
      confounder.effects = row ? row->effects : effects_of(confounder.key, {});
      confounder.is_negligible = serving() && is_negligible(confounder);
    }
    sort_and_judge();
  }

 private:
  bool serving() const { return input_.load.has_value(); }

  const ComparisonRow* row_of(const std::string& key) const {
    const std::string name = key == "loss_mask" ? "data.loss" : key;
    const auto found = std::find_if(comparison_.rows.begin(), comparison_.rows.end(), [&](const ComparisonRow& r) {
      return r.kind == ComparisonRow::Kind::setting && r.key == name;
    });
    return found == comparison_.rows.end() ? nullptr : &*found;
  }

  // The metric of the gap as predicted for the document; rows are as long as those of `column`.
  double predicted(const Experiment& e, size_t column) const {
    if (stop_.stop_requested()) throw cancelled("the estimate");
    if (serving())
      return value_of(simulated_point(e, *input_.load, context_, plan::Queueing::as_offered, stop_), input_.metric);
    plan::Request request = plan::plan_request(e, context_);
    if (const double mean = input_.row_tokens[column]; std::isfinite(mean) && request.lengths.histogram.empty()) {
      request.lengths.max_len = std::clamp(static_cast<int>(std::lround(mean)), 1, request.lengths.max_len);
      request.lengths.mean = 0;  // every row as long as the measured mean
    }
    return plan::predict(request).run.tokens_per_second;
  }

  Effects effects_of(const std::string& key, const std::vector<std::string>& texts) {
    Effects out;
    if (!comparison_.gap->missing.empty()) {
      out.missing = comparison_.gap->missing;
      return out;
    }
    const std::vector<std::string> keys = serving() ? serving_keys(key) : training_keys(key);
    if (keys.empty()) {
      out.missing = "the planner has no model of this difference";
      return out;
    }
    out.by_column.resize(input_.documents.size());
    std::string reason;
    for (size_t c = 1; c < input_.documents.size(); ++c) {
      if (!texts.empty() && texts[c] == texts[0]) continue;
      if (!texts.empty() && serving() && (texts[c].empty() || texts[0].empty()))
        reason = "not recorded in " + comparing::called(comparison_, texts[0].empty() ? 0 : c);
      else
        out.by_column[c] = effect_of(keys, c, reason);
    }
    if (!out.any()) out.missing = reason.empty() ? "the simulated settings of the columns are the same" : reason;
    return out;
  }

  std::optional<Effect> effect_of(const std::vector<std::string>& keys, size_t c, std::string& reason) {
    const auto& [label, unit, measured, forecast, missing] = *comparison_.gap;
    const Experiment changed = switched(input_.documents[0], input_.documents[c], keys);
    if (changed == input_.documents[0] || !forecast[0]) return std::nullopt;
    const bool changes_rows = keys.front().starts_with("data.");  // then rows are as long as in the other column
    try {
      const double ratio = predicted(changed, changes_rows ? c : 0) / *forecast[0];
      if (!(ratio > 0) || !std::isfinite(ratio)) return std::nullopt;
      Effect effect{.change = ratio - 1};
      if (measured[0] && measured[c] && std::abs(*measured[c] / *measured[0] - 1) >= kNegligible)
        effect.share = std::log(ratio) / std::log(*measured[c] / *measured[0]);
      return effect;
    } catch (const Error& e) {
      if (e.kind() == Error::Kind::cancelled) throw;
      reason = "the baseline cannot be changed this way (" + e.problem().place +
               (e.problem().place.empty() ? "" : ": ") + e.problem().message + ")";
      return std::nullopt;
    }
  }

  static bool is_negligible(const Confounder& c) {
    if (c.at_least != Fairness::confounded || !c.effects.any()) return false;
    return std::all_of(c.effects.by_column.begin(), c.effects.by_column.end(), [](const auto& effect) {
      return !effect ||
             (std::abs(effect->change) < kNegligible && std::abs(effect->share.value_or(0)) < 5 * kNegligible);
    });
  }

  void sort_and_judge() {
    const auto largest = [](const Confounder& c) {
      double most = 0;
      for (const auto& effect : c.effects.by_column)
        if (effect) most = std::max(most, std::abs(effect->share.value_or(effect->change)));
      return most;
    };
    std::stable_sort(comparison_.confounders.begin(), comparison_.confounders.end(),
                     [&](const Confounder& a, const Confounder& b) {
                       return std::pair(a.at_least, largest(a)) > std::pair(b.at_least, largest(b));
                     });
    comparison_.verdict = Fairness::fair;
    for (const Confounder& c : comparison_.confounders)
      if (!c.is_negligible) comparison_.verdict = std::max(comparison_.verdict, c.at_least);
  }

  Comparison& comparison_;
  const GapInput& input_;
  const plan::PlanContext& context_;
  const std::stop_token& stop_;
};

const ComparisonRow* result_row(const Comparison& comparison, const std::string& key) {
  const auto found = std::find_if(comparison.rows.begin(), comparison.rows.end(), [&](const ComparisonRow& r) {
    return r.kind == ComparisonRow::Kind::result && r.key == key;
  });
  return found == comparison.rows.end() || !found->values[0] || found->recorded() < 2 ? nullptr : &*found;
}

// Chooses the load with a request rate that most columns have, then the highest rate; E2E latency before others.
void choose_load(const Comparison& comparison, const ComparedRun& baseline, GapInput& out) {
  constexpr std::pair<const char*, WaterfallMetric> kMetrics[] = {
      {"median_e2el_ms", WaterfallMetric::median_e2el_ms},
      {"median_tpot_ms", WaterfallMetric::median_tpot_ms},
      {"median_ttft_ms", WaterfallMetric::median_ttft_ms},
      {"output_throughput", WaterfallMetric::output_throughput}};
  for (const auto& [name, metric] : kMetrics) {
    std::tuple<size_t, double, int> best{};
    for (const formats::BenchPoint& p : baseline.sweep->set.points) {
      if (!std::isfinite(p.request_rate) || p.request_rate <= 0 || p.input_len <= 0) continue;
      const ComparisonRow* row = result_row(comparison, comparing::cell_key(p) + "." + name);
      if (!row || std::tuple(row->recorded(), p.request_rate, p.input_len) <= best) continue;
      best = {row->recorded(), p.request_rate, p.input_len};
      out.load = plan::LoadPoint{p.request_rate, p.input_len};
      out.metric = metric;
      out.gap = {.label = row->label, .unit = row->unit, .measured = row->values};
    }
    if (out.load) return;
  }
  out.gap.missing = "no two columns share a load with a request rate, which the simulator needs";
}

double mean_row_tokens(const ComparedRun& run) {
  const auto& finished = run.training->finished();
  const options::Training train = run.experiment.valid_values().train;
  const auto rows = static_cast<double>(finished ? finished->steps * train.batch * train.accumulation : 0);
  return finished && finished->tokens > 0 && rows > 0 ? static_cast<double>(finished->tokens) / rows
                                                      : formats::kUnknown;
}

}  // namespace

GapInput gap_input(const Comparison& comparison, const std::vector<ComparedRun>& runs) {
  GapInput out;
  out.gap.measured.resize(runs.size());
  const auto kind = kind_of(runs.at(0));
  const bool mixed = std::any_of(runs.begin(), runs.end(), [&](const ComparedRun& r) { return kind_of(r) != kind; });
  for (const ComparedRun& run : runs) {
    out.documents.push_back(server_of(run));
    out.row_tokens.push_back(run.training ? mean_row_tokens(run) : formats::kUnknown);
  }
  if (mixed || kind == ComparedKind::sizing) {
    out.gap.missing = "only training runs and only serving sweeps have a gap that can be predicted";
  } else if (kind == ComparedKind::serving) {
    choose_load(comparison, runs[0], out);
  } else if (const ComparisonRow* row = result_row(comparison, "train.tokens_per_second")) {
    out.gap = {.label = row->label, .unit = row->unit, .measured = row->values};
    for (size_t c = 0; c < runs.size(); ++c)
      if (!runs[c].has_all_settings)
        out.gap.missing = comparing::called(comparison, c) + " does not record all settings";
  } else {
    out.gap.missing = "fewer than two columns have a speed";
  }
  return out;
}

Comparison with_effects(Comparison comparison, const GapInput& input, const plan::PlanContext& context,
                        const std::stop_token& stop) try {
  Estimator(comparison, input, context, stop).run();
  return comparison;
} catch (const Error& error) {
  throw error.kind() == Error::Kind::cancelled ? cancelled("the comparison") : error;  // not one of its simulations
}

namespace {

struct Factor {
  std::string_view name;
  std::vector<std::string> keys;  // "mesh" and "sweep" include all keys below them
};
// The settings with a factor in the parameter table, in its order of factors, then the rest of the load.
const std::vector<Factor>& factors() {
  static const std::vector<Factor> kFactors = [] {
    std::vector<Factor> out;
    for (const std::string_view name : {"chips and software", "model", "KV type", "window caches", "replicas",
                                        "prefix cache", "chunked prefill", "server limits"}) {
      Factor& factor = out.emplace_back(Factor{name, {}});
      for (const experiment::Parameter& p : experiment::parameters())
        if (p.columns.factor == name) factor.keys.push_back(p.key == "mesh.*" ? "mesh" : p.key);
    }
    out.push_back({kLoadFactor, {"sweep"}});
    return out;
  }();
  return kFactors;
}

std::string text_of(const experiment::Experiment& e, std::string_view key) {
  if (key == "mesh") {
    std::string text;
    for (const mesh::MeshAxis& axis : e.valid_values().mesh.axes)
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
  for (const std::string& key : factor.keys) {
    e.erase(key);
    if (const Json* value = other.find(key)) e.set_value(key, *value);
  }
  return e;
}

std::string changes(const experiment::Experiment& before, const experiment::Experiment& after, const Factor& factor) {
  std::string text;
  for (const std::string& key : factor.keys) {
    const std::string a = text_of(before, key), b = text_of(after, key);
    if (a == b) continue;
    const bool is_long = a.size() + b.size() > 80;
    text += (text.empty() ? "" : ", ") + key + (is_long ? "" : ": " + a + " -> " + b);
  }
  return text;
}

}  // namespace

std::vector<FactorChange> factor_changes(const experiment::Experiment& baseline, const experiment::Experiment& other) {
  std::vector<FactorChange> out;
  experiment::Experiment now = baseline;
  for (const Factor& factor : factors()) {
    experiment::Experiment next = switched(now, other, factor);
    if (next == now) continue;
    if (const std::string text = changes(now, next, factor); !text.empty())
      out.push_back({std::string(factor.name), text, next});
    now = std::move(next);
  }
  return out;
}

namespace {

bool is_latency(WaterfallMetric metric) {
  return metric != WaterfallMetric::output_throughput;
}

class Builder {
 public:
  Builder(const WaterfallRequest& request, const plan::PlanContext& context, const std::stop_token& stop)
      : request_(request), context_(context), stop_(stop) {}

  double simulated(const experiment::Experiment& e, plan::Queueing queueing) const {
    return value_of(simulated_point(e, request_.point, context_, queueing, stop_), request_.metric);
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
  const plan::PlanContext& context_;
  const std::stop_token& stop_;
  double now_ = 0;
  std::vector<WaterfallPart> parts_;
};

}  // namespace

double value_of(const formats::BenchPoint& p, WaterfallMetric metric) {
  const double values[] = {p.ttft.median, p.tpot.median, p.e2el.median, p.output_throughput};
  return values[static_cast<size_t>(metric)];
}

Waterfall waterfall(const WaterfallRequest& request, const plan::PlanContext& context, const std::stop_token& stop) {
  const auto& [baseline, other, point, metric, measured] = request;
  Builder b(request, context, stop);
  Waterfall out{.metric = metric, .point = point, .from = 0, .to = 0, .parts = {}};
  const plan::Queueing factors_at = is_latency(metric) ? plan::Queueing::none : plan::Queueing::as_offered;
  const double loaded_from = b.simulated(baseline, plan::Queueing::as_offered),
               loaded_to = b.simulated(other, plan::Queueing::as_offered);
  const double alone_from = is_latency(metric) ? b.simulated(baseline, plan::Queueing::none) : loaded_from;
  out.from = measured.from.value_or(loaded_from);
  out.to = measured.to.value_or(loaded_to);

  b.begin(out.from);
  if (measured.from) b.add("model's error at the baseline", "measured -> simulated", loaded_from);
  // Shifted by the queueing time of the baseline, so that consecutive parts are contiguous.
  const double waiting_before = loaded_from - alone_from;
  double alone = alone_from;
  for (const FactorChange& change : factor_changes(baseline, other)) {
    alone = b.simulated(change.server, factors_at);
    b.add(change.name, change.text, alone + waiting_before);
  }
  if (is_latency(metric)) {
    const double alone_to = b.simulated(other, plan::Queueing::none);
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
