// SPDX-License-Identifier: Apache-2.0
#include "core/plan/document/diagnostics.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/experiment/parameters.h"
#include "core/plan/document/engine_request.h"
#include "core/plan/search/smallest_changes.h"

namespace mw::plan {
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

constexpr size_t kMostFixes = 8;
constexpr int kMostDevices = 64;  // of a mesh on this machine

// The request of a changed document that does the same work, with the data that `own` has read.
Request changed_request(const experiment::Experiment& changed, const Request& own, const PlanContext& context) {
  Request out = plan_request(changed, context);
  out.work = own.work;
  out.forward = own.forward;
  out.rollout = own.rollout;
  take_rows(own, out);
  return out;
}

// On this machine meshes of more virtual devices, else the next two larger targets with the same chip.
std::vector<Request> larger(const experiment::Experiment& experiment, const Request& request,
                            const PlanContext& context) {
  std::vector<Request> out;
  if (runs_here(request) && request.work == Work::train) {
    // Virtual devices share the memory of this machine: they hold more only where a limit holds for each of them.
    const int devices = request.mesh.devices();
    const bool helps = devices > 1 || experiment.valid_values().target.memory_gib > 0;
    bool fits = false;
    for (int times = 2; helps && !fits && devices * times <= kMostDevices; times *= 2)
      for (const mesh::MeshAxis& axis : request.mesh.axes) try {
          experiment::Experiment split = experiment;
          split.set_value("mesh." + axis.name, axis.size * times);
          out.push_back(changed_request(split, request, context));
          fits = fits || predict(out.back()).fits();
        } catch (const Error&) {
          continue;  // the model or the batch cannot be split so
        }
    return out;
  }
  std::vector<hardware::Target> targets;
  for (const std::string& id : context.catalogue.target_ids()) {
    hardware::Target t = context.catalogue.target(id);
    if (t.chip.id == request.target.chip.id && t.devices() > request.target.devices()) targets.push_back(std::move(t));
  }
  std::stable_sort(targets.begin(), targets.end(),
                   [](const auto& a, const auto& b) { return a.devices() < b.devices(); });
  for (size_t i = 0; i < std::min<size_t>(2, targets.size()); ++i) try {
      experiment::Experiment moved = experiment;
      retarget(moved, targets[i].id, context);
      out.push_back(changed_request(moved, request, context));
    } catch (const Error&) {
      continue;  // that target cannot be planned with the document's settings
    }
  return out;
}

// Where scores are materialised, the changes of an experiment with fused attention, each with that change.
std::vector<PlanChange> fused_changes(const Request& request, std::vector<Request> larger) {
  using Attention = options::AttentionKernel;
  if (request.work != Work::train || request.profile.attention != Attention::materialised) return {};
  Request fused = request;
  fused.profile.attention = Attention::fused;
  for (Request& other : larger) other.profile.attention = Attention::fused;
  const Plan plan = predict(fused);
  std::vector<PlanChange> changes =
      plan.fits() ? std::vector<PlanChange>{{.label = "Use"}} : smallest_changes(fused, larger);
  for (PlanChange& change : changes) {
    change.label += (change.edits.empty() ? " fused attention" : ", fused attention");
    change.edits.insert(change.edits.begin(), {"train.attention", "fused"});
    ++change.settings;
  }
  return changes;
}

std::vector<lint::Fix> changes_to_fit(const experiment::Experiment& experiment, const Request& request,
                                      const PlanContext& context, const std::stop_token& stop,
                                      std::span<const Request> others) {
  std::vector<lint::Fix> fixes;
  try {
    std::vector<Request> targets = larger(experiment, request, context);
    for (const Request& other : others)
      if (std::none_of(targets.begin(), targets.end(), [&](const auto& t) { return t.target.id == other.target.id; }))
        targets.push_back(other);
    std::vector<PlanChange> changes = smallest_changes(request, targets, {}, stop);
    for (PlanChange& change : fused_changes(request, targets)) changes.push_back(std::move(change));
    const auto moves = [](const PlanChange& c) {
      return std::any_of(c.edits.begin(), c.edits.end(), [](const lint::Edit& e) { return e.key == "target.id"; });
    };
    std::stable_sort(changes.begin(), changes.end(), [&](const auto& a, const auto& b) {
      return std::pair(moves(a), a.settings) < std::pair(moves(b), b.settings);
    });
    for (const PlanChange& c : changes) fixes.push_back(fix_of(c));
  } catch (const Error& error) {
    if (error.kind() == Error::Kind::cancelled) throw;
    fixes.clear();  // keeps the problem of the plan
  }
  return fixes;
}

// Plans the document after a fix: what the fix promises is what the plan then says.
class FixPlanner {
 public:
  FixPlanner(const experiment::Experiment& experiment, const Request& request, const Plan& plan,
             const PlanContext& context)
      : experiment_(experiment), request_(request), plan_(plan), context_(context) {}
  // Sets the outcome and adds it to the cost; leaves a fix that cannot be planned as it is.
  void describe(lint::Fix& fix) const try {
    experiment::Experiment fixed = experiment_;
    apply(fixed, fix);
    const Plan after = predict(changed_request(fixed, request_, context_));
    fix.outcome = lint::FixOutcome{.fits = after.fits(),
                                   .seconds = after.step.seconds.value,
                                   .hours = after.run.hours.value,
                                   .usd = after.run.usd.value,
                                   .usd_per_million_tokens = after.run.usd_per_million_tokens,
                                   .peak = after.memory.at_peak.total()};
    const bool timed = std::isfinite(time_of(plan_)) && time_of(plan_) > 0;  // a mesh that does not match has no time
    if (fix.slowdown) fix.slowdown = timed ? std::optional(time_of(after) / time_of(plan_) - 1) : std::nullopt;
    const std::string change = change_text(after);
    if (!change.empty()) fix.cost += (fix.cost.empty() ? "" : "; ") + change;
  } catch (const Error&) {
    return;
  }

