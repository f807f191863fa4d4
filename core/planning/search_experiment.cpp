// SPDX-License-Identifier: Apache-2.0
#include "core/planning/search_experiment.h"

#include <algorithm>
#include <cstdio>

#include "core/base/text.h"
#include "core/planning/diagnostics.h"

namespace mw::planning {
namespace {

constexpr size_t kMostChanges = 12;

size_t shown(const ExperimentSearch& s, size_t top) {
  return top == 0 ? s.result.candidates.size() : std::min(top, s.result.candidates.size());
}

Json mesh_json(const mesh::Mesh& mesh) {
  Json out = Json::object();
  for (const mesh::MeshAxis& axis : mesh.axes) out[axis.name] = axis.size;
  return out;
}

Json sets_json(const std::vector<lint::Edit>& edits) {
  return to_json(Diagnostic{.problem = {}, .why = {}, .evidence = {}, .fixes = {{"", "", edits}}})["fixes"][0]["set"];
}

Json candidate_json(const ExperimentSearch& s, const plan::Candidate& c) {
  const plan::Work work = s.request.work;
  Json out{{"target", c.choice.target}, {"mesh", mesh_json(c.choice.mesh)}};
  if (work == plan::Work::serve)
    out["max_num_seqs"] = c.choice.max_num_seqs;
  else
    out["batch"] = c.choice.batch;
  if (work == plan::Work::train) {
    out["accumulation"] = c.choice.accumulation;
    out["remat"] = to_string(c.choice.remat);
    out["loss_chunk"] = c.choice.loss_chunk;
    out["stack"] = to_string(c.choice.stack);
    out["packing"] = c.choice.rows == plan::RowLayout::packed;
    out["attention"] = to_string(c.choice.attention);
    out["adapter_dtype"] = to_string(c.choice.adapters);
  }
  const std::vector<lint::Edit> edits = edits_to(s, plan::choice_of(s.request), c.choice);
  out["fits"] = c.fits();
  out["seconds_per_step"] = c.seconds;
  out["tokens_per_second"] = c.tokens_per_second;
  out["hours"] = c.hours;
  out[work == plan::Work::serve ? "usd_per_million_output_tokens" : "usd"] = c.usd > 0 ? Json(c.usd) : Json(nullptr);
  out["peak_bytes"] = c.peak.value;
  out["capacity_bytes"] = c.capacity.value;
  out["pareto"] = c.pareto;
  out["set"] = sets_json(edits);
  return out;
}

// The stacks that a recipe can be exported for, by the vendor of their chips.
std::vector<plan::Stack> exchangeable_stacks(plan::Stack own) {
  if (own == plan::Stack::tunix) return {plan::Stack::torchax};
  if (own == plan::Stack::torchax) return {plan::Stack::tunix};
  return {};
}

// Adds the document with another training stack, unless that stack cannot plan it.
void add_stacks(const experiment::Experiment& experiment, const hardware::Catalogue& catalogue,
                std::vector<plan::Request>& out) {
  if (out.back().work != plan::Work::train) return;
  for (const plan::Stack stack : exchangeable_stacks(out.back().stack)) try {
      experiment::Experiment other = experiment;
      other.set("train.stack", std::string(to_string(stack)));
      out.push_back(plan_request(other, catalogue));
    } catch (const Error&) {
      // The document has settings that only its own stack has.
    }
}

// Returns the requests for the document's target, then for the other targets, of each stack. Throws Error like
// plan_request().
std::vector<plan::Request> search_requests(const experiment::Experiment& experiment,
                                           const std::vector<std::string>& targets,
                                           const hardware::Catalogue& catalogue) {
  if (!planned_elsewhere(experiment))
    throw Error({.id = "TARGET",
                 .message = "the search does not support this machine, whose speed is measured rather than predicted",
                 .place = "target.id",
                 .found = "cpu",
                 .expected = "a TPU slice or GPUs, such as v5p-8 or 2xh100",
                 .fix = "set target.id, e.g. --set target.id=v5p-8"});
  std::vector<plan::Request> out{plan_request(experiment, catalogue)};
  add_stacks(experiment, catalogue, out);
  for (const std::string& id : targets) {
    if (catalogue.target(id).id == out.front().target.id) continue;
    experiment::Experiment moved = experiment;
    retarget(moved, id, catalogue);
    out.push_back(plan_request(moved, catalogue));
    add_stacks(moved, catalogue, out);
  }
  return out;
}

// A document that is refused whatever the search varies is refused with the checker's fix.
plan::SearchResult searched(const experiment::Experiment& experiment, const std::vector<plan::Request>& requests,
                            const hardware::Catalogue& catalogue, const plan::SearchOptions& options,
                            const std::stop_token& stop) {
  try {
    return plan::search(requests, options, stop);
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::cancelled)
      require_runnable(experiment, catalogue, requests.front(), plan::predict(requests.front()));
    throw;
  }
}

}  // namespace

