// SPDX-License-Identifier: Apache-2.0
// Rows of training runs: what their experiments set otherwise, how they ended, what they took.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/units.h"
#include "core/runs/comparison_parts.h"
#include "core/runs/parameters.h"

namespace mw::runs::comparing {
namespace {

using Better = ComparisonRow::Better;

std::string text_of(const Experiment& e, const Parameter& p) {
  try {
    const Json value = e.value(p.key);
    return value.is_string() ? value.get<std::string>() : value.dump();
  } catch (const Error&) {  // of another version: what is written there
    return "not readable";
  }
}

std::string mesh_text(const Experiment& e) {
  std::string text;
  for (const auto& [axis, size] : e.mesh()) text += (text.empty() ? "" : ", ") + axis + " " + std::to_string(size);
  return text;
}

// Of settings that change what the loss counts, or what is learned from: not a difference of what is compared.
struct Rule {
  const char *key, *text;
};
constexpr Rule kConfounders[]{
    {"data.loss", "the loss counts other tokens (loss mask)"},
    {"data.path", "they learn from other data"},
    {"data.max_len", "rows are cut or dropped at other lengths"},
    {"data.overlong", "long rows are treated otherwise"},
    {"data.packing", "rows are packed or not: a step has other tokens"},
    {"train.seed", "the seed differs"},
    {"train.steps", "they train for other numbers of steps"},
    {"train.dtype", "they compute in other types"},
    {"model.id", "the model differs"},
    {"model.path", "the model differs"},
};

double last(const RunView& run, const std::string& name) {
  const MetricSeries* series = run.metric(name);
  return series && !series->raw.empty() ? series->raw.back().y : formats::kUnknown;
}

double median(const RunView& run, const std::string& name) {
  const MetricSeries* series = run.metric(name);
  if (!series) return formats::kUnknown;
  return formats::percentile_of({series->raw.y().begin(), series->raw.y().end()}, 50);
}

double peak(const RunView& run) {
  double most = 0;
  for (const auto& [device, timeline] : run.memory()) most = std::max(most, static_cast<double>(timeline.peak.value));
  if (run.finished()) most = std::max(most, static_cast<double>(run.finished()->peak.value));
  return most > 0 ? most / (1 << 20) : formats::kUnknown;
}

double seconds(const RunView& run) {
  const double s = run.finished() ? run.finished()->seconds : run.last_time();
  return s > 0 ? s : formats::kUnknown;
}

double tokens(const RunView& run) {
  const double counted = run.finished() ? static_cast<double>(run.finished()->tokens) : 0;
  return counted > 0 ? counted : last(run, "train/tokens");
}

// Of the price that the experiment itself sets; the catalogue's is a plan's, not a run's.
double usd(const Compared& run) {
  const double each = run.experiment.number("price.usd_per_chip_hour");
  return each > 0 ? each * run.training->devices() * seconds(*run.training) / 3600 : formats::kUnknown;
}

void add_results(const Runs& runs, Comparison& out) {
  const auto row = [&](const ResultRow& facts, auto value) {
    std::vector<double> values;
    for (const Compared& run : runs) values.push_back(value(run));
    add_result(out, facts, values);
  };
  const auto of = [](auto take) { return [take](const Compared& r) { return take(*r.training); }; };
  row({"train.loss", "Last training loss", "", Better::lower},
      of([](const RunView& r) { return last(r, "train/loss"); }));
  row({"eval.loss", "Last evaluation loss", "", Better::lower},
      of([](const RunView& r) { return last(r, "eval/loss"); }));
  row({"eval.perplexity", "Last perplexity", "", Better::lower},
      of([](const RunView& r) { return last(r, "eval/perplexity"); }));
  row({"train.tokens_per_second", "Speed, median", "tokens/s", Better::higher},
      of([](const RunView& r) { return median(r, "train/tokens_per_second"); }));
  row({"seconds", "Time", "s", Better::lower}, of(seconds));
  row({"steps", "Steps", "", Better::neither}, of([](const RunView& r) { return static_cast<double>(r.step()); }));
  row({"tokens", "Tokens", "", Better::neither}, of(tokens));
  row({"peak_mib", "Most memory of a device", "MiB", Better::lower}, of(peak));
  row({"usd", "Cost", "USD", Better::lower}, usd);
  row({"usd_per_million_tokens", "Cost per million tokens", "USD", Better::lower},
      [](const Compared& r) { return usd(r) / tokens(*r.training) * 1e6; });
}

void add_confounders(const Runs& runs, Comparison& out) {
  std::set<std::string> told;
  for (const Rule& rule : kConfounders) {
    const auto row = std::find_if(out.rows.begin(), out.rows.end(), [&](const auto& r) { return r.key == rule.key; });
    if (row == out.rows.end() || !told.insert(rule.text).second) continue;
    confound(out, rule.key == std::string("data.loss") ? "loss_mask" : rule.key,
             std::string(rule.text) + " (" + listed(out, row->texts) + ")");
  }
  for (size_t c = 0; c < runs.size(); ++c) {
    const RunView& run = *runs[c].training;
    if (run.state() != RunState::done)
      confound(out, "state",
               called(out, c) + " is " + std::string(to_string(run.state())) + " after " + std::to_string(run.step()) +
                   " steps");
  }
  std::set<std::string> kinds;
  for (const Compared& run : runs) kinds.insert(run.training->kind());
  if (kinds.size() > 1)
    confound(out, "kind", "runs of different kinds have no result in common", Fairness::meaningless);
}

}  // namespace

void training(const Runs& runs, Comparison& out) {
  const auto row = [&](const std::string& key, const std::string& label, auto text) {
    std::vector<std::string> texts;
    for (const Compared& run : runs) texts.push_back(text(run));
    add_setting(out, key, label, std::move(texts), Unsaid::differs);
  };
  for (const Parameter& p : parameters())
    if (p.key.find('*') == std::string::npos && p.key != "name")
      row(p.key, p.label, [&](const Compared& r) { return text_of(r.experiment, p); });
  row("mesh", "Mesh", [](const Compared& r) { return mesh_text(r.experiment); });
  add_results(runs, out);
  add_confounders(runs, out);
}

}  // namespace mw::runs::comparing
