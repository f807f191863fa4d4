// SPDX-License-Identifier: Apache-2.0
// Predicts recorded requests on another server (chips, mesh, KV type, caches) with the cost model. Not thread-safe. All
// functions throw Error, of kind cancelled after a stop.
#pragma once
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "core/compare/recording.h"
#include "core/plan/calibration/plan_context.h"
#include "core/plan/document/simulated_server.h"

namespace mw::compare {

using plan::simulated_point;

// Applies changes to the document. A change of target.id also replaces a mesh and stack that do not fit the new target,
// so a change of the mesh must follow it.
experiment::Experiment counterfactual(experiment::Experiment experiment,
                                      const std::vector<std::pair<std::string, std::string>>& changes,
                                      const plan::PlanContext& context);
// Describes the changed settings: "v6e-8, KV fp8"; empty if nothing changed.
std::string difference(const experiment::Experiment& recorded, const experiment::Experiment& server);

using OnReplayed = std::function<void(long requests, long total)>;
// Simulates every point of the recording with its requests at their intended times (closed loops: with the same number
// of users). The notes of the set list what could not be reproduced.
formats::BenchSet replay(const Recording& recording, const experiment::Experiment& server,
                         const plan::PlanContext& context, const OnReplayed& progress = {},
                         const std::stop_token& stop = {});
// Stores the result as a finished run of that server with source "predicted". `explained`: to_json() of its
// explanation, or null.
store::RunId record_replay(store::Store& store, const experiment::Experiment& server, formats::BenchSet predicted,
                           const Json& explained = {});

// Explains what a replay changes: the servers between the recorded and the replayed one, which differ by one factor
// each, serve the recorded load, too. Every cause has its part of the 99th percentiles and of the cost.
struct ReplayFigures {  // kUnknown if the source lacks the value
  double ttft_p99_ms = formats::kUnknown, tpot_p99_ms = formats::kUnknown, e2el_p99_ms = formats::kUnknown;
  double usd = formats::kUnknown;  // of the server while it serves the load
  double usd_per_million_output_tokens = formats::kUnknown;
};
ReplayFigures replay_figures(const formats::BenchPoint& point, double usd_per_hour);

struct ReplayCause {
  std::string name{};                  // "model's error", "chips and software", "KV type" ...
  std::string text{};                  // "target.id: v6e-8 -> 2xh100"
  std::vector<ReplayFigures> after{};  // by point
};
struct ReplayExplanation {
  formats::BenchSet predicted{};        // the result of replay()
  std::vector<ReplayFigures> before{};  // as recorded, by point; simulated if the recording has no results
  bool recorded = true;                 // whether `before` was recorded
  std::vector<ReplayCause> causes{};    // in their order; the last one ends at `predicted`
};
// `recorded_server`: recording.server, or the server of a workload. A factor whose server cannot be simulated, because
// the model does not fit, is joined with the next one. Throws like replay().
ReplayExplanation explain_replay(const Recording& recording, const experiment::Experiment& recorded_server,
                                 const experiment::Experiment& server, const plan::PlanContext& context,
                                 const OnReplayed& progress = {}, const std::stop_token& stop = {});

// [{input_len, request_rate, max_concurrency, recorded, before: {...}, causes: [{name, change, after, delta}]}], by
// point; figures as {ttft_p99_ms, tpot_p99_ms, e2el_p99_ms, usd, usd_per_million_output_tokens}, null if unknown.
Json to_json(const ReplayExplanation& explanation);

// The rows of tables: of each point its cells as {figures of a row, difference from the row above}.
struct ReplayRow {
  std::string point{}, name{}, text{};  // "512 tokens, 4/s"; "as recorded", a cause, or "as replayed"
  ReplayFigures figures{};
  std::optional<ReplayFigures> delta{};  // empty for the first and the last row of a point
};
std::vector<ReplayRow> replay_rows(const Json& explanation);  // of to_json(); throws Error for anything else

}  // namespace mw::compare
