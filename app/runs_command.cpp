// SPDX-License-Identifier: GPL-3.0-or-later
#include <cstdio>

#include "app/commands.h"
#include "core/store/store.h"

namespace mw::app {
namespace {

Json row_json(const store::RunRow& r) {
  const auto number = [](const std::optional<double>& v) { return v ? Json(*v) : Json(nullptr); };
  return {{"id", r.id},
          {"name", r.name},
          {"created", r.created},
          {"state", to_string(r.state)},
          {"model", r.model},
          {"method", r.method},
          {"source", r.source},
          {"steps", r.steps_done},
          {"steps_total", r.steps_total},
          {"train_loss", number(r.train_loss)},
          {"eval_loss", number(r.eval_loss)},
          {"tokens", r.tokens},
          {"seconds", r.seconds},
          {"peak_bytes", r.peak.value},
          {"tags", r.tags},
          {"error", r.error}};
}

}  // namespace

int runs_command(const Common& common) {
  store::Store store(common.runs_folder);
  store.recover();
  const auto rows = store.list();
  if (common.output == Output::json) {
    Json all = Json::array();
    for (const auto& row : rows) all.push_back(row_json(row));
    print_json({{"rows", all}, {"warnings", Json::array()}});
    return 0;
  }
  print_text("%-8s %-9s %-20s %11s %10s %10s %9s %10s  %s\n", "run", "state", "started (UTC)", "steps", "train/loss",
             "eval/loss", "time", "peak", "name");
  for (const auto& r : rows)
    print_text("%-8s %-9s %-20s %5ld/%-5ld %10s %10s %9s %10s  %s\n", r.id.c_str(),
               std::string(to_string(r.state)).c_str(), r.created.c_str(), r.steps_done, r.steps_total,
               r.train_loss ? number_text(*r.train_loss).c_str() : "-",
               r.eval_loss ? number_text(*r.eval_loss).c_str() : "-", to_text(Seconds(r.seconds)).c_str(),
               to_text(r.peak).c_str(), r.name.c_str());
  if (rows.empty()) print_text("no runs yet in %s\n", store.folder().c_str());
  return 0;
}

}  // namespace mw::app
