// SPDX-License-Identifier: Apache-2.0
#include "core/plan/experiment/search_experiment.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "core/base/counted.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/mesh/layout/layout.h"
#include "core/plan/document/diagnostics.h"
#include "core/plan/document/engine_request.h"
#include "core/plan/experiment/costing.h"
#include "core/serve/load/sweep.h"

namespace mw::plan {
namespace {

size_t shown(const ExperimentSearch& s, size_t top) {
  return top == 0 ? s.result.candidates.size() : std::min(top, s.result.candidates.size());
}

Json mesh_json(const mesh::Mesh& mesh) {
  Json out = Json::object();
  for (const mesh::MeshAxis& axis : mesh.axes) out[axis.name] = axis.size;
  return out;
}

Json known(double value) {
  return std::isfinite(value) ? Json(value) : std::isinf(value) ? Json("inf") : Json(nullptr);
}

Json sweep_json(const SweepFigures& sweep, const std::vector<formats::BenchPoint>& points) {
  Json all = Json::array();
  for (const formats::BenchPoint& p : points) all.push_back(formats::to_json(p, formats::Detail::summary));
  return {{"request_seconds", known(sweep.seconds)},
          {"rate_within_slo", known(sweep.rate)},
          {"too_short", sweep.too_short},
          {"usd_per_million_output_tokens", sweep.usd > 0 ? known(sweep.usd) : Json(nullptr)},
          {"points", std::move(all)}};
}

Json candidate_json(const ExperimentSearch& s, const Candidate& c, const std::vector<formats::BenchPoint>& points) {
  const Work work = s.request.work;
  Json out{{"target", c.choice.target}, {"mesh", mesh_json(c.choice.mesh)}, {"places", Json::array()}};
  for (const mesh::RequestedPlacement& p : c.choice.places) out["places"].push_back(mesh::to_text(p));
  if (work == Work::serve) {
    out["max_num_seqs"] = c.choice.max_num_seqs;
    out["kv_dtype"] = to_string(c.choice.kv);
    out["replicas"] = c.choice.replicas;
    out["sweep"] = c.sweep ? sweep_json(*c.sweep, points) : Json(nullptr);
  } else
    out["batch"] = c.choice.batch;
  if (work == Work::train) {
    out["accumulation"] = c.choice.accumulation;
    out["remat"] = to_string(c.choice.remat);
    out["loss_chunk"] = c.choice.loss_chunk;
    out["stack"] = to_string(c.choice.stack);
    out["packing"] = c.choice.rows == RowLayout::packed;
    out["attention"] = to_string(c.choice.attention);
    out["adapter_dtype"] = to_string(c.choice.adapters);
    out["moment_dtype"] = to_string(c.choice.moments);
  }
  const std::vector<lint::Edit> edits = edits_to(s, choice_of(s.request), c.choice);
  out["fits"] = c.fits();
  out["seconds_per_step"] = c.seconds;
  out["tokens_per_second"] = c.tokens_per_second;
  out["hours"] = c.hours;
  out[work == Work::serve ? "usd_per_million_output_tokens" : "usd"] = positive_or_null(c.usd);
  out["peak_bytes"] = c.peak.value;
  out["capacity_bytes"] = c.capacity.value;
  out["pareto"] = c.pareto;
  out["set"] = sets_json(edits);
  return out;
}

constexpr const char* kWholeTarget =
    "a mesh has all devices of its target, so that a part of them cannot be left idle: the plan is for the smaller "
    "target";

Json fewer_chips_json(const ExperimentSearch& s) {
  if (!s.fewer_chips) return nullptr;
  Json out = candidate_json(s, s.fewer_chips->plan, s.fewer_chips->points);
  out["chips"] = s.fewer_chips->chips;
  out["of"] = s.fewer_chips->of;
  out["reason"] = kWholeTarget;
  return out;
}

// The stacks that a recipe can be exported for, by the vendor of their chips.
std::vector<model::Stack> exchangeable_stacks(model::Stack own) {
  if (own == model::Stack::tunix) return {model::Stack::torchax};
  if (own == model::Stack::torchax) return {model::Stack::tunix};
  return {};
}

// Adds the document with another training stack, unless that stack cannot plan it.
void add_stacks(const experiment::Experiment& experiment, const PlanContext& context, std::vector<Request>& out) {
  if (out.back().work != Work::train) return;
  for (const model::Stack stack : exchangeable_stacks(out.back().stack)) try {
      experiment::Experiment other = experiment;
      other.set("train.stack", std::string(to_string(stack)));
      out.push_back(plan_request(other, context));
    } catch (const Error&) {
      // The document has settings that only its own stack has.
    }
}

// Returns the requests for the document's target, then for the other targets, of each stack. Another target that the
// document cannot be planned for is noted. Throws Error like plan_request() for the document's own target, and for an
// unknown one.
std::vector<Request> search_requests(const experiment::Experiment& experiment, const std::vector<std::string>& targets,
                                     const PlanContext& context, const std::stop_token& stop,
                                     std::vector<NoPlan>& without_plan) {
  std::vector<Request> out{plan_request(experiment, context)};
  const auto read_data = [&](const experiment::Experiment& e, Request& r) {
    if (runs_here(r) && r.work == Work::train) read_rows(e.config(), r, stop);
  };
  read_data(experiment, out.front());
  add_stacks(experiment, context, out);
  for (const std::string& id : targets) {
    if (context.catalogue.target(id, "--targets").id == out.front().target.id) continue;
    try {
      experiment::Experiment moved = experiment;
      retarget(moved, id, context);
      Request request = plan_request(moved, context);
      read_data(moved, request);
      out.push_back(std::move(request));
      add_stacks(moved, context, out);
    } catch (const Error& error) {
      if (error.kind() == Error::Kind::cancelled) throw;
      without_plan.push_back({.target = id, .reason = error.what()});
    }
  }
  return out;
}

// The document on the smaller targets with the chip of its own.
std::vector<Request> smaller_requests(const experiment::Experiment& experiment, const Request& own,
                                      const PlanContext& context) {
  std::vector<Request> out;
  for (const std::string& id : context.catalogue.target_ids()) {
    const hardware::Target target = context.catalogue.target(id);
    if (target.chip.id != own.target.chip.id || target.chips() >= own.target.chips()) continue;
    try {
      experiment::Experiment moved = experiment;
      retarget(moved, id, context);
      out.push_back(plan_request(moved, context));
      add_stacks(moved, context, out);
    } catch (const Error&) {
      continue;  // the document cannot be planned for it
    }
  }
  return out;
}

// The fastest candidate; null if there is none.
const Candidate* fastest(const SearchResult& result, Work work) {
  const auto& all = result.candidates;
  const auto found = std::min_element(
      all.begin(), all.end(), [&](const auto& a, const auto& b) { return time_of(a, work) < time_of(b, work); });
  return found == all.end() ? nullptr : &*found;
}

bool is_faster(const Candidate& a, const Candidate* b, Work work) {
  return !b || time_of(a, work) < time_of(*b, work);
}

// The candidates with the settings of the request beside its sharding, batch, remat and loss chunk.
SearchResult with_settings_of(const Request& request, SearchResult result) {
  const PlanChoice own = choice_of(request);
  std::erase_if(result.candidates, [&](const Candidate& c) {
    return c.choice.stack != own.stack || c.choice.rows != own.rows || c.choice.attention != own.attention ||
           c.choice.adapters != own.adapters || c.choice.moments != own.moments;
  });
  return result;
}

// Searches all settings of a smaller target only if its shardings are faster than those of the document's target.
std::optional<Candidate> faster_on_fewer_chips(const std::vector<Request>& smaller, const SearchResult& own,
                                               const SearchOptions& options, const std::stop_token& stop) {
  std::optional<Candidate> best;
  for (const Request& request : smaller) try {
      SearchOptions quiet{.by = RankBy::time, .threads = options.threads};
      const SearchResult shardings = search(std::span(&request, 1), quiet, stop);
      const SearchResult of_own = with_settings_of(request, own);
      const Candidate* first = fastest(shardings, request.work);
      if (!first || !is_faster(*first, fastest(of_own, request.work), request.work)) continue;
      quiet.scope = SearchScope::settings;
      const SearchResult all = search(std::span(&request, 1), quiet, stop);
      const Candidate* c = fastest(all, request.work);
      if (c && is_faster(*c, fastest(own, request.work), request.work) &&
          is_faster(*c, best ? &*best : nullptr, request.work))
        best = *c;
    } catch (const Error& error) {
      if (error.kind() == Error::Kind::cancelled) throw;  // else no mesh of that target can be planned
    }
  return best;
}

// The first request of each target but the first: changes that fit do not change the software.
std::vector<Request> other_targets(const std::vector<Request>& requests) {
  std::vector<Request> out;
  for (size_t i = 1; i < requests.size(); ++i)
    if (requests[i].target.id != requests[i - 1].target.id) out.push_back(requests[i]);
  return out;
}

void add_base(const experiment::Experiment& experiment, const Request& r, ExperimentSearch& out) {
  out.bases.push_back({r.target.id, r.stack, choice_of(r), price_json(r)});
  std::vector<std::string> keys = keys_of_target(out.request.target, r.target);
  std::erase_if(keys, [&](const std::string& key) { return !experiment.has(key); });
  if (!keys.empty()) out.dropped[r.target.id] = std::move(keys);
}

// The options of a part of the search whose progress goes from `from` to `to` per mille, so that the whole one never
// falls back.
SearchOptions part_of(const SearchOptions& options, std::int64_t from, std::int64_t to) {
  SearchOptions part = options;
  if (options.progress)
    part.progress = [whole = options.progress, from, to](std::int64_t done, std::int64_t total) {
      whole(from + (to - from) * done / std::max<std::int64_t>(1, total), 1000);
    };
  return part;
}

// The candidates that are replicas on parts of the document's devices.
void add_replicas(const experiment::Experiment& experiment, const PlanContext& context, const SearchOptions& options,
                  const std::stop_token& stop, ExperimentSearch& out) {
  for (const Request& request : other_replicas(experiment, out.request, context)) try {
      add_base(experiment, request, out);
      SearchResult found =
          search(std::span(&request, 1), {.by = options.by, .scope = options.scope, .threads = options.threads}, stop);
      out.result.evaluated += found.evaluated;
      std::move(found.candidates.begin(), found.candidates.end(), std::back_inserter(out.result.candidates));
    } catch (const Error& error) {
      if (error.kind() == Error::Kind::cancelled) throw;  // else no mesh of that target can be planned
    }
  rank(out.result.candidates, options, out.request);
}

// Simulates the sweeps of the candidates and notes their figures.
std::vector<ServingCell> simulated(const experiment::Experiment& experiment, const PlanContext& context,
                                   const SearchOptions& options, const std::stop_token& stop, const ExperimentSearch& s,
                                   std::span<Candidate> candidates) {
  std::vector<ServingCell> cells;
  for (const Candidate& c : candidates) cells.push_back({c.choice, edits_to(s, choice_of(s.request), c.choice)});
  simulate(cells, experiment, context, options, stop);
  const serve::SweepSettings sweep = serve::sweep_settings(experiment.config());
  for (size_t i = 0; i < cells.size(); ++i)
    if (cells[i].refusal.empty()) candidates[i].sweep = sweep_figures(cells[i], sweep, candidates[i]);
  return cells;
}

// Whether the sweep is faster there than on every candidate.
bool is_fastest(const Candidate& fewer, const std::vector<Candidate>& candidates) {
  const auto time = [](const Candidate& c) { return ranked_time(c, Work::serve); };
  return fewer.sweep && std::none_of(candidates.begin(), candidates.end(),
                                     [&](const Candidate& c) { return c.sweep && time(c) <= time(fewer); });
}

void simulate_candidates(const experiment::Experiment& experiment, const PlanContext& context,
                         const SearchOptions& options, const std::stop_token& stop, long most, ExperimentSearch& out) {
  std::vector<Candidate>& all = out.result.candidates;
  const long each = serve::sweep_settings(experiment.config()).requests();
  const auto count = std::min(all.size(), most == 0 ? 0 : static_cast<size_t>(std::max(1L, most / each)));
  if (count < all.size())
    out.not_simulated = "a search simulates up to " + counted(most, "request") + ", and a sweep has " +
                        std::to_string(each) + ": the others are ranked by the steady state";
  std::vector<ServingCell> cells = simulated(experiment, context, options, stop, out, {all.data(), count});
  rank(all, options, out.request);
  for (const Candidate& c : all)
    if (c.sweep)
      out.cells.push_back(std::move(
          *std::find_if(cells.begin(), cells.end(), [&](const auto& cell) { return cell.choice == c.choice; })));
  if (!out.fewer_chips || out.cells.empty()) return;
  Candidate& fewer = out.fewer_chips->plan;
  out.fewer_chips->points = simulated(experiment, context, {.threads = 1}, stop, out, {&fewer, 1}).front().points;
  if (!is_fastest(fewer, all)) out.fewer_chips.reset();
}

// Adds replicas and ranks by simulated sweeps, if the sweep of the document can be simulated.
void rank_servers(const experiment::Experiment& experiment, const PlanContext& context, const SearchOptions& options,
                  const std::stop_token& stop, long most, ExperimentSearch& out) {
  add_replicas(experiment, context, options, stop, out);
  try {
    simulate_candidates(experiment, context, options, stop, most, out);
  } catch (const Error& error) {
    if (error.kind() == Error::Kind::cancelled) throw;
    out.not_simulated = to_text(error.problem());
  }
}

// Throws if the document has an invalid value for its sweep. What its server cannot take is no such error: the steady
// state then ranks.
void check_sweep(const experiment::BoundExperiment& config) try {
  if (config.kind == experiment::Kind::serve) serve::sweep_settings(config);
} catch (const Error& error) {
  if (error.problem().place.starts_with("sweep.")) throw;
}

// A document that is refused whatever the search varies is refused with the checker's fix.
SearchResult searched(const experiment::Experiment& experiment, const std::vector<Request>& requests,
                      const PlanContext& context, const SearchOptions& options, const std::stop_token& stop) {
  try {
    return search(requests, options, stop);
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::cancelled)
      require_runnable(experiment, context, requests.front(), predict(requests.front()));
    throw;
  }
}

}  // namespace