ExperimentSearch search_experiment(const experiment::Experiment& experiment, const std::vector<std::string>& targets,
                                   const hardware::Catalogue& catalogue, const plan::SearchOptions& options,
                                   std::stop_token stop) {
  const std::vector<plan::Request> requests = search_requests(experiment, targets, catalogue);
  plan::SearchOptions wide = options;
  wide.scope = plan::SearchScope::settings;
  ExperimentSearch out{.request = requests.front(), .result = searched(experiment, requests, catalogue, wide, stop)};
  for (const plan::Request& r : requests) {
    out.bases.push_back({r.target.id, r.stack, plan::choice_of(r)});
    std::vector<std::string> keys = keys_of_target(out.request.target, r.target);
    std::erase_if(keys, [&](const std::string& key) { return !experiment.has(key); });
    if (!keys.empty()) out.dropped[r.target.id] = std::move(keys);
  }
  try {
    out.fits = plan::predict(out.request).fits();
  } catch (const Error&) {
    out.fits = false;  // the mesh does not match the target
  }
  if (!out.fits) {
    plan::SearchOptions quiet = options;
    quiet.progress = {};
    out.changes = plan::smallest_changes(out.request, std::span(requests).subspan(1), quiet, stop);
    if (out.changes.size() > kMostChanges) out.changes.resize(kMostChanges);
  }
  return out;
}

std::vector<lint::Edit> edits_to(const ExperimentSearch& s, const plan::PlanChoice& from, const plan::PlanChoice& to) {
  std::vector<lint::Edit> out;
  if (const auto keys = s.dropped.find(to.target); from.target != to.target && keys != s.dropped.end())
    for (const std::string& key : keys->second) out.push_back({key, nullptr});
  // Settings of a stack that the document leaves to it need no edit where the plan has them by default.
  plan::PlanChoice base = from;
  for (const ExperimentSearch::Base& b : s.bases) {
    if (b.target != to.target || b.stack != to.stack) continue;
    base.rows = b.choice.rows;
    base.steps = b.choice.steps;
    base.attention = b.choice.attention;
    base.adapters = b.choice.adapters;
  }
  const auto own = std::find_if(s.bases.begin(), s.bases.end(),
                                [&](const ExperimentSearch::Base& b) { return b.target == to.target; });
  if (own != s.bases.end() && own->stack != to.stack) out.push_back({"train.stack", std::string(to_string(to.stack))});
  const std::vector<lint::Edit> chosen = plan::edits(base, to, s.request.work);
  out.insert(out.end(), chosen.begin(), chosen.end());
  return out;
}

Json searched_json(const ExperimentSearch& s, size_t top) {
  Json candidates = Json::array(), changes = Json::array();
  for (size_t i = 0; i < shown(s, top); ++i) candidates.push_back(candidate_json(s, s.result.candidates[i]));
  for (const plan::PlanChange& c : s.changes)
    changes.push_back({{"label", c.label},
                       {"set", sets_json(c.edits)},
                       {"slowdown", c.slowdown},
                       {"seconds_per_step", c.seconds},
                       {"usd", c.usd},
                       {"peak_bytes", c.peak.value}});
  return {{"candidates", std::move(candidates)},
          {"evaluated", s.result.evaluated},
          {"fitting", s.result.candidates.size()},
          {"seconds", s.result.seconds},
          {"fits", s.fits},
          {"smallest_changes", std::move(changes)}};
}

std::string searched_text(const ExperimentSearch& s, size_t top) {
  const plan::Work work = s.request.work;
  const bool serves = work == plan::Work::serve;
  std::string out = padded("target", -12) + padded("plan", -104) + padded("s/step", -9) + padded("tokens/s", -10) +
                    padded(serves ? "$/1M" : "$", -10) + padded("peak", -11) + "Pareto\n";
  for (size_t i = 0; i < shown(s, top); ++i) {
    const plan::Candidate& c = s.result.candidates[i];
    out += padded(c.choice.target, -12) + padded(plan::to_text(c.choice, work), -104) +
           padded(number_text(c.seconds, 3), -9) + padded(count_text(c.tokens_per_second), -10) +
           padded(c.usd > 0 ? number_text(c.usd, 4) : std::string("-"), -10) + padded(to_text(c.peak), -11) +
           (c.pareto ? "*" : "") + "\n";
  }
  out += std::to_string(s.result.evaluated) + " plans predicted in " + to_text(Seconds(s.result.seconds)) + ", " +
         std::to_string(s.result.candidates.size()) + " fit\n";
  if (s.fits) return out;
  out += s.changes.empty() ? "The current plan does not fit, and none of the tried changes makes it fit\n"
                           : "The current plan does not fit; the smallest changes that make it fit:\n";
  for (const plan::PlanChange& c : s.changes) {
    const lint::Fix fix = plan::fix_of(c);
    out += "  " + fix.label + " (" + fix.cost + "): " + set_text(fix) + "\n";
  }
  return out;
}

}  // namespace mw::planning
