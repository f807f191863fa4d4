// SPDX-License-Identifier: GPL-3.0-or-later
// `replay`: simulates recorded requests on another target, mesh, KV type or cache policy. Its results are predictions.
#include <CLI/CLI.hpp>
#include <cmath>

#include "app/load_inputs.h"
#include "app/output.h"
#include "app/progress.h"
#include "app/subcommand.h"
#include "core/base/files.h"
#include "core/compare/replay.h"
#include "core/experiment/bind.h"

namespace mw::app {
namespace {

namespace fs = std::filesystem;

struct ReplayOptions {
  std::string recording;                      // run id or file
  std::string target, kv_dtype;               // replace those of the recording; empty: unchanged
  std::optional<std::string> prefix_cache{};  // "on" or "off"
  fs::path out{};                             // file for the predicted results
};

compare::Recording read_recording(const CommonOptions& common, const std::string& name) {
  const store::Store store(common.runs_folder);
  if (store.find(name)) return compare::recording_of(compare::compared(store, name));
  if (is_file(name)) return compare::recording_of(fs::path(name));
  throw unknown_run(store.folder(), name, "a run id listed by `runs`, or a file of results or of requests");
}

// The server of the recording, or of the experiment file, with the changes of the command line.
experiment::Experiment replay_server(const CommonOptions& common, const ReplayOptions& options,
                                     const compare::Recording& recording, const hardware::Catalogue& catalogue) {
  experiment::Experiment server = common.file.empty() ? recording.server : experiment::Experiment::load(common.file);
  apply_sets(server, common.sets);
  if (const experiment::ModelSection model = experiment::bind_valid(server).model;
      model.id.empty() && model.path.empty())
    throw Error(
        {.id = "REPLAY",
         .message = "the recording does not name the model that was served",
         .place = "model.id",
         .expected = "an experiment file, or --set model.id=...",
         .fix = "for example: meshwright replay " + options.recording + " resources/examples/paper-serve-v6e-8.json"});
  std::vector<std::pair<std::string, std::string>> changes;
  if (!options.target.empty()) changes.emplace_back("target.id", options.target);
  if (!options.kv_dtype.empty()) changes.emplace_back("serve.kv_dtype", options.kv_dtype);
  if (options.prefix_cache) changes.emplace_back("serve.prefix_cache", options.prefix_cache == "on" ? "true" : "false");
  server = compare::counterfactual(std::move(server), changes, catalogue);
  apply_sets(server, common.sets);  // again: a change of target resets the mesh
  return server;
}

void print_replay(const formats::BenchSet& recorded, const formats::BenchSet& predicted) {
  print_text("%s\n%7s %9s %9s  %21s  %21s  %21s\n%7s %9s %9s", predicted.name.c_str(), "input", "rate", "requests",
             "TTFT p50, ms", "TPOT p50, ms", "output tokens/s", "tokens", "req/s", "");
  for (int i = 0; i < 3; ++i) print_text("  %10s %10s", "recorded", "predicted");
  print_text("\n");
  for (size_t i = 0; i < predicted.points.size(); ++i) {
    const formats::BenchPoint &was = recorded.points[i], &is = predicted.points[i];
    const std::string rate = std::isnan(was.request_rate) && was.max_concurrency > 0
                                 ? std::to_string(was.max_concurrency) + " users"
                                 : number_or_dash(was.request_rate);
    print_text("%7d %9s %9ld  %10s %10s  %10s %10s  %10s %10s  %s\n", is.input_len, rate.c_str(), is.completed,
               number_or_dash(was.ttft.median).c_str(), number_or_dash(is.ttft.median).c_str(),
               number_or_dash(was.tpot.median).c_str(), number_or_dash(is.tpot.median).c_str(),
               number_or_dash(was.output_throughput).c_str(), number_or_dash(is.output_throughput).c_str(),
               is.verdict.c_str());
  }
  for (const std::string& note : predicted.notes) print_text("%s\n", note.c_str());
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
}

formats::BenchSet simulate(const CommonOptions& common, const compare::Recording& recording,
                           const experiment::Experiment& server, const hardware::Catalogue& catalogue) {
  ProgressLine line;
  return compare::replay(
      recording, server, catalogue,
      [&](long done, long total) {
        line.update("replaying  " + std::to_string(done) + " of " + std::to_string(total) + " requests");
      },
      common.stop);
}

int run_replay(const CommonOptions& common, const ReplayOptions& options) {
  const compare::Recording recording = read_recording(common, options.recording);
  const hardware::Catalogue catalogue = load_catalogue();
  const experiment::Experiment server = replay_server(common, options, recording, catalogue);
  const formats::BenchSet predicted = simulate(common, recording, server, catalogue);
  if (!options.out.empty())
    write_file_atomically(
        options.out,
        formats::to_json(predicted, formats::Detail::requests).dump(1, ' ', false, Json::error_handler_t::replace));
  store::Store store(common.runs_folder);
  const store::RunId run = compare::record_replay(store, server, predicted);
  if (common.output == Output::json) {
    print_json({{"run", run},
                {"name", predicted.name},
                {"points", replay_points(predicted)},
                {"recorded", replay_points(recording.set)},
                {"notes", predicted.notes}});
  } else {
    print_error("%s: predicted\n", run.c_str());
    print_replay(recording.set, predicted);
  }
  return 0;
}

}  // namespace

Subcommand replay_subcommand() {
  return make_subcommand("replay", "Simulate recorded requests on another target, mesh, KV type or cache policy",
                         add_replay_options, run_replay);
}

}  // namespace mw::app