ExperimentSearch choices_of(const experiment::Experiment& experiment, const std::vector<Request>& requests) {
  ExperimentSearch out{.request = requests.front(), .result = {}};
  for (const Request& r : requests) add_base(experiment, r, out);
  return out;
}

ExperimentSearch search_experiment(const experiment::Experiment& experiment, const std::vector<std::string>& targets,
                                   const PlanContext& context, const SearchOptions& options, std::stop_token stop,
                                   long most_simulated) try {
  const auto start = std::chrono::steady_clock::now();
  check_sweep(experiment.config());
  std::vector<NoPlan> impossible;
  const std::vector<Request> requests = search_requests(experiment, targets, context, stop, impossible);
  SearchOptions wide = options;
  wide.scope = SearchScope::settings;
  ExperimentSearch out = choices_of(experiment, requests);
  const bool simulates = out.request.work == Work::serve && most_simulated > 0;
  out.result = searched(experiment, requests, context, part_of(wide, 0, simulates ? 300 : 1000), stop);
  std::move(impossible.begin(), impossible.end(), std::back_inserter(out.result.without_plan));
  const std::vector<Request> smaller = smaller_requests(experiment, out.request, context);
  if (const auto plan = faster_on_fewer_chips(smaller, out.result, options, stop)) {
    for (const Request& r : smaller)
      if (r.target.id == plan->choice.target) add_base(experiment, r, out);
    out.fewer_chips = {*plan, context.catalogue.target(plan->choice.target).chips(), out.request.target.chips()};
  }
  Plan unchanged;
  try {
    unchanged = predict(out.request);
    out.fits = unchanged.fits();
    if (out.request.work == Work::serve)
      out.found = server_diagnostics(experiment, context, {.plan = &unchanged, .request = &out.request});
  } catch (const Error&) {
    out.fits = false;  // the mesh does not match the target
  }
  if (!out.fits)
    out.changes = fixes_that_fit(experiment, context, out.request, unchanged, stop, other_targets(requests));
  if (out.request.work == Work::serve)
    rank_servers(experiment, context, part_of(wide, 300, 1000), stop, most_simulated, out);
  if (options.progress) options.progress(1000, 1000);
  out.result.seconds = seconds_since(start);
  return out;
} catch (const Error& error) {
  throw error.kind() == Error::Kind::cancelled ? cancelled("the search") : error;  // not one of its parts
}

