// SPDX-License-Identifier: Apache-2.0
#include "core/compare/replay.h"

#include <algorithm>
#include <cmath>

#include "core/base/counted.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/compare/attribution.h"
#include "core/import/import_files.h"
#include "core/jobs/sweep_run.h"
#include "core/plan/document/diagnostics.h"
#include "core/plan/document/plan_request.h"
#include "core/serve/load/sweep.h"
#include "core/views/sweep_view.h"

namespace mw::compare {
namespace {

constexpr std::uint64_t kSharedSeed = 0x5eed;

// Without recorded arrival times, requests arrive evenly at the offered rate.
std::vector<formats::RequestResult> in_order(const formats::BenchPoint& point, std::vector<std::string>& notes) {
  std::vector<formats::RequestResult> requests;
  for (const formats::RequestResult& r : point.requests)
    if (r.completed() && r.prompt_tokens > 0 && r.output_tokens > 0) requests.push_back(r);
  std::stable_sort(requests.begin(), requests.end(), [](const auto& a, const auto& b) {
    return std::pair(a.intended_s, a.sent_s) < std::pair(b.intended_s, b.sent_s);
  });
  if (const size_t lost = point.requests.size() - requests.size(); lost > 0)
    notes.push_back(std::to_string(lost) + " failed requests are omitted");
  const bool timed = requests.back().intended_s > requests.front().intended_s;
  if (!timed && requests.size() > 1 && std::isfinite(point.request_rate) && point.request_rate > 0) {
    for (size_t i = 0; i < requests.size(); ++i) requests[i].intended_s = static_cast<double>(i) / point.request_rate;
    notes.push_back("arrival times are not recorded; requests arrive evenly at " + number_text(point.request_rate) +
                    "/s");
  }
  return requests;
}

serve::Load load_of(const Recording& recording, size_t at, std::vector<std::string>& notes) {
  const formats::BenchPoint& point = recording.set.points[at];
  const bool again = recording.set.condition("prompts") == "replayed";
  const bool closed = std::isnan(point.request_rate) && point.max_concurrency > 0;
  if (point.prefix_hits > 0 && !again && recording.shared_prefix == 0)
    notes.push_back(
        "the recorded server found " + number_text(100 * point.prefix_hits, 3) +
        " % of the prompts in its prefix cache; prompt texts are not recorded, so the replay uses new prompts");
  serve::Load load;
  options::LoadSettings& s = load.settings;
  s.arrival = closed ? options::Arrival::closed : options::Arrival::recorded;
  s.request_rate = point.request_rate;
  s.concurrency = point.max_concurrency;
  s.burstiness = point.burstiness;
  s.input_len = point.input_len, s.output_len = point.output_len;
  s.lengths = options::LengthDistribution::recorded;
  s.prompts = again ? options::PromptMode::replayed : options::PromptMode::salted;
  for (const formats::RequestResult& r : in_order(point, notes)) {
    const std::uint64_t index = load.requests.size() + 1;
    load.requests.push_back(
        {.id = static_cast<std::int64_t>(load.requests.size()),
         .at_s = closed ? 0 : r.intended_s,
         .prompt_len = r.prompt_tokens,
         .output_len = r.output_tokens,
         // Consecutive integers are valid seeds, because they are hashed.
         .prompt_seed = index + (again ? 0 : (at + 1) << 32),
         .shared_seed = kSharedSeed +
                        serve::drawn_prefix(kSharedSeed, static_cast<std::int64_t>(index), recording.shared_prefixes),
         .shared = std::min(recording.shared_prefix, r.prompt_tokens)});
  }
  s.num_prompts = static_cast<int>(load.requests.size());
  return load;
}

// Creates the simulated server, with room for every recorded request if the document sets no limit.
experiment::Experiment simulated(experiment::Experiment e, const Recording& recording) {
  e.set_value("kind", "serve");
  e.set_value("sweep.backend", "model");
  long long longest = 0;
  for (const auto& p : recording.set.points)
    for (const auto& r : p.requests) longest = std::max<long long>(longest, r.prompt_tokens + r.output_tokens);
  const options::Serving serve = e.config().serve;
  if (!serve.sets_max_model_len && serve.max_model_len < longest) e.set_value("serve.max_model_len", longest);
  return e;
}

// Returns a set without points that describes the server and the load of the recording.
formats::BenchSet described_server(const Recording& recording, const experiment::Experiment& e,
                                   const plan::PlanContext& context) {
  formats::BenchSet set = serve::sweep_facts(e.config(), context.catalogue);
  const std::string what = difference(recording.server, e);
  set.name = recording.set.name + " replayed" + (what.empty() ? "" : ": " + what);
  set.source = "requests of " + (recording.set.source.empty() ? recording.set.name : recording.set.source);
  for (const char* key :
       {"arrival", "burstiness", "concurrency", "lengths", "prompts", "num_prompts", "output_len", "seed"}) {
    set.conditions.erase(key);
    if (const auto recorded = recording.set.conditions.find(key); recorded != recording.set.conditions.end())
      set.conditions.insert(*recorded);
  }
  return set;
}

std::string mesh_text(const mesh::Mesh& mesh) {
  std::string text;
  for (const mesh::MeshAxis& axis : mesh.axes)
    if (axis.size > 1) text += (text.empty() ? "" : " ") + axis.name + " " + std::to_string(axis.size);
  return text;
}

}  // namespace

experiment::Experiment counterfactual(experiment::Experiment e,
                                      const std::vector<std::pair<std::string, std::string>>& changes,
                                      const plan::PlanContext& context) {
  for (const auto& [key, value] : changes)
    if (key == "target.id")
      plan::retarget(e, value, context);
    else
      e.set(key, value);
  return e;
}

std::string difference(const experiment::Experiment& recorded, const experiment::Experiment& server) {
  const experiment::BoundExperiment before = recorded.valid_values(), after = server.valid_values();
  std::vector<std::string> parts;
  if (after.model.id != before.model.id && !after.model.id.empty()) parts.push_back(after.model.id);
  if (after.target.id != before.target.id) parts.push_back(after.target.id);
  if (const std::string mesh = mesh_text(after.mesh); mesh != mesh_text(before.mesh) && !mesh.empty())
    parts.push_back(mesh);
  if (after.serve.kv_dtype != before.serve.kv_dtype)
    parts.push_back("KV " + std::string(to_string(after.serve.kv_dtype)));
  if (after.serve.prefix_cache != before.serve.prefix_cache)
    parts.push_back(after.serve.prefix_cache ? "prefix cache" : "no prefix cache");
  return joined(parts);
}

formats::BenchSet replay(const Recording& recording, const experiment::Experiment& server,
                         const plan::PlanContext& context, const OnReplayed& progress, const std::stop_token& stop) {
  const experiment::Experiment e = simulated(server, recording);
  formats::BenchSet out = described_server(recording, e, context);
  auto from_steps = RecordedSteps::of(recording, e);
  if (from_steps) {  // make_backend() refuses the others
    const plan::Request request = plan::plan_request(e, context);
    plan::require_runnable(e, context, request, plan::predict(request));
  }
  jobs::BackendParts parts = from_steps ? from_steps->parts() : jobs::make_backend(e, context, [](auto) {});
  for (const auto& [key, value] : parts.conditions) out.conditions[key] = value;
  out.notes = parts.notes;
  const options::Slo slo = e.config().sweep.slo;
  long before = 0;
  const long all = recording.requests();
  for (size_t i = 0; i < recording.set.points.size(); ++i) {
    std::vector<std::string> notes;
    const serve::Load load = load_of(recording, i, notes);
    plan::check_stop(stop);
    if (recording.set.points[i].is_cold) parts.backend->restart();
    if (from_steps) from_steps->take_speed_of(recording.set.points[i], load);
    const serve::LoadResult played = parts.backend->run(
        load,
        [&](long done, long) {
          if (progress) progress(before + done, all);
        },
        stop);
    plan::check_stop(stop);
    out.points.push_back(serve::summarise(load, played, slo));
    // Uses the load of the recording, so that both points match in a comparison.
    out.points.back().request_rate = recording.set.points[i].request_rate;
    for (const std::string& note : notes) {
      std::string& text = out.points.back().note;
      text += (text.empty() ? "" : "; ") + note;
      if (std::find(out.notes.begin(), out.notes.end(), note) == out.notes.end()) out.notes.push_back(note);
    }
    before += static_cast<long>(recording.set.points[i].requests.size());
    if (progress) progress(before, all);
  }
  if (recording.summaries > 0)
    out.notes.push_back(counted(recording.summaries, "point") + " without recorded requests are omitted");
  return out;
}

store::RunId record_replay(store::Store& store, const experiment::Experiment& server, formats::BenchSet predicted,
                           const Json& explained) {
  experiment::Experiment document = server;
  const experiment::Experiment loads = importing::experiment_of(predicted);
  for (const char* key : {"kind", "name", "sweep.request_rates", "sweep.input_lens"})
    if (loads.has(key)) document.set_value(key, loads.value(key));
  document.set_value("sweep.backend", "model");
  return importing::record_set(store, document, std::move(predicted), "predicted",
                               explained.is_null() ? Json() : Json{{"explained", explained}});
}

namespace {

constexpr std::pair<const char*, double ReplayFigures::*> kFigures[] = {
    {"ttft_p99_ms", &ReplayFigures::ttft_p99_ms},
    {"tpot_p99_ms", &ReplayFigures::tpot_p99_ms},
    {"e2el_p99_ms", &ReplayFigures::e2el_p99_ms},
    {"usd", &ReplayFigures::usd},
    {"usd_per_million_output_tokens", &ReplayFigures::usd_per_million_output_tokens}};

std::vector<ReplayFigures> figures_of(const formats::BenchSet& set) {
  std::vector<ReplayFigures> out;
  for (const formats::BenchPoint& point : set.points) out.push_back(replay_figures(point, set.usd_per_hour));
  return out;
}

ReplayFigures difference_of(const ReplayFigures& after, const ReplayFigures& before) {
  ReplayFigures out;
  for (const auto& [key, figure] : kFigures) out.*figure = after.*figure - before.*figure;
  return out;
}

Json figures_json(const ReplayFigures& figures) {
  Json out;
  for (const auto& [key, figure] : kFigures) out[key] = or_null(figures.*figure);
  return out;
}

ReplayFigures figures_from(const Json& json) {
  ReplayFigures out;
  for (const auto& [key, figure] : kFigures)
    if (const Json* value = find_member(json, key); value && value->is_number()) out.*figure = value->get<double>();
  return out;
}

// Settings of the load and names do not matter: the load is that of the recording.
bool is_same_server(const experiment::Experiment& a, const experiment::Experiment& b) {
  Json x = a.json(), y = b.json();
  for (Json* json : {&x, &y})
    for (const char* key : {"sweep", "name", "note", "kind"}) json->erase(key);
  return x == y;
}

}  // namespace

ReplayFigures replay_figures(const formats::BenchPoint& point, double usd_per_hour) {
  return {.ttft_p99_ms = point.ttft.percentile(99),
          .tpot_p99_ms = point.tpot.percentile(99),
          .e2el_p99_ms = point.e2el.percentile(99),
          .usd = usd_per_hour * point.duration_s / 3600,
          .usd_per_million_output_tokens = views::usd_per_million(usd_per_hour, point.output_throughput)};
}

ReplayExplanation explain_replay(const Recording& recording, const experiment::Experiment& recorded_server,
                                 const experiment::Experiment& server, const plan::PlanContext& context,
                                 const OnReplayed& progress, const std::stop_token& stop) {
  std::vector<FactorChange> changes = factor_changes(recorded_server, server);
  std::erase_if(changes, [](const FactorChange& change) { return change.name == kLoadFactor; });
  const long each = recording.requests(), all = each * (static_cast<long>(changes.size()) + 2);
  long before = 0;
  const auto simulate = [&](const experiment::Experiment& e) {
    formats::BenchSet set = replay(
        recording, e, context,
        [&](long done, long) {
          if (progress) progress(std::min(before + done, all), all);
        },
        stop);
    before += each;
    return set;
  };
  ReplayExplanation out{.predicted = simulate(server)};
  const std::vector<ReplayFigures> last = figures_of(out.predicted);
  std::vector<ReplayFigures> now = figures_of(simulate(recorded_server));
  out.before = figures_of(recording.set);
  out.recorded = std::any_of(out.before.begin(), out.before.end(),
                             [](const ReplayFigures& f) { return std::isfinite(f.e2el_p99_ms); });
  if (out.recorded)
    out.causes.push_back({"model's error", "recorded -> simulated on the recorded server", now});
  else
    out.before = now;
  std::string name, text;  // of the factors since the last cause
  const auto add = [&](std::vector<ReplayFigures> figures) {
    out.causes.push_back({std::exchange(name, {}), std::exchange(text, {}), std::move(figures)});
  };
  for (const FactorChange& change : changes) {
    name += (name.empty() ? "" : ", ") + change.name;
    text += (text.empty() ? "" : "; ") + change.text;
    if (is_same_server(change.server, server)) {
      add(last);
      continue;
    }
    try {
      add(figures_of(simulate(change.server)));
    } catch (const Error& error) {
      if (error.kind() == Error::Kind::cancelled) throw;
    }
  }
  if (!name.empty()) add(last);
  const std::vector<ReplayFigures>& reached = out.causes.empty() ? out.before : out.causes.back().after;
  for (size_t i = 0; i < last.size(); ++i)
    if (figures_json(reached[i]) != figures_json(last[i])) {
      name = "the rest", text = "keys that belong to no factor";
      add(last);
      break;
    }
  if (progress) progress(all, all);
  return out;
}

Json to_json(const ReplayExplanation& explanation) {
  Json points = Json::array();
  for (size_t i = 0; i < explanation.predicted.points.size(); ++i) {
    const formats::BenchPoint& p = explanation.predicted.points[i];
    Json point{{"input_len", p.input_len},
               {"load", views::load_text(p)},
               {"recorded", explanation.recorded},
               {"before", figures_json(explanation.before[i])},
               {"causes", Json::array()}};
    const ReplayFigures* previous = &explanation.before[i];
    for (const ReplayCause& cause : explanation.causes) {
      point["causes"].push_back({{"name", cause.name},
                                 {"change", cause.text},
                                 {"after", figures_json(cause.after[i])},
                                 {"delta", figures_json(difference_of(cause.after[i], *previous))}});
      previous = &cause.after[i];
    }
    points.push_back(std::move(point));
  }
  return points;
}

std::vector<ReplayRow> replay_rows(const Json& explanation) {
  std::vector<ReplayRow> rows;
  for (const Json& point : explanation) {
    const std::string name = counted(int_member(point, "input_len", "explained"), "token") + ", " +
                             string_member(point, "load", "explained");
    const Json* before = find_member(point, "before");
    const Json* causes = find_member(point, "causes");
    if (!before || !causes) throw Error("REPLAY", "the explanation of the replay is not complete", {.place = name});
    const Json* recorded = find_member(point, "recorded");
    const bool is_recorded = recorded && recorded->is_boolean() && recorded->get<bool>();
    rows.push_back({.point = name,
                    .name = is_recorded ? "as recorded" : "as recorded, simulated",
                    .figures = figures_from(*before)});
    for (const Json& cause : *causes) {
      const Json *after = find_member(cause, "after"), *delta = find_member(cause, "delta");
      rows.push_back({.point = name,
                      .name = string_member(cause, "name", "explained"),
                      .text = string_member(cause, "change", "explained"),
                      .figures = after ? figures_from(*after) : ReplayFigures(),
                      .delta = delta ? figures_from(*delta) : ReplayFigures()});
    }
    rows.push_back({.point = name, .name = "as replayed", .figures = rows.back().figures});
  }
  return rows;
}

}  // namespace mw::compare
