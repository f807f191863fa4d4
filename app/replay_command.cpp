// SPDX-License-Identifier: GPL-3.0-or-later
// `replay`: recorded requests served by another target, mesh, KV type or cache policy; what that gives is predicted.
#include <cmath>
#include <cstdio>

#include "app/commands.h"
#include "app/progress_line.h"
#include "app/result_files.h"
#include "core/base/files.h"
#include "core/base/units.h"
#include "core/compare/compared_files.h"
#include "core/compare/replay.h"

namespace mw::app {
namespace {

namespace fs = std::filesystem;

compare::Recording read(const Common& common, const std::string& what) {
  const store::Store store(common.runs_folder);
  if (store.find(what)) return compare::recording_of(compare::compared(store, what));
  if (is_file(what)) return compare::recording_of(fs::path(what));
  throw Error({.id = "RUN-UNKNOWN",
               .message = "no run or file has this name",
               .file = store.folder().string(),
               .found = what,
               .expected = "an id as `runs` lists it, or a file of results or of requests"});
}

// The recording's own server, or the one of the file, with what was asked for changed.
experiment::Experiment server_of(const Common& common, const ReplayArgs& args, const compare::Recording& recording,
                                 const hardware::Catalogue& catalogue) {
  experiment::Experiment server = common.file.empty() ? recording.server : experiment::Experiment::load(common.file);
  apply_sets(server, common.sets);
  if (server.string("model.id").empty() && server.path("model.path").empty())
    throw Error(
        {.id = "REPLAY",
         .message = "the recording does not say which model was served",
         .place = "model.id",
         .expected = "an experiment file, or --set model.id=...",
         .fix = "for example: meshwright replay " + args.recording + " resources/examples/paper-serve-v6e-8.json"});
  std::vector<std::pair<std::string, std::string>> changes;
  if (!args.target.empty()) changes.emplace_back("target.id", args.target);
  if (!args.kv_dtype.empty()) changes.emplace_back("serve.kv_dtype", args.kv_dtype);
  if (!args.prefix_cache.empty())
    changes.emplace_back("serve.prefix_cache", args.prefix_cache == "on" ? "true" : "false");
  server = compare::counterfactual(std::move(server), changes, catalogue);
  apply_sets(server, common.sets);  // again: another target takes its mesh along
  return server;
}

void print(const formats::BenchSet& recorded, const formats::BenchSet& predicted) {
  print_text("%s\n%7s %9s %9s  %21s  %21s  %21s\n%7s %9s %9s", predicted.name.c_str(), "input", "rate", "requests",
             "TTFT p50, ms", "TPOT p50, ms", "output tokens/s", "tokens", "req/s", "");
  for (int i = 0; i < 3; ++i) print_text("  %10s %10s", "recorded", "predicted");
  print_text("\n");
  for (size_t i = 0; i < predicted.points.size(); ++i) {
    const formats::BenchPoint &was = recorded.points[i], &is = predicted.points[i];
    const std::string rate = std::isnan(was.request_rate) && was.max_concurrency > 0
                                 ? std::to_string(was.max_concurrency) + " users"
                                 : figure(was.request_rate);
    print_text("%7d %9s %9ld  %10s %10s  %10s %10s  %10s %10s  %s\n", is.input_len, rate.c_str(), is.completed,
               figure(was.ttft.median).c_str(), figure(is.ttft.median).c_str(), figure(was.tpot.median).c_str(),
               figure(is.tpot.median).c_str(), figure(was.output_throughput).c_str(),
               figure(is.output_throughput).c_str(), is.verdict.c_str());
  }
  for (const std::string& note : predicted.notes) print_text("%s\n", note.c_str());
}

Json points_of(const formats::BenchSet& set) {
  Json points = Json::array();
  for (const auto& p : set.points) points.push_back(formats::to_json(p, formats::Detail::summary));
  return points;
}

}  // namespace

int replay_command(const Common& common, const ReplayArgs& args) {
  const compare::Recording recording = read(common, args.recording);
  const hardware::Catalogue catalogue = load_catalogue();
  const experiment::Experiment server = server_of(common, args, recording, catalogue);
  ProgressLine line;
  const formats::BenchSet predicted = compare::replay(
      recording, server, catalogue,
      [&](long done, long of) {
        line.update("replaying  " + std::to_string(done) + " of " + std::to_string(of) + " requests");
      },
      common.stop);
  line.clear();
  if (!args.out.empty())
    write_file_atomically(
        args.out,
        formats::to_json(predicted, formats::Detail::requests).dump(1, ' ', false, Json::error_handler_t::replace));
  store::Store store(common.runs_folder);
  const store::RunId run = compare::record_replay(store, server, predicted);
  if (common.output == Output::json) {
    print_json({{"run", run},
                {"name", predicted.name},
                {"points", points_of(predicted)},
                {"recorded", points_of(recording.set)},
                {"notes", predicted.notes}});
  } else {
    line.message(run + ": predicted");
    print(recording.set, predicted);
  }
  return 0;
}

}  // namespace mw::app