std::vector<lint::Edit> edits_to(const ExperimentSearch& s, const PlanChoice& from, const PlanChoice& to) {
  std::vector<lint::Edit> out;
  if (const auto keys = s.dropped.find(to.target); from.target != to.target && keys != s.dropped.end())
    for (const std::string& key : keys->second) out.push_back({key, nullptr});
  // Settings of a stack that the document leaves to it need no edit where the plan has them by default.
  PlanChoice base = from;
  for (const ExperimentSearch::Base& b : s.bases) {
    if (b.target != to.target || b.stack != to.stack) continue;
    base.rows = b.choice.rows;
    base.steps = b.choice.steps;
    base.attention = b.choice.attention;
    base.adapters = b.choice.adapters;
    base.moments = b.choice.moments;
  }
  const auto own = std::find_if(s.bases.begin(), s.bases.end(),
                                [&](const ExperimentSearch::Base& b) { return b.target == to.target; });
  if (own != s.bases.end() && own->stack != to.stack) out.push_back({"train.stack", std::string(to_string(to.stack))});
  const std::vector<lint::Edit> chosen = edits(base, to, s.request.work);
  out.insert(out.end(), chosen.begin(), chosen.end());
  return out;
}

Json searched_json(const ExperimentSearch& s, size_t top) {
  Json candidates = Json::array(), changes = Json::array();
  for (size_t i = 0; i < shown(s, top); ++i)
    candidates.push_back(candidate_json(s, s.result.candidates[i],
                                        i < s.cells.size() ? s.cells[i].points : std::vector<formats::BenchPoint>()));
  for (const lint::Fix& fix : s.changes)
    changes.push_back({{"label", fix.label},
                       {"set", sets_json(fix.edits)},
                       {"slowdown", fix.slowdown ? Json(*fix.slowdown) : Json(nullptr)},
                       {"seconds_per_step", fix.outcome->seconds},
                       {"usd", positive_or_null(fix.outcome->usd)},
                       {"usd_per_million_tokens", positive_or_null(fix.outcome->usd_per_million_tokens)},
                       {"peak_bytes", fix.outcome->peak.value}});
  Json prices = Json::object();
  for (const ExperimentSearch::Base& base : s.bases) prices[base.target] = base.price;
  Json without = Json::array();
  for (const NoPlan& n : s.result.without_plan)
    without.push_back(
        {{"target", n.target}, {"stack", n.stack ? Json(to_string(*n.stack)) : Json(nullptr)}, {"reason", n.reason}});
  Json out{{"candidates", std::move(candidates)}, {"price", price_json(s.request)},
           {"prices", std::move(prices)},         {"without_plan", std::move(without)},
           {"evaluated", s.result.evaluated},     {"fitting", s.result.candidates.size()},
           {"seconds", s.result.seconds},         {"fits", s.fits},
           {"fewer_chips", fewer_chips_json(s)},  {"smallest_changes", std::move(changes)}};
  if (s.request.work == Work::serve) {
    out["simulated"] = s.cells.size();
    out["not_simulated"] = s.not_simulated.empty() ? Json(nullptr) : Json(s.not_simulated);
    out["diagnostics"] = to_json(s.found);
  }
  return out;
}

