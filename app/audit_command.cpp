// SPDX-License-Identifier: GPL-3.0-or-later
// `audit`: checks measured results and claims about training against physical floors. Rules that depend on the target
// or the model are skipped when it is unknown.
#include <CLI/CLI.hpp>
#include <cmath>

#include "app/load_inputs.h"
#include "app/output.h"
#include "app/subcommand.h"
#include "core/base/counted.h"
#include "core/base/files.h"
#include "core/compare/audited_training.h"
#include "core/formats/logs/run_log.h"
#include "core/model/catalogue.h"

namespace mw::app {
namespace {

struct AuditOptions {
  std::string target, model;           // ids that replace those in the results
  std::vector<std::string> columns{};  // FIELD=COLUMN of a CSV file
};

Json finding_json(const formats::BenchSet& set, const audit::AuditFinding& finding) {
  const formats::BenchPoint& point = set.points[finding.point];
  Json out{{"set", set.name}, {"point", finding.point}, {"input_len", point.input_len}};
  if (!std::isnan(point.request_rate))
    out["request_rate"] = std::isinf(point.request_rate) ? Json("inf") : Json(point.request_rate);
  out.update({{"rule", finding.rule},
              {"metric", finding.metric},
              {"unit", audit::unit_of(finding.metric)},
              {"value", or_null(finding.value)},
              {"floor", or_null(finding.floor)},
              {"verdict", to_string(finding.verdict)},
              {"text", finding.text},
              {"formula", finding.formula}});
  return out;
}

struct Audited {
  std::vector<formats::BenchSet> sets{};
  std::vector<audit::TrainingClaim> claims{};
};

// Reads a file of results, claims or a training log, or a run of the store.
Audited read_results(const CommonOptions& common, const AuditOptions& options) {
  if (path_exists(common.file)) {
    if (audit::is_training_claims(common.file)) return {.claims = audit::read_training_claims(common.file)};
    if (formats::log_kind(common.file) != formats::LogKind::none)
      return {.claims = {compare::training_claim(compare::compared_log(common.file))}};
    return {.sets = formats::read_bench(common.file, csv_mapping(options.columns))};
  }
  const store::Store store(common.runs_folder);
  const store::RunId id = run_named(store, common.file.string());
  if (!store.find(id)) throw unknown_run(store.folder(), id, "a file of results, a run id listed by `runs`, or latest");
  const compare::ComparedRun run = compare::compared(store, id);
  if (run.sweep) return {.sets = {run.sweep->set}};
  if (compare::kind_of(run) == compare::ComparedKind::training) return {.claims = {compare::training_claim(run)}};
  throw Error("RUN-KIND", "the run is neither a sweep nor a training, so it cannot be audited", {.found = id});
}

Json audit_claim(audit::TrainingClaim claim, const CommonOptions& common, const AuditOptions& options,
                 const plan::PlanContext& context) {
  if (!options.target.empty()) claim.target = context.catalogue.target(options.target).id;
  if (!options.model.empty()) claim.model = model::catalogue_config(options.model).id;
  const audit::TrainingAudit audit = compare::audit_known(claim, context);
  if (common.output == Output::text)
    print_text("%s: %s\n%s", claim.name.c_str(), std::string(to_string(compare::worst(audit))).c_str(),
               compare::to_text(audit).c_str());
  return compare::to_json(claim, audit);
}

// Ids given on the command line must exist; those in a file may be anything.
compare::ComparedRun audit(formats::BenchSet set, const AuditOptions& options, const plan::PlanContext& context) {
  if (!options.target.empty()) set.target = context.catalogue.target(options.target).id;
  if (!options.model.empty()) set.model = model::catalogue_config(options.model).id;
  compare::ComparedRun run = compare::compared(std::move(set));
  run.sweep->findings = compare::audit_known(run.sweep->set, context);
  return run;
}

void print_findings(const compare::ComparedRun& run) {
  const formats::BenchSet& set = run.sweep->set;
  print_text("%s: %s%s%s\n", set.name.c_str(), counted(set.points.size(), "point").c_str(),
             set.tool.empty() ? "" : " from ", set.tool.c_str());
  for (const audit::AuditFinding& finding : run.sweep->findings) {
    print_text("  %-10s  %-13s point %zu: %s\n", std::string(to_string(finding.verdict)).c_str(), finding.rule.c_str(),
               finding.point + 1, finding.text.c_str());
    if (!finding.formula.empty()) print_text("  %27s%s\n", "", finding.formula.c_str());
  }
  if (run.sweep->findings.empty()) print_text("  no findings\n");
}

void add_audit_options(CLI::App& command, CommonOptions& common, AuditOptions& options) {
  command
      .add_option(
          "file", common.file,
          "File of results, as for import, of claims about training ({\"training_claims\": [...]}) or a training "
          "log, or the id of a run in the run store")
      ->required();
  command.add_option("--target", options.target, "Hardware the results were measured on: v6e-8, 2xh100 ...");
  command.add_option("--model", options.model, "Model the results were measured with: gemma4-31b ...");
  add_column_option(command, options.columns);
}

int run_audit(const CommonOptions& common, const AuditOptions& options) {
  const plan::PlanContext context = load_context();
  Json findings = Json::array(), training = Json::array();
  Audited audited = read_results(common, options);
  for (const audit::TrainingClaim& claim : audited.claims)
    training.push_back(audit_claim(claim, common, options, context));
  for (formats::BenchSet& set : audited.sets) {
    check_stop(common, "the audit");
    const compare::ComparedRun run = audit(std::move(set), options, context);
    for (const audit::AuditFinding& finding : run.sweep->findings)
      findings.push_back(finding_json(run.sweep->set, finding));
    if (common.output == Output::text) print_findings(run);
  }
  if (common.output == Output::json) print_json({{"findings", findings}, {"training", training}});
  return 0;
}

}  // namespace

Subcommand audit_subcommand() {
  return make_subcommand("audit",
                         "Check measured results and claims about training against physical floors and for consistency",
                         add_audit_options, run_audit);
}

}  // namespace mw::app
