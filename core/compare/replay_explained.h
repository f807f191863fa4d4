// SPDX-License-Identifier: Apache-2.0
// Explains what a replay changes: the servers between the recorded and the replayed one, which differ by one factor
// each, serve the recorded load, too. Every cause has its part of the 99th percentiles and of the cost. Not
// thread-safe.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/compare/replay.h"

namespace mw::compare {

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
