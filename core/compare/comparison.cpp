// SPDX-License-Identifier: Apache-2.0
#include "core/compare/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>

#include "core/base/files.h"
#include "core/base/units.h"
#include "core/compare/comparison_parts.h"
#include "core/formats/results/bench_import.h"
#include "core/model/catalogue.h"
#include "core/plan/experiment/experiment_plan.h"
#include "core/store/run_settings.h"

namespace mw::compare {

ComparedRun compared(formats::BenchSet set) {
  ComparedRun out{.name = set.name, .provenance = set.provenance};
  if (const double usd = std::atof(set.condition("train_usd").c_str()); usd > 0) out.train_usd = usd;
  out.sweep = views::sweep_view(std::move(set), {});
  return out;
}

namespace {

// Reads the document of an imported training run. A recipe records it completely; a log contains only some keys.
void take_import(ComparedRun& out) {
  out.provenance = formats::ResultProvenance::imported;
  const Json& info = out.training->info();
  out.has_all_settings = info.contains("experiment") && info["experiment"].is_object();
  if (!out.has_all_settings) return;
  try {
    out.experiment = experiment::Experiment::from_json(info["experiment"]);
  } catch (const Error&) {  // from a newer program: keeps the stored document
    out.has_all_settings = false;
  }
}

// Result files have no "schema", and their model is a text.
bool is_experiment(const Json& document) {
  if (!document.is_object()) return false;
  const Json *schema = find_member(document, "schema"), *model = find_member(document, "model");
  return schema && schema->is_number() && model && model->is_object();
}

}  // namespace

ComparedRun compared_plan(const experiment::Experiment& experiment, const plan::PlanContext& context) {
  if (experiment.valid_values().kind != experiment::Kind::train)
    throw Error("COMPARE", "this experiment has no plan to compare",
                {.found = "kind " + std::string(to_string(experiment.valid_values().kind)),
                 .expected = "a training",
                 .fix = "run it, and compare the run"});
  const plan::ExperimentPlan p = plan::plan_experiment(experiment, context);
  ComparedRun out{.name = experiment.config().name,
                  .provenance = formats::ResultProvenance::predicted,
                  .experiment = experiment,
                  .training = views::RunView()};
  if (out.name.empty()) out.name = p.request.target.id;
  const plan::RunTotals& run = p.plan.run;
  out.planned = PlannedRun{.step_s = p.plan.step.seconds.value,
                           .hours = run.hours.value,
                           .usd = run.usd.value,
                           .measured_step_s = p.measured_step,
                           .measured_hours = p.measured_hours,
                           .measured_usd = p.measured_usd()};
  Json info{{"source", "predicted"},
            {"software", model::to_string(p.request.stack)},
            {"devices", p.plan.devices},
            {"steps", run.steps}};
  if (p.trainable) info["trainable"] = to_json(*p.trainable);
  out.training->feed({0, event::Started{std::move(info)}});
  return out;
}

std::vector<ComparedRun> compared_files(const std::filesystem::path& file, const plan::PlanContext& context) {
  std::vector<ComparedRun> out;
  if (file.extension() == ".json" && formats::bench_kind(file) == formats::BenchKind::none &&
      is_experiment(read_json(file)))
    return {compared_plan(experiment::Experiment::load(file), context)};
  for (formats::BenchSet& set : formats::read_bench(file)) {
    ComparedRun column = compared(std::move(set));
    column.file = file;
    column.sweep->findings = audit_known(column.sweep->set, context);
    out.push_back(std::move(column));
  }
  return out;
}

ComparedRun compared(const store::Store& store, const store::RunId& run) {
  ComparedRun out{.id = run, .experiment = store.experiment(run)};
  out.name = store.find(run)->name;
  views::RunView view = views::read_run(store, run);
  if (view.kind() == "sweep") {
    out.sweep = views::sweep_view(view);
    out.provenance = out.sweep->set.provenance;
    if (view.finished())
      if (const Json* explained = find_member(view.finished()->summary, "explained")) out.explained = *explained;
    if (view.is_imported() && out.provenance == formats::ResultProvenance::measured)
      out.provenance = formats::ResultProvenance::imported;
  } else {
    out.training = std::move(view);
    if (out.training->is_imported()) take_import(out);
  }
  return out;
}

ComparedKind kind_of(const ComparedRun& run) {
  return run.sweep                                        ? ComparedKind::serving
         : run.training && run.training->kind() == "size" ? ComparedKind::sizing
                                                          : ComparedKind::training;
}

namespace {
constexpr size_t kLongestCondition = 32;  // of a name
}

std::vector<std::string> distinct_names(const std::vector<ComparedRun>& runs) {
  std::map<std::string, int> count;
  for (const ComparedRun& run : runs) ++count[run.name];
  std::vector<store::NamedRun> named;
  for (const ComparedRun& run : runs) {
    store::NamedRun& one = named.emplace_back(store::NamedRun{.id = run.id, .name = run.name});
    if (count[run.name] == 1) continue;  // its settings do not matter
    if (run.has_all_settings && !run.id.empty()) one.settings = store::settings_of(run.experiment);
    if (run.sweep) {
      const formats::BenchSet& set = run.sweep->set;
      for (const auto& [key, value] : set.conditions)
        if (value.size() <= kLongestCondition) one.settings.insert({key, value});  // a sentence tells nothing apart
      one.settings.insert({{"target.id", set.target},
                           {"model.id", set.model},
                           {"numbers", std::string(formats::to_string(run.provenance))}});
    }
  }
  return store::distinct_names(named);
}

std::string_view verdict_text(Fairness verdict) {
  static constexpr std::string_view kTexts[] = {"comparable", "confounded", "not comparable"};
  return kTexts[static_cast<size_t>(verdict)];
}

bool Effects::any() const {
  return std::any_of(by_column.begin(), by_column.end(), [](const auto& effect) { return effect.has_value(); });
}

size_t ComparisonRow::recorded() const {
  return static_cast<size_t>(std::count_if(texts.begin(), texts.end(), [](const auto& text) { return !text.empty(); }));
}

Comparison compare(const std::vector<ComparedRun>& runs) {
  if (runs.size() < 2)
    throw Error("COMPARE", "a comparison needs at least two runs",
                {.found = std::to_string(runs.size()), .expected = "2 or more"});
  Comparison out{.names = distinct_names(runs)};
  const auto serves = std::count_if(runs.begin(), runs.end(), [](const ComparedRun& r) { return r.sweep.has_value(); });
  if (serves == static_cast<long>(runs.size()))
    comparing::serving(runs, out);
  else if (serves == 0)
    comparing::training(runs, out);
  else
    comparing::confound(out, "kind", "training runs and serving sweeps have no result in common",
                        Fairness::meaningless);
  std::stable_sort(out.confounders.begin(), out.confounders.end(),
                   [](const Confounder& a, const Confounder& b) { return a.at_least > b.at_least; });
  for (const Confounder& c : out.confounders) out.verdict = std::max(out.verdict, c.at_least);
  return out;
}

Comparison results_of(const ComparedRun& run) {
  Comparison out{.names = {run.name}};
  run.sweep ? comparing::serving({run}, out) : comparing::training({run}, out);
  out.confounders.clear();
  return out;
}

namespace comparing {

namespace {

constexpr size_t kLongestName = 48;

// Returns the common prefix of all names, up to the end of a word.
size_t common_beginning(const std::vector<std::string>& names) {
  size_t same = 0;
  while (std::all_of(names.begin(), names.end(),
                     [&](const std::string& n) { return same < n.size() && n[same] == names[0][same]; }))
    ++same;
  const size_t space = names[0].rfind(' ', same);
  return space == std::string::npos || space > same ? 0 : space + 1;
}

// Shortens UTF-8 text to a number of characters by omitting the middle.
std::string shortened(const std::string& name) {
  if (name.size() <= kLongestName) return name;
  const auto begins = [&](size_t at) { return (static_cast<unsigned char>(name[at]) & 0xC0) != 0x80; };
  size_t head = kLongestName / 2, tail = name.size() - kLongestName / 2;
  while (head > 0 && !begins(head)) --head;
  while (tail < name.size() && !begins(tail)) ++tail;
  return name.substr(0, head) + "\u2026" + name.substr(tail);
}

}  // namespace

std::string called(const Comparison& out, size_t column) {
  if (out.names.size() == 2) return column == 0 ? "baseline" : "the other";
  const size_t same = common_beginning(out.names);
  const std::string name = out.names[column].substr(same), text = shortened(name);
  const auto twins = std::count_if(out.names.begin(), out.names.end(),
                                   [&](const std::string& n) { return shortened(n.substr(same)) == text; });
  return twins == 1 ? text : name;
}

std::string listed(const Comparison& out, const std::vector<std::string>& values) {
  std::vector<std::pair<std::string, std::vector<size_t>>> groups;
  for (size_t c = 0; c < values.size(); ++c) {
    const std::string value = values[c].empty() ? "not recorded" : values[c];
    const auto at = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == value; });
    (at == groups.end() ? *groups.insert(at, {value, {}}) : *at).second.push_back(c);
  }
  const auto largest = std::max_element(groups.begin(), groups.end(),
                                        [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  const bool others = groups.size() > 1 && largest->second.size() > 1;
  if (others) std::rotate(largest, std::next(largest), groups.end());
  std::string text;
  for (size_t g = 0; g < groups.size(); ++g) {
    const auto& [value, columns] = groups[g];
    text += (g > 0 ? ", " : "") + value + " in ";
    if (groups.size() == 1 && columns.size() == out.names.size()) return value + " in all";
    if (others && g + 1 == groups.size()) return text + "the others";
    for (size_t i = 0; i < columns.size(); ++i)
      text += (i == 0 ? "" : i + 1 == columns.size() ? " and " : ", ") + called(out, columns[i]);
  }
  return text;
}

void confound(Comparison& out, std::string key, std::string text, Fairness at_least) {
  out.confounders.push_back({std::move(key), std::move(text), at_least});
}

bool are_different(const std::vector<std::string>& values, MissingValue missing) {
  std::set<std::string> distinct(values.begin(), values.end());
  if (missing == MissingValue::ignored) distinct.erase("");
  return distinct.size() > 1;
}

MissingValue missing_condition(const std::string& key) {
  static const std::set<std::string> kDeciding{"kv_dtype", "prefix_cache", "weight_dtype", "version"};
  return kDeciding.contains(key) ? MissingValue::differs : MissingValue::ignored;
}

std::string definition_of(const formats::BenchSet& set, const std::string& key) {
  const formats::BenchSet definitions{.definitions = set.definitions};
  return formats::to_json(definitions, formats::Detail::summary)["definitions"][key].get<std::string>();
}

bool add_setting(Comparison& out, std::string key, std::string label, std::vector<std::string> texts,
                 MissingValue missing) {
  if (!are_different(texts, missing)) return false;
  ComparisonRow row{.kind = ComparisonRow::Kind::setting, .key = std::move(key), .label = std::move(label)};
  row.texts = std::move(texts);
  row.values.resize(row.texts.size());
  row.deltas.resize(row.texts.size());
  row.marks.resize(row.texts.size());
  out.rows.push_back(std::move(row));
  return true;
}

ComparisonRow* add_result(Comparison& out, const ResultRow& result, const std::vector<double>& values,
                          std::vector<std::string> marks) {
  if (std::none_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); }) &&
      std::all_of(marks.begin(), marks.end(), [](const std::string& mark) { return mark.empty(); }))
    return nullptr;
  ComparisonRow row{.kind = ComparisonRow::Kind::result, .key = result.key, .label = result.label, .unit = result.unit};
  row.better = result.better;
  row.differs = false;
  for (const double v : values) {
    const bool known = std::isfinite(v), based = known && std::isfinite(values[0]) && values[0] != 0;
    row.values.push_back(known ? std::optional(v) : std::nullopt);
    row.texts.push_back(known ? value_text(v) : std::string());
    row.deltas.push_back(based && !row.deltas.empty() ? std::optional(v / values[0] - 1) : std::nullopt);
    row.differs = row.differs || v != values[0];
  }
  row.marks = std::move(marks);
  row.marks.resize(values.size());
  return &out.rows.emplace_back(std::move(row));
}

