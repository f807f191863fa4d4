// SPDX-License-Identifier: GPL-3.0-or-later
// `runs`: lists the runs of the store.
#include "app/load_inputs.h"
#include "app/output.h"
#include "app/subcommand.h"
#include "core/data/dataset/row_cache.h"
#include "core/plan/experiment/costing.h"
#include "core/present/table.h"

namespace mw::app {
namespace {

Json run_json(const store::RunRow& run, const std::optional<plan::RunCost>& cost) {
  return {{"id", run.id},
          {"name", run.name},
          {"created", run.created},
          {"state", to_string(run.state)},
          {"model", run.model},
          {"method", run.method},
          {"source", run.source},
          {"steps", run.steps_done},
          {"steps_total", run.steps_total},
          {"train_loss", or_null(run.train_loss)},
          {"eval_loss", or_null(run.eval_loss)},
          {"tokens", run.tokens},
          {"seconds", run.seconds},
          {"peak_bytes", run.peak.value},
          {"usd", cost ? Json(cost->usd) : Json(nullptr)},
          {"usd_is_predicted", cost ? Json(cost->is_predicted) : Json(nullptr)},
          {"tags", run.tags},
          {"error", run.error}};
}

void print_runs(const std::vector<store::RunRow>& rows, const std::vector<std::optional<plan::RunCost>>& costs) {
  const auto number = [](const std::optional<double>& value) { return value ? number_text(*value) : std::string("-"); };
  present::Table table = present::left_table({"run", "state", "started (UTC)"});
  for (const char* title : {"steps", "train/loss", "eval/loss", "time", "cost", "peak"})
    table.columns.push_back({.title = title});
  table.columns.push_back({.title = "name", .align = present::Align::left});
  for (size_t i = 0; i < rows.size(); ++i) {
    const store::RunRow& run = rows[i];
    const auto& cost = costs[i];
    table.add({run.id, std::string(to_string(run.state)), run.created,
               std::to_string(run.steps_done) + "/" + std::to_string(run.steps_total), number(run.train_loss),
               number(run.eval_loss), run.seconds > 0 ? to_text(Seconds(run.seconds)) : "-",
               cost ? (cost->is_predicted ? "~" : "") + to_text(Usd(cost->usd)) : "-",
               run.peak > Bytes(0) ? to_text(run.peak) : "-", run.name});
  }
  print_text("%s", present::to_text(table).c_str());
}

int list_runs(const CommonOptions& common) {
  store::Store store(common.runs_folder);
  store.recover();
  const std::vector<store::RunRow> rows = store.list();
  const plan::PlanContext context = load_context();
  std::vector<std::optional<plan::RunCost>> costs;
  for (const store::RunRow& run : rows) costs.push_back(plan::run_cost(store, run, context));
  if (common.output == Output::json) {
    Json all = Json::array();
    for (size_t i = 0; i < rows.size(); ++i) all.push_back(run_json(rows[i], costs[i]));
    print_json({{"rows", all}, {"warnings", Json::array()}});
    return 0;
  }
  print_runs(rows, costs);
  if (rows.empty()) print_text("no runs yet in %s\n", store.folder().c_str());
  const std::filesystem::path cache = store.folder() / data::kRowCacheFolder;
  if (const data::RowCacheUse use = data::row_cache_use(cache); use.entries > 0)
    print_text("tokens of %lld data files: %s in %s\n", static_cast<long long>(use.entries),
               to_text(Bytes(use.bytes)).c_str(), cache.c_str());
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
