// SPDX-License-Identifier: GPL-3.0-or-later
// `runs`: lists the runs of the store.
#include "app/output.h"
#include "app/subcommand.h"
#include "core/store/store.h"

namespace mw::app {
namespace {

Json run_json(const store::RunRow& run) {
  const auto number = [](const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); };
  return {{"id", run.id},
          {"name", run.name},
          {"created", run.created},
          {"state", to_string(run.state)},
          {"model", run.model},
          {"method", run.method},
          {"source", run.source},
          {"steps", run.steps_done},
          {"steps_total", run.steps_total},
          {"train_loss", number(run.train_loss)},
          {"eval_loss", number(run.eval_loss)},
          {"tokens", run.tokens},
          {"seconds", run.seconds},
          {"peak_bytes", run.peak.value},
          {"tags", run.tags},
          {"error", run.error}};
}

void print_runs(const std::vector<store::RunRow>& rows) {
  print_text("%-8s %-9s %-20s %11s %10s %10s %9s %10s  %s\n", "run", "state", "started (UTC)", "steps", "train/loss",
             "eval/loss", "time", "peak", "name");
  for (const store::RunRow& run : rows)
    print_text("%-8s %-9s %-20s %5ld/%-5ld %10s %10s %9s %10s  %s\n", run.id.c_str(),
               std::string(to_string(run.state)).c_str(), run.created.c_str(), run.steps_done, run.steps_total,
               run.train_loss ? number_text(*run.train_loss).c_str() : "-",
               run.eval_loss ? number_text(*run.eval_loss).c_str() : "-", to_text(Seconds(run.seconds)).c_str(),
               to_text(run.peak).c_str(), run.name.c_str());
}

int list_runs(const CommonOptions& common) {
  store::Store store(common.runs_folder);
  store.recover();
  const std::vector<store::RunRow> rows = store.list();
  if (common.output == Output::json) {
    Json all = Json::array();
    for (const store::RunRow& run : rows) all.push_back(run_json(run));
    print_json({{"rows", all}, {"warnings", Json::array()}});
    return 0;
  }
  print_runs(rows);
  if (rows.empty()) print_text("no runs yet in %s\n", store.folder().c_str());
  return 0;
}

}  // namespace

Subcommand runs_subcommand() {
  return {.name = "runs",
          .help = "List the runs of the store",
          .add_options = [](CLI::App&, CommonOptions&) {},
          .run = list_runs};
}

}  // namespace mw::app
