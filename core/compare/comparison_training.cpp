// SPDX-License-Identifier: Apache-2.0
// Rows of a training comparison: differing settings, final losses, time and memory.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/counted.h"
#include "core/base/units.h"
#include "core/compare/comparison.h"
#include "core/compare/comparison_parts.h"
#include "core/experiment/bound_experiment.h"
#include "core/experiment/parameters.h"
#include "core/store/run_settings.h"
#include "core/train/settings.h"

namespace mw::compare::comparing {
namespace {

using Better = ComparisonRow::Better;

const Json& started_info(const ComparedRun& run, const char* key) {
  static const Json nothing;
  const Json& info = run.training->info();
  return info.is_object() && info.contains(key) ? info[key] : nothing;
}

// Formats an object of names and values: "fsdp 2, tp 4", "jax 0.10.2, qwix 0.1.8".
std::string names_and_values(const Json& values) {
  std::string text;
  if (!values.is_object()) return text;
  for (const auto& [name, value] : values.items())
    if (value.is_string() || value.is_number())
      text += (text.empty() ? "" : ", ") + name + " " + (value.is_string() ? value.get<std::string>() : value.dump());
  return text;
}

// Returns the mesh that the program recorded, else the mesh of the document.
std::string mesh_text(const ComparedRun& run, const store::RunSettings& settings) {
  const Json& recorded = started_info(run, "mesh");
  if (std::string own = names_and_values(recorded); !own.empty() && !recorded.contains("axes")) return own;
  if (!run.has_all_settings && !run.experiment.has("mesh")) return {};
  return settings.at("mesh");
}

std::string software_of(const ComparedRun& run) {
  for (const char* key : {"software", "tool"})
    if (const Json& name = started_info(run, key); name.is_string()) return name.get<std::string>();
  return run.provenance == formats::ResultProvenance::imported ? std::string() : "Meshwright";
}

// Like add_setting(), but ignores columns whose settings are not recorded.
void add_recorded_setting(const Runs& runs, Comparison& out, const std::string& key, const std::string& label,
                          std::vector<std::string> texts) {
  std::set<std::string> recorded;
  for (size_t c = 0; c < runs.size(); ++c)
    if (runs[c].has_all_settings || !texts[c].empty()) recorded.insert(texts[c]);
  if (recorded.size() > 1) add_setting(out, key, label, std::move(texts), MissingValue::differs);
}

double last(const views::RunView& run, const std::string& name) {
  const views::MetricSeries* series = run.metric(name);
  return series && !series->raw.empty() ? series->raw.back().y : formats::kUnknown;
}

double median(const views::RunView& run, const std::string& name) {
  const views::MetricSeries* series = run.metric(name);
  if (!series) return formats::kUnknown;
  return formats::percentile_of({series->raw.y().begin(), series->raw.y().end()}, 50);
}

double peak(const views::RunView& run) {
  double most = 0;
  for (const auto& [device, timeline] : run.memory()) most = std::max(most, static_cast<double>(timeline.peak.value));
  if (run.finished()) most = std::max(most, static_cast<double>(run.finished()->peak.value));
  return most > 0 ? most / (1 << 20) : formats::kUnknown;
}

double seconds(const views::RunView& run) {
  const double s = run.finished() ? run.finished()->seconds : run.last_time();
  return s > 0 ? s : formats::kUnknown;
}

double tokens(const views::RunView& run) {
  const double counted = run.finished() ? static_cast<double>(run.finished()->tokens) : 0;
  return counted > 0 ? counted : last(run, "train/tokens");
}

// Computes the cost from the price in the experiment; a catalogue price applies to plans, not to measured runs.
double usd(const ComparedRun& run) {
  const double each = run.experiment.valid_values().price.usd_per_chip_hour;
  return each > 0 ? each * run.training->devices() * seconds(*run.training) / 3600 : formats::kUnknown;
}

// The plans of experiments, and beside them what was measured of the same runs.
void add_plans(const Runs& runs, Comparison& out) {
  const auto row = [&](const ResultRow& result, double PlannedRun::*figure) {
    std::vector<double> values;
    for (const ComparedRun& run : runs) {
      const double value = run.planned ? (*run.planned).*figure : 0;
      values.push_back(value > 0 ? value : formats::kUnknown);
    }
    add_result(out, result, values);
  };
  row({"step.predicted_s", "Step, predicted", "s", Better::lower}, &PlannedRun::step_s);
  row({"step.measured_s", "Step, measured", "s", Better::lower}, &PlannedRun::measured_step_s);
  row({"run.predicted_h", "Run, predicted", "h", Better::lower}, &PlannedRun::hours);
  row({"run.measured_h", "Run, measured", "h", Better::lower}, &PlannedRun::measured_hours);
  row({"cost.predicted_usd", "Cost, predicted", "USD", Better::lower}, &PlannedRun::usd);
  row({"cost.measured_usd", "Cost, measured hours", "USD", Better::lower}, &PlannedRun::measured_usd);
}

// Marks the cells that the audit of a training objects to.
void mark_findings(const Runs& runs, const std::string& key, ComparisonRow& row) {
  static constexpr std::pair<const char*, const char*> kMetrics[]{
      {"train.loss", "train_loss"},      {"eval.loss", "eval_loss"},
      {"eval.perplexity", "perplexity"}, {"train.tokens_per_second", "tokens_per_second"},
      {"peak_mib", "peak_bytes"},        {"usd", "usd"}};
  for (const auto& [row_key, metric] : kMetrics)
    for (size_t c = 0; key == row_key && c < runs.size(); ++c)
      for (const audit::AuditFinding& finding : runs[c].training_findings)
        if (finding.metric == metric && row.marks[c].empty())
          row.marks[c] = std::string(to_string(finding.verdict)) + ": " + finding.text;
}

void add_results(const Runs& runs, Comparison& out) {
  const auto row = [&](const ResultRow& result, auto value) {
    std::vector<double> values;
    for (const ComparedRun& run : runs) values.push_back(value(run));
    if (ComparisonRow* added = add_result(out, result, values)) mark_findings(runs, result.key, *added);
  };
  const auto of_training = [](auto value) { return [value](const ComparedRun& r) { return value(*r.training); }; };
  row({"train.loss", "Last training loss", "", Better::lower},
      of_training([](const views::RunView& r) { return last(r, "train/loss"); }));
  row({"eval.loss", "Last eval loss", "", Better::lower},
      of_training([](const views::RunView& r) { return last(r, "eval/loss"); }));
  row({"eval.perplexity", "Last perplexity", "", Better::lower},
      of_training([](const views::RunView& r) { return last(r, "eval/perplexity"); }));
  row({"answers.right", "Scored answers that are right", "%", Better::higher}, [](const ComparedRun& r) {
    const auto answers = store::scored_answers(r.training->samples());
    return answers.empty() ? formats::kUnknown : 100 * answers.back().share();
  });
  const auto of_trainable = [](auto value) {
    return [value](const ComparedRun& r) {
      const auto trained = train::trainable_of(r.training->info());
      return trained ? value(*trained) : formats::kUnknown;
    };
  };
  row({"trainable.params", "Trained parameters", "", Better::neither},
      of_trainable([](const train::Trainable& t) { return static_cast<double>(t.params); }));
  row({"trainable.share", "Trained share of the model", "%", Better::neither},
      of_trainable([](const train::Trainable& t) { return 100 * t.share(); }));
  row({"trainable.bytes", "Saved adapter or model", "MiB", Better::neither},
      of_trainable([](const train::Trainable& t) { return static_cast<double>(t.file.value) / (1 << 20); }));
  row({"train.tokens_per_second", "Speed, median", "tokens/s", Better::higher},
      of_training([](const views::RunView& r) { return median(r, "train/tokens_per_second"); }));
  row({"seconds", "Time", "s", Better::lower}, of_training(seconds));
  row({"steps", "Steps", "", Better::neither},
      of_training([](const views::RunView& r) { return static_cast<double>(r.step()); }));
  row({"tokens", "Tokens", "", Better::neither}, of_training(tokens));
  row({"peak_mib", "Peak memory per device", "MiB", Better::lower}, of_training(peak));
  row({"usd", "Cost", "USD", Better::lower}, usd);
  row({"usd_per_million_tokens", "Cost per million tokens", "USD", Better::lower},
      [](const ComparedRun& r) { return usd(r) / tokens(*r.training) * 1e6; });
}

// Adds the loss at the common steps of all runs that report it, and the largest difference.
void add_steps(const Runs& runs, Comparison& out) {
  std::map<long, size_t> seen;
  size_t reporting = 0;
  std::vector<std::map<long, double>> losses(runs.size());
  for (size_t c = 0; c < runs.size(); ++c) {
    const views::MetricSeries* series = runs[c].training->metric("train/loss");
    if (!series) continue;
    ++reporting;
    for (size_t i = 0; i < series->raw.size(); ++i) losses[c][std::lround(series->raw[i].x)] = series->raw[i].y;
    for (const auto& [step, value] : losses[c]) ++seen[step];
  }
  if (reporting < 2) return;
  std::vector<double> apart{formats::kUnknown};
  for (size_t c = 1; c < runs.size(); ++c)
    apart.push_back(100 *
                    std::abs(furthest_apart(step_differences(*runs[0].training, *runs[c].training, "train/loss")).y));
  add_result(out, {"train.loss.apart", "Training loss, largest difference at a step", "%"}, apart);
  std::vector<long> common;
  for (const auto& [step, count] : seen)
    if (count == reporting) common.push_back(step);
  for (const long step : steps_to_show(std::move(common))) {
    std::vector<double> values;
    for (const auto& by_step : losses) values.push_back(by_step.contains(step) ? by_step.at(step) : formats::kUnknown);
    const std::string number = std::to_string(step);
    add_result(out, {"train.loss@" + number, "Training loss, step " + number, ""}, values);
  }
}

// Reports differences between training software, including the differences by design that a recipe records.
void add_software(const Runs& runs, Comparison& out) {
  const auto texts_of = [&](const char* key) -> const std::vector<std::string>* {
    const auto row = std::find_if(out.rows.begin(), out.rows.end(), [&](const auto& r) { return r.key == key; });
    return row == out.rows.end() ? nullptr : &row->texts;
  };
  if (const auto* names = texts_of("software"))
    confound(out, "software", "the training software differs (" + listed(out, *names) + ")");
  else if (const auto* versions = texts_of("versions"))
    confound(out, "versions", "versions of the software differ (" + listed(out, *versions) + ")");
  for (size_t c = 0; c < runs.size(); ++c) {
    if (const Json& list = started_info(runs[c], "differences"); list.is_array())
      for (const Json& difference : list)
        if (difference.is_string()) confound(out, "design", called(out, c) + ": " + difference.get<std::string>());
    if (!runs[c].has_all_settings)
      confound(out, "unsaid",
               called(out, c) + " does not record all of its settings; only the recorded ones are compared");
  }
}

void add_confounders(const Runs& runs, Comparison& out) {
  add_software(runs, out);
  std::set<std::string> reported;
  for (const experiment::Parameter& p : experiment::parameters()) {
    const std::string text(p.columns.confounder);
    const auto row = std::find_if(out.rows.begin(), out.rows.end(), [&](const auto& r) { return r.key == p.key; });
    if (text.empty() || row == out.rows.end() || !reported.insert(text).second) continue;
    confound(out, p.key == "data.loss" ? "loss_mask" : p.key, text + " (" + listed(out, row->texts) + ")");
  }
  for (size_t c = 0; c < runs.size(); ++c) {
    const views::RunView& run = *runs[c].training;
    if (!runs[c].planned && run.state() != RunState::done)
      confound(out, "state",
               called(out, c) + " is " + std::string(to_string(run.state())) + " after " + counted(run.step(), "step"));
  }
  std::set<std::string> kinds;
  for (const ComparedRun& run : runs) kinds.insert(run.training->kind());
  if (kinds.size() > 1)
    confound(out, "kind", "runs of different kinds have no result in common", Fairness::meaningless);
}

}  // namespace

void training(const Runs& runs, Comparison& out) {
  std::vector<store::RunSettings> settings;
  for (const ComparedRun& run : runs) settings.push_back(store::settings_of(run.experiment));
  const auto row = [&](const std::string& key, const std::string& label, auto text) {
    std::vector<std::string> texts;
    for (size_t c = 0; c < runs.size(); ++c) texts.push_back(text(runs[c], settings[c]));
    add_recorded_setting(runs, out, key, label, std::move(texts));
  };
  const auto own = [&](const std::string& key, const std::string& label, auto text) {
    std::vector<std::string> texts;
    for (const ComparedRun& run : runs) texts.push_back(text(run));
    add_setting(out, key, label, std::move(texts));
  };
  own("software", "Software", software_of);
  own("versions", "Versions", [](const ComparedRun& r) { return names_and_values(started_info(r, "versions")); });
  for (const experiment::Parameter& p : experiment::parameters())
    if (settings[0].contains(p.key))
      row(p.key, p.label, [&](const ComparedRun& r, const store::RunSettings& all) {
        return r.has_all_settings || r.experiment.has(p.key) ? all.at(p.key) : std::string();
      });
  row("mesh", "Mesh", mesh_text);
  add_plans(runs, out);
  add_results(runs, out);
  add_steps(runs, out);
  add_confounders(runs, out);
}

}  // namespace mw::compare::comparing
