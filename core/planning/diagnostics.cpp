// SPDX-License-Identifier: Apache-2.0
#include "core/planning/diagnostics.h"

#include <algorithm>
#include <utility>

#include "core/experiment/parameters.h"
#include "core/plan/search/smallest_changes.h"

namespace mw::planning {
namespace {

std::string value_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string text;
  for (const Json& e : value) {
    const std::string element = value_text(e);  // an element that contains commas is written as JSON
    if (element.find(',') != std::string::npos) return value.dump(-1, ' ', false, Json::error_handler_t::replace);
    text += (text.empty() ? "" : ",") + element;
  }
  return text;
}

// Formats an edit as "key=value" for --set; a removed mesh axis gets size 1.
std::string assignment(const lint::Edit& edit) {
  if (!edit.value.is_null()) return edit.key + "=" + value_text(edit.value);
  const experiment::Parameter* p = experiment::find_parameter(edit.key);
  return edit.key + "=" + (p ? value_text(p->fallback) : std::string());
}

bool needs_quotes(const std::string& text) {
  return text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,=/-") !=
         std::string::npos;
}

// Describes the first fix: "Use the mesh fsdp 2, tp 4 (--set mesh.fsdp=2 --set mesh.tp=4)".
std::string fix_text(const std::vector<lint::Fix>& fixes) {
  if (fixes.empty()) return {};
  const lint::Fix& fix = fixes.front();
  return fix.label + (fix.cost.empty() ? "" : ": " + fix.cost) + " (" + set_text(fix) + ")";
}

Diagnostic diagnostic(lint::Finding finding) {
  Diagnostic d;
  d.problem = {.id = finding.id,
               .severity = finding.severity,
               .message = std::move(finding.message),
               .place = std::move(finding.place),
               .found = std::move(finding.found),
               .expected = std::move(finding.expected)};
  d.fixes = std::move(finding.fixes);
  d.problem.fix = fix_text(d.fixes);
  if (const lint::CheckRule* rule = lint::find_rule(finding.id)) {
    d.why = rule->why;
    d.evidence = rule->evidence;
  }
  return d;
}

Diagnostic plain(Problem problem) {
  return {.problem = std::move(problem), .why = {}, .evidence = {}};
}

constexpr size_t kMostFixes = 6;

// Returns the next two larger targets with the same chip.
std::vector<plan::Request> larger(const experiment::Experiment& experiment, const plan::Request& request,
                                  const hardware::Catalogue& catalogue) {
  std::vector<hardware::Target> targets;
  for (const std::string& id : catalogue.target_ids()) {
    hardware::Target t = catalogue.target(id);
    if (t.chip.id == request.target.chip.id && t.devices() > request.target.devices()) targets.push_back(std::move(t));
  }
  std::stable_sort(targets.begin(), targets.end(),
                   [](const auto& a, const auto& b) { return a.devices() < b.devices(); });
  std::vector<plan::Request> out;
  for (size_t i = 0; i < std::min<size_t>(2, targets.size()); ++i) {
    experiment::Experiment moved = experiment;
    retarget(moved, targets[i].id, catalogue);
    plan::Request next = plan_request(moved, catalogue);
    next.work = request.work;
    next.forward = request.forward;
    next.rollout = request.rollout;
    out.push_back(std::move(next));
  }
  return out;
}

std::vector<lint::Fix> memory_fixes(const experiment::Experiment& experiment, const plan::Request& request,
                                    const hardware::Catalogue& catalogue) {
  std::vector<lint::Fix> fixes;
  try {
    for (const plan::PlanChange& c : plan::smallest_changes(request, larger(experiment, request, catalogue)))
      if (fixes.size() < kMostFixes) fixes.push_back(plan::fix_of(c));
  } catch (const Error&) {
    fixes.clear();  // keeps the problem of the plan
  }
  return fixes;
}

// Describes how much time and money packing saves, according to the plan.
std::string packing_gain(const plan::Plan& plan) {
  if (plan.run.packed_speedup <= 1) return "the plan predicts no gain";
  const double saved = 1 - 1 / plan.run.packed_speedup;
  std::string text = number_text(plan.run.packed_speedup, 3) +
                     " times as fast: " + to_text(Seconds(3600 * saved * plan.run.hours.value)) + " less";
  if (plan.run.usd.value > 0) text += ", " + to_text(Usd(saved * plan.run.usd.value)) + " less";
  return text;
}

// Adds the problems of the plan that no rule reports.
void add_plan_problems(const plan::Plan& plan, std::vector<lint::Fix> memory, Diagnosis& out) {
  for (const Problem& p : plan.problems) {
    if (p.id == "TP-1" || p.id == "FSDP-1" || p.id == "PADDING" || p.id == "MESH-SIZE" || p.id.starts_with("SPEC-"))
      continue;
    Diagnostic d = plain(p);
    if (p.id == "MEMORY" && !memory.empty()) {
      d.fixes = std::exchange(memory, {});
      d.problem.fix = fix_text(d.fixes);
    }
    out.found.push_back(std::move(d));
  }
}

}  // namespace

