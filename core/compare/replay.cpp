// SPDX-License-Identifier: Apache-2.0
#include "core/compare/replay.h"

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "core/compare/recording.h"
#include "core/import/import_files.h"
#include "core/jobs/sweep_run.h"
#include "core/lint/fixes/diagnostics.h"
#include "core/plan/document/plan_request.h"
#include "core/serve/load/sweep_settings.h"

namespace mw::compare {
namespace {

void check(const std::stop_token& stop) {
  if (stop.stop_requested()) throw cancelled("the simulation");
}

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
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

formats::BenchSet replay(const Recording& recording, const experiment::Experiment& server,
                         const plan::PlanContext& context, const OnReplayed& progress, const std::stop_token& stop) {
  const experiment::Experiment e = simulated(server, recording);
  formats::BenchSet out = described_server(recording, e, context);
  auto from_steps = RecordedSteps::of(recording, e);
  if (from_steps) {  // make_backend() refuses the others
    const plan::Request request = plan::plan_request(e, context);
    lint::require_runnable(e, context, request, plan::predict(request));
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
    check(stop);
    if (recording.set.points[i].is_cold) parts.backend->restart();
    if (from_steps) from_steps->take_speed_of(recording.set.points[i], load);
    const serve::LoadResult played = parts.backend->run(
        load,
        [&](long done, long) {
          if (progress) progress(before + done, all);
        },
        stop);
    check(stop);
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
    out.notes.push_back(std::to_string(recording.summaries) + " points without recorded requests are omitted");
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

}  // namespace mw::compare