 private:
  double time_of(const Plan& plan) const {
    return request_.work == Work::serve ? 1 / plan.run.tokens_per_second : plan.step.seconds.value;
  }
  std::string change_text(const Plan& after) const {
    if (!plan_.refusals.empty() || !after.refusals.empty()) return {};
    if (!(time_of(plan_) > 0)) return "peak " + to_text(after.memory.at_peak.total());
    const bool runs = request_.work == Work::train && plan_.run.hours.value > 0;
    const double slowdown =
        (runs ? after.run.hours.value / plan_.run.hours.value : time_of(after) / time_of(plan_)) - 1;
    std::string text;
    if (!plan_.memory.fits()) {
      text = slowdown_text(slowdown) + ", peak " + to_text(after.memory.at_peak.total());
      if (!after.memory.fits()) text += " of " + to_text(after.memory.capacity) + ", still too much";
    } else if (std::abs(slowdown) > kSameTime) {
      text = slowdown_text(slowdown);
      if (!after.memory.fits()) text += ", and does not fit: peak " + to_text(after.memory.at_peak.total());
    }
    if (text.empty() || !runs || std::abs(slowdown) <= kSameTime) return text;
    const auto difference = [](double before, double now, const auto& to_words) {
      return to_words(std::abs(now - before)) + (now < before ? " less" : " more");
    };
    text += ": " + difference(plan_.run.hours.value, after.run.hours.value,
                              [](double hours) { return to_text(Seconds(3600 * hours)); });
    if (plan_.run.usd.value > 0 && after.run.usd.value > 0)
      text += ", " + difference(plan_.run.usd.value, after.run.usd.value, [](double usd) { return to_text(Usd(usd)); });
    return text;
  }
  static constexpr double kSameTime = 0.005;
  const experiment::Experiment& experiment_;
  const Request& request_;
  const Plan& plan_;
  const PlanContext& context_;
};

// Adds the problems of the plan that no rule reports.
void add_plan_problems(const Plan& plan, const lint::Report& report, std::vector<lint::Fix> memory, Diagnosis& out) {
  const bool refused = std::any_of(report.findings.begin(), report.findings.end(),
                                   [](const auto& f) { return lint::is_refusal(f.id, f.severity); });
  if (!refused)
    for (const Problem& p : plan.refusals) out.found.push_back(plain(p));
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

// A document may hold a setting that a choice of the search does not: only fixes that fit after all are kept.
std::vector<lint::Fix> fixes_that_fit(const experiment::Experiment& experiment, const PlanContext& context,
                                      const Request& request, const Plan& plan, const std::stop_token& stop,
                                      std::span<const Request> others) {
  const FixPlanner planner(experiment, request, plan, context);
  std::vector<lint::Fix> fixes;
  for (lint::Fix& fix : changes_to_fit(experiment, request, context, stop, others)) {
    if (fixes.size() == kMostFixes) break;
    fix.cost.clear();
    planner.describe(fix);
    if (fix.outcome && fix.outcome->fits) fixes.push_back(std::move(fix));
  }
  return fixes;
}

Diagnosis diagnose(const experiment::Experiment& experiment, const PlanContext& context, const DiagnosticFacts& known,
                   Fixes fixes, const std::stop_token& stop) {
  Diagnosis out;
  bool readable = true;
  for (const Problem& p : experiment.validate()) {
    readable = readable && p.severity != Severity::error;
    out.found.push_back(plain(p));
  }
  out.of_the_document = out.found.size();
  if (!readable) return out;  // invalid values cannot be checked
  const experiment::BoundExperiment& config = experiment.valid_values();
  if (config.model.path.empty() && config.model.id.empty()) {
    out.unchecked.push_back({"MODEL", "a model (model.id or model.path)"});
    return out;
  }
  Request request;
  try {
    request = known.request ? *known.request : plan_request(experiment, context);
    check_request(request);
  } catch (const Error& error) {
    out.found.push_back(plain(error.problem()));
    return out;
  }
  lint::Report report = check(check_facts(config, request, known));
  if (known.plan) {
    const FixPlanner planner(experiment, request, *known.plan, context);
    std::vector<lint::Fix> memory;
    if (fixes == Fixes::searched && !known.plan->memory.fits())
      memory = fixes_that_fit(experiment, context, request, *known.plan, stop);
    add_plan_problems(*known.plan, report, std::move(memory), out);
    for (lint::Finding& f : report.findings)
      for (lint::Fix& fix : f.fixes) planner.describe(fix);
  }
  for (lint::Finding& f : report.findings) out.found.push_back(diagnostic(std::move(f)));
  out.unchecked = std::move(report.unchecked);
  return out;
}

std::vector<Diagnostic> server_diagnostics(const experiment::Experiment& experiment, const PlanContext& context,
                                           const DiagnosticFacts& known) {
  std::vector<Diagnostic> out = diagnose(experiment, context, known).found;
  std::erase_if(out, [](const Diagnostic& d) { return !d.problem.id.starts_with("SERVE-"); });
  return out;
}

void require_runnable(const experiment::Experiment& experiment, const PlanContext& context, const Request& request,
                      const Plan& plan) {
  if (plan.refusals.empty()) return;
  for (const Diagnostic& d : diagnose(experiment, context, {.plan = &plan, .request = &request}).found)
    if (lint::is_refusal(d.problem.id, d.problem.severity)) throw Error(d.problem);
  throw Error(plan.refusals.front());
}

void apply(experiment::Experiment& experiment, const lint::Fix& fix) {
  for (const lint::Edit& edit : fix.edits) {
    if (edit.value.is_null())
      experiment.erase(edit.key);
    else
      experiment.set_value(edit.key, edit.value);
  }
}

Json sets_json(const std::vector<lint::Edit>& edits) {
  Json sets = Json::array();
  for (const lint::Edit& edit : edits) sets.push_back(assignment(edit));
  return sets;
}

std::string set_text(const lint::Fix& fix) {
  std::string text;
  for (const lint::Edit& edit : fix.edits) {
    const std::string a = assignment(edit);
    text += (text.empty() ? "--set " : " --set ") + (needs_quotes(a) ? "'" + a + "'" : a);
  }
  return text;
}

std::string line_text(const Problem& problem) {
  return to_string(problem.severity) + " " + problem.id + ": " + to_text(problem) + "\n";
}

Json positive_or_null(double value) {
  return value > 0 ? Json(value) : Json(nullptr);
}

Json to_json(const Diagnostic& d) {
  Json fixes = Json::array();
  for (const lint::Fix& fix : d.fixes) {
    fixes.push_back({{"label", fix.label}, {"cost", fix.cost}, {"set", sets_json(fix.edits)}});
    if (fix.slowdown) fixes.back()["slowdown"] = *fix.slowdown;
    if (const auto& o = fix.outcome)
      fixes.back()["outcome"] = {{"fits", o->fits},
                                 {"seconds_per_step", o->seconds},
                                 {"hours", o->hours},
                                 {"usd", positive_or_null(o->usd)},
                                 {"usd_per_million_tokens", positive_or_null(o->usd_per_million_tokens)},
                                 {"peak_bytes", o->peak.value}};
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

Json to_json(const std::vector<Diagnostic>& diagnostics) {
  Json all = Json::array();
  for (const Diagnostic& d : diagnostics) all.push_back(to_json(d));
  return all;
}

Json to_json(const std::vector<lint::UncheckedRule>& unchecked) {
  Json all = Json::array();
  for (const lint::UncheckedRule& u : unchecked) all.push_back({{"id", u.id}, {"needs", u.needs}});
  return all;
}

}  // namespace mw::plan