std::vector<Diagnostic> Diagnosis::beyond_the_document() const {
  return {found.begin() + static_cast<std::ptrdiff_t>(of_the_document), found.end()};
}

Diagnosis diagnose(const experiment::Experiment& experiment, const hardware::Catalogue& catalogue,
                   const DiagnosticFacts& known, Fixes fixes) {
  Diagnosis out;
  bool readable = true;
  for (Problem& p : experiment.validate()) {
    readable = readable && p.severity != Severity::error;
    out.found.push_back(plain(std::move(p)));
  }
  out.of_the_document = out.found.size();
  if (!readable) return out;  // invalid values cannot be checked
  const experiment::ExperimentConfig config = experiment::bind_valid(experiment);
  if (config.model.path.empty() && config.model.id.empty()) {
    out.unchecked.push_back({"MODEL", "a model (model.id or model.path)"});
    return out;
  }
  plan::Request request;
  try {
    request = plan_request(experiment, catalogue);
    if (planned_elsewhere(experiment)) plan::check_request(request);
  } catch (const Error& error) {
    out.found.push_back(plain(error.problem()));
    return out;
  }
  lint::Report report = lint::check(check_facts(config, request, known));
  if (known.plan) {
    const bool search = fixes == Fixes::searched && !known.plan->fits();
    const plan::Request& planned = known.request ? *known.request : request;
    add_plan_problems(*known.plan, search ? memory_fixes(experiment, planned, catalogue) : std::vector<lint::Fix>{},
                      out);
  }
  for (lint::Finding& f : report.findings) {
    if (f.id == "PAD-1" && known.plan && !f.fixes.empty()) f.fixes.front().cost = packing_gain(*known.plan);
    out.found.push_back(diagnostic(std::move(f)));
  }
  out.unchecked = std::move(report.unchecked);
  return out;
}

Diagnosis diagnostics(const experiment::Experiment& experiment, const hardware::Catalogue& catalogue) {
  // Runs on this machine are predicted by the engine's formulas, not by the planner.
  if (!planned_elsewhere(experiment)) return diagnose(experiment, catalogue);
  try {
    const plan::Plan plan = plan::predict(plan_request(experiment, catalogue));
    return diagnose(experiment, catalogue, {.plan = &plan}, Fixes::searched);
  } catch (const Error&) {
    return diagnose(experiment, catalogue);  // reports why it cannot be planned
  }
}

void apply(experiment::Experiment& experiment, const lint::Fix& fix) {
  for (const lint::Edit& edit : fix.edits) {
    if (edit.value.is_null())
      experiment.erase(edit.key);
    else
      experiment.set_value(edit.key, edit.value);
  }
}

std::string set_text(const lint::Fix& fix) {
  std::string text;
  for (const lint::Edit& edit : fix.edits) {
    const std::string a = assignment(edit);
    text += (text.empty() ? "--set " : " --set ") + (needs_quotes(a) ? "'" + a + "'" : a);
  }
  return text;
}

Json to_json(const Diagnostic& d) {
  Json fixes = Json::array();
  for (const lint::Fix& fix : d.fixes) {
    Json sets = Json::array();
    for (const lint::Edit& edit : fix.edits) sets.push_back(assignment(edit));
    fixes.push_back({{"label", fix.label}, {"cost", fix.cost}, {"set", std::move(sets)}});
    if (fix.slowdown) fixes.back()["slowdown"] = *fix.slowdown;
  }
  return {{"id", d.problem.id},
          {"severity", to_string(d.problem.severity)},
          {"message", to_text(d.problem)},
          {"fix", d.problem.fix},
          {"place", d.problem.place},
          {"fixes", std::move(fixes)},
          {"why", d.why},
          {"evidence", d.evidence}};
}

Json to_json(const std::vector<lint::UncheckedRule>& unchecked) {
  Json all = Json::array();
  for (const lint::UncheckedRule& u : unchecked) all.push_back({{"id", u.id}, {"needs", u.needs}});
  return all;
}

}  // namespace mw::planning