std::string value_text(double value) {
  if (std::abs(value) < 999.5 || std::abs(value) >= 1e15) return number_text(value, 4);
  std::string digits = std::to_string(std::llround(value));
  for (long at = static_cast<long>(digits.size()) - 3; at > (digits[0] == '-' ? 1 : 0); at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

}  // namespace comparing

namespace {

constexpr size_t kFew = 24;     // number of steps up to which all are shown
constexpr double kWider = 1.6;  // ratio between consecutive shown steps

}  // namespace

std::vector<views::Point> step_differences(const views::RunView& baseline, const views::RunView& other,
                                           const std::string& metric) {
  const views::MetricSeries *a = baseline.metric(metric), *b = other.metric(metric);
  std::vector<views::Point> out;
  if (!a || !b) return out;
  for (size_t i = 0, j = 0; i < a->raw.size() && j < b->raw.size();) {  // both are sorted by step
    const views::Point p = a->raw[i], q = b->raw[j];
    if (p.x < q.x) {
      ++i;
    } else if (q.x < p.x) {
      ++j;
    } else {
      const double difference = q.y / p.y - 1;
      if (p.y != 0 && std::isfinite(difference)) out.push_back({p.x, difference});
      ++i, ++j;
    }
  }
  return out;
}

views::Point furthest_apart(const std::vector<views::Point>& differences) {
  views::Point out{0, std::numeric_limits<double>::quiet_NaN()};
  for (const views::Point& d : differences)
    if (!(std::abs(d.y) <= std::abs(out.y))) out = d;
  return out;
}

std::vector<long> steps_to_show(std::vector<long> steps) {
  if (steps.size() <= kFew) return steps;
  std::vector<long> out;
  double next = 0;
  for (const long step : steps)
    if (static_cast<double>(step) >= next || step == steps.back()) {
      out.push_back(step);
      next = std::max(static_cast<double>(step) + 1, static_cast<double>(step) * kWider);
    }
  return out;
}

}  // namespace mw::compare