// Cells of a simulated sweep, beside those of the steady state: time of a request, rate within the SLO, price.
std::string sweep_cells(const Candidate& c, bool has_slo) {
  const auto cell = [](double value, int width) {
    return padded(std::isfinite(value) && value > 0 ? number_text(value, 3) : std::string("-"), width);
  };
  const SweepFigures none{}, &sweep = c.sweep ? *c.sweep : none;
  return cell(sweep.seconds, -11) + (has_slo ? cell(sweep.rate, -11) : "") + cell(sweep.usd, -11);
}

std::string searched_text(const ExperimentSearch& s, size_t top) {
  const Work work = s.request.work;
  const bool serves = work == Work::serve;
  size_t plan_width = 4;
  for (size_t i = 0; i < shown(s, top); ++i)
    plan_width = std::max(plan_width, to_text(s.result.candidates[i].choice, work).size());
  const int plan_column = -static_cast<int>(plan_width) - 2;
  const bool has_slo = !s.cells.empty() && !std::isnan(s.result.candidates.front().sweep->rate);
  std::string out = padded("target", -12) + padded("plan", plan_column);
  if (!s.cells.empty())
    out += padded("s/request", -11) + (has_slo ? padded("SLO req/s", -11) : "") + padded("sweep $/1M", -11);
  out += padded("s/step", -9) + padded("tokens/s", -10) + padded(serves ? "$/1M" : "$", -10) + padded("peak", -11) +
         "Pareto\n";
  for (size_t i = 0; i < shown(s, top); ++i) {
    const Candidate& c = s.result.candidates[i];
    out += padded(c.choice.target, -12) + padded(to_text(c.choice, work), plan_column) +
           (s.cells.empty() ? "" : sweep_cells(c, has_slo)) + padded(number_text(c.seconds, 3), -9) +
           padded(count_text(c.tokens_per_second), -10) +
           padded(c.usd > 0 ? number_text(c.usd, 4) : std::string("-"), -10) + padded(to_text(c.peak), -11) +
           (c.pareto ? "*" : "") + "\n";
  }
  out += counted(s.result.evaluated, "plan") + " predicted in " + to_text(Seconds(s.result.seconds)) + ", " +
         std::to_string(s.result.candidates.size()) + " fit\n";
  if (!s.cells.empty())
    out +=
        std::to_string(s.cells.size()) +
        " sweeps simulated, which rank the servers: s/request is the mean over their loads. s/step, tokens/s and $/1M "
        "are the steady state of one server\n";
  if (std::any_of(s.result.candidates.begin(), s.result.candidates.end(),
                  [](const Candidate& c) { return c.sweep && c.sweep->too_short; }))
    out +=
        "SLO req/s is a lower bound where the arrivals of higher rates ended before the server was full: raise "
        "sweep.num_prompts\n";
  if (!s.not_simulated.empty()) out += "Not all sweeps are simulated: " + s.not_simulated + "\n";
  if (const auto& fewer = s.fewer_chips)
    out += "Faster with " + std::to_string(fewer->chips) + " of the " + counted(fewer->of, "chip") + ": " +
           fewer->plan.choice.target + ", " + to_text(fewer->plan.choice, work) + ", " +
           number_text(fewer->plan.seconds, 3) + " s/step; " + kWholeTarget + "\n";
  for (const NoPlan& n : s.result.without_plan)
    out +=
        n.target +
        (n.stack ? " with " + std::string(to_string(*n.stack)) + ": no plan fits, because " : ": no plan, because ") +
        n.reason + "\n";
  for (const Diagnostic& d : s.found) out += line_text(d.problem);
  if (s.fits) return out;
  out += s.changes.empty() ? "The current plan does not fit, and none of the tried changes makes it fit\n"
                           : "The current plan does not fit; the smallest changes that make it fit:\n";
  for (const lint::Fix& fix : s.changes) out += "  " + fix.label + " (" + fix.cost + "): " + set_text(fix) + "\n";
  return out;
}

}  // namespace mw::plan
