// SPDX-License-Identifier: GPL-3.0-or-later
// `replay`: simulates recorded requests on another target, mesh, KV type or cache policy. Its results are predictions.
#include <CLI/CLI.hpp>
#include <cmath>

#include "app/load_inputs.h"
#include "app/output.h"
#include "app/subcommand.h"
#include "core/base/counted.h"
#include "core/base/files.h"
#include "core/base/units.h"
#include "core/compare/replay.h"
#include "core/experiment/bound_experiment.h"
#include "core/present/table.h"

namespace mw::app {
namespace {

namespace fs = std::filesystem;

struct ReplayOptions {
  std::string recording;                      // run id or file
  std::string target, kv_dtype;               // replace those of the recording; empty: unchanged
  std::optional<std::string> prefix_cache{};  // "on" or "off"
  fs::path out{};                             // file for the predicted results
  bool explains = false;
};

compare::Recording read_recording(const CommonOptions& common, const std::string& name) {
  const store::Store store(common.runs_folder);
  if (const auto row = store.find(run_named(store, name)))
    return compare::recording_of(compare::compared(store, row->id));
  if (is_file(name)) return compare::recording_of(fs::path(name));
  throw unknown_run(store.folder(), name, "a run id listed by `runs`, or a file of results or of requests");
}

bool names_model(const experiment::Experiment& server) {
  const options::Model model = server.valid_values().model;
  return !model.id.empty() || !model.path.empty();
}

// The server that the recording is of, as far as it is known: that of a workload is the one before the options.
experiment::Experiment recorded_server(const CommonOptions& common, const compare::Recording& recording) {
  if (names_model(recording.server)) return recording.server;
  experiment::Experiment server = common.file.empty() ? recording.server : experiment::Experiment::load(common.file);
  apply_sets(server, common.sets);
  return server;
}

// The server of the recording, or of the experiment file, with the changes of the command line.
experiment::Experiment replay_server(const CommonOptions& common, const ReplayOptions& options,
                                     const compare::Recording& recording, const plan::PlanContext& context) {
  experiment::Experiment server = common.file.empty() ? recording.server : experiment::Experiment::load(common.file);
  apply_sets(server, common.sets);
  if (!names_model(server))
    throw Error(
        "REPLAY", "the recording does not name the model that was served",
        {.place = "model.id",
         .expected = "an experiment file, or --set model.id=...",
         .fix = "for example: meshwright replay " + options.recording + " resources/examples/paper-serve-v6e-8.json"});
  std::vector<std::pair<std::string, std::string>> changes;
  if (!options.target.empty()) changes.emplace_back("target.id", options.target);
  if (!options.kv_dtype.empty()) changes.emplace_back("serve.kv_dtype", options.kv_dtype);
  if (options.prefix_cache) changes.emplace_back("serve.prefix_cache", options.prefix_cache == "on" ? "true" : "false");
  server = compare::counterfactual(std::move(server), changes, context);
  apply_sets(server, common.sets);  // again: a change of target resets the mesh
  return server;
}

void print_replay(const formats::BenchSet& recorded, const formats::BenchSet& predicted) {
  print_text("%s\n", predicted.name.c_str());
  present::Table table = present::figure_table({"input tokens", "requests/s", "requests", "TTFT p50, recorded (ms)",
                                                "predicted (ms)", "TPOT p50, recorded (ms)", "predicted (ms)",
                                                "output, recorded (tokens/s)", "predicted (tokens/s)"});
  table.columns.push_back({.title = "verdict", .align = present::Align::left});
  for (size_t i = 0; i < predicted.points.size(); ++i) {
    const formats::BenchPoint &was = recorded.points[i], &is = predicted.points[i];
    const std::string rate = std::isnan(was.request_rate) && was.max_concurrency > 0
                                 ? counted(was.max_concurrency, "user")
                                 : number_or_dash(was.request_rate);
    table.add({std::to_string(is.input_len), rate, std::to_string(is.completed), number_or_dash(was.ttft.median),
               number_or_dash(is.ttft.median), number_or_dash(was.tpot.median), number_or_dash(is.tpot.median),
               number_or_dash(was.output_throughput), number_or_dash(is.output_throughput), serve::verdict_text(is)});
  }
  print_text("%s", present::to_text(table).c_str());
  for (const std::string& note : predicted.notes) print_text("%s\n", note.c_str());
}

// "58.1 (-12.3)"
std::string figure_text(double value, const std::optional<double>& delta) {
  std::string text = number_or_dash(value);
  if (delta && std::isfinite(*delta)) text += std::string(*delta >= 0 ? " (+" : " (") + number_text(*delta, 3) + ")";
  return text;
}

void print_explanation(const Json& explained) {
  std::string point;
  present::Table table;
  const auto print = [&] {
    if (!point.empty()) print_text("\n%s, by cause (predicted)\n%s", point.c_str(), present::to_text(table).c_str());
  };
  for (const compare::ReplayRow& row : compare::replay_rows(explained)) {
    if (row.point != point) {
      print();
      point = row.point;
      table = present::figure_table(
          {"cause", "TTFT p99 (ms)", "TPOT p99 (ms)", "E2E p99 (ms)", "USD", "USD per 1M tokens"});
      table.columns.push_back({.title = "change", .align = present::Align::left});
    }
    using F = compare::ReplayFigures;
    const auto text = [&](double F::*figure) {
      return figure_text(row.figures.*figure, row.delta ? std::optional((*row.delta).*figure) : std::nullopt);
    };
    table.add({row.name, text(&F::ttft_p99_ms), text(&F::tpot_p99_ms), text(&F::e2el_p99_ms), text(&F::usd),
               text(&F::usd_per_million_output_tokens), row.text});
  }
  print();
}

Json replay_points(const formats::BenchSet& set) {
  Json points = Json::array();
  for (const auto& p : set.points) points.push_back(formats::to_json(p, formats::Detail::summary));
  return points;
}

void add_replay_options(CLI::App& command, CommonOptions& common, ReplayOptions& options) {
  command.add_option("recording", options.recording, "Run of the store, results with details, or a file of requests")
      ->required();
  add_file_and_set_options(command, common, "Experiment file of the server, instead of the recording's own",
                           FileArgument::optional);
  command.add_option("--target", options.target, "Hardware of the server: v6e-8, 2xh100 ...");
  command.add_option("--kv-dtype", options.kv_dtype, "Data type of the KV cache");
  command.add_option("--prefix-cache", options.prefix_cache, "Whether the server has a prefix cache")
      ->check(CLI::IsMember({"on", "off"}));
  command.add_option("--out", options.out,
                     "File for the predicted results with their requests (import and compare read it)");
  command.add_flag("--explain", options.explains,
                   "Explain the difference from the recording by cause, in 99th percentiles and dollars");
}

struct Replayed {
  formats::BenchSet predicted;
  Json explained;  // null without --explain
};
Replayed simulate(const CommonOptions& common, const ReplayOptions& options, const compare::Recording& recording,
                  const experiment::Experiment& server, const plan::PlanContext& context) {
  ProgressLine line;
  const auto progress = [&](long done, long total) {
    line.update("replaying  " + std::to_string(done) + " of " + counted(total, "request"));
  };
  if (!options.explains) return {compare::replay(recording, server, context, progress, common.stop), Json()};
  compare::ReplayExplanation explanation =
      compare::explain_replay(recording, recorded_server(common, recording), server, context, progress, common.stop);
  Json json = to_json(explanation);
  return {std::move(explanation.predicted), std::move(json)};
}

int run_replay(const CommonOptions& common, const ReplayOptions& options) {
  const compare::Recording recording = read_recording(common, options.recording);
  const plan::PlanContext context = load_context();
  const experiment::Experiment server = replay_server(common, options, recording, context);
  const auto [predicted, explained] = simulate(common, options, recording, server, context);
  if (!options.out.empty())
    write_file_atomically(options.out, dump_utf8(formats::to_json(predicted, formats::Detail::requests), 1));
  store::Store store(common.runs_folder);
  const store::RunId run = compare::record_replay(store, server, predicted, explained);
  if (common.output == Output::json) {
    Json json{{"run", run},
              {"name", predicted.name},
              {"points", replay_points(predicted)},
              {"recorded", replay_points(recording.set)},
              {"notes", predicted.notes}};
    if (options.explains) json["explained"] = explained;
    print_json(json);
  } else {
    print_error("%s: predicted\n", run.c_str());
    print_replay(recording.set, predicted);
    if (options.explains) print_explanation(explained);
  }
  return 0;
}

}  // namespace

Subcommand replay_subcommand() {
  return make_subcommand("replay", "Simulate recorded requests on another target, mesh, KV type or cache policy",
                         add_replay_options, run_replay);
}

}  // namespace mw::app
