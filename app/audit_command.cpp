// SPDX-License-Identifier: GPL-3.0-or-later
// `audit`: every finding with its formula; what the target and the model decide only where both are known.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "app/commands.h"
#include "app/result_files.h"
#include "core/base/files.h"
#include "core/compare/compared_files.h"

namespace mw::app {
namespace {

Json finding_json(const formats::BenchSet& set, const serve::Finding& f) {
  const auto number = [](double v) { return std::isfinite(v) ? Json(v) : Json(nullptr); };
  const formats::BenchPoint& p = set.points[f.point];
  Json out{{"set", set.name}, {"point", f.point}, {"input_len", p.input_len}};
  if (!std::isnan(p.request_rate))
    out["request_rate"] = std::isinf(p.request_rate) ? Json("inf") : Json(p.request_rate);
  out.update({{"rule", f.rule},
              {"metric", f.metric},
              {"value", number(f.value)},
              {"floor", number(f.floor)},
              {"verdict", to_string(f.verdict)},
              {"text", f.text},
              {"formula", f.formula}});
  return out;
}

// Of a file of results, or of a sweep of the store.
std::vector<formats::BenchSet> sets_of(const Common& common, const AuditArgs& args) {
  if (is_there(common.file)) return formats::read_bench(common.file, mapping_of(args.columns));
  const store::Store store(common.runs_folder);
  const store::RunId id = common.file.string();
  if (!store.find(id))
    throw Error({.id = "RUN-UNKNOWN",
                 .message = "no run or file has this name",
                 .file = store.folder().string(),
                 .found = id,
                 .expected = "a file of results, or an id as `runs` lists it"});
  const compare::ComparedRun run = compare::compared(store, id);
  if (!run.sweep)
    throw Error({.id = "RUN-KIND", .message = "only sweeps can be audited", .found = id + ", which is none"});
  return {run.sweep->set};
}

// Named on the command line, both must be real; what a file says may be anything.
compare::ComparedRun audited(formats::BenchSet set, const AuditArgs& args, const hardware::Catalogue& catalogue) {
  if (!args.target.empty()) set.target = catalogue.target(args.target).id;
  if (!args.model.empty()) set.model = model::catalogue(args.model).id;
  compare::ComparedRun run = compare::compared(std::move(set));
  run.sweep->findings = compare::audit_known(run.sweep->set, catalogue);
  return run;
}

void print(const compare::ComparedRun& run) {
  const formats::BenchSet& set = run.sweep->set;
  print_text("%s: %zu points%s%s\n", set.name.c_str(), set.points.size(), set.tool.empty() ? "" : " of ",
             set.tool.c_str());
  for (const serve::Finding& f : run.sweep->findings) {
    print_text("  %-10s  %-13s point %zu: %s\n", std::string(to_string(f.verdict)).c_str(), f.rule.c_str(), f.point + 1,
               f.text.c_str());
    if (!f.formula.empty()) print_text("  %27s%s\n", "", f.formula.c_str());
  }
  if (run.sweep->findings.empty()) print_text("  nothing found\n");
}

}  // namespace

int audit_command(const Common& common, const AuditArgs& args) {
  const hardware::Catalogue catalogue = load_catalogue();
  Json findings = Json::array();
  for (formats::BenchSet& set : sets_of(common, args)) {
    const compare::ComparedRun run = audited(std::move(set), args, catalogue);
    for (const serve::Finding& f : run.sweep->findings) findings.push_back(finding_json(run.sweep->set, f));
    if (common.output == Output::text) print(run);
  }
  if (common.output == Output::json) print_json({{"findings", findings}});
  return 0;
}

}  // namespace mw::app
