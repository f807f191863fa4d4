// SPDX-License-Identifier: Apache-2.0
// Audits training runs: finished ones of the store, imported logs, and claims of a file. Thread-safe.
#pragma once
#include "core/audit/training_audit.h"
#include "core/compare/comparison.h"

namespace mw::compare {

// The claim of a recorded training run. A record times its steps itself, so only rates, memory, losses and cost are
// taken.
struct TrainingRecord {
  std::string name{}, id{};
  const experiment::Experiment& experiment;
  const views::RunView& view;
  bool has_all_settings = true;  // false for an import
};
audit::TrainingClaim training_claim(const TrainingRecord& record);
audit::TrainingClaim training_claim(const ComparedRun& run);
// Includes physical lower bounds if the catalogues have model and target.
audit::TrainingAudit audit_known(const audit::TrainingClaim& claim, const plan::PlanContext& context);
// Fills in the findings of a sweep or a training.
void add_audit(ComparedRun& run, const plan::PlanContext& context);
// A log that is not in the store, as `import` would record it. Throws LOG.
ComparedRun compared_log(const std::filesystem::path& file);

// {name, model, target, verdict, mfu: [{formula, share}], claimed_formula, findings: [...]}, as `audit --json` prints
// it.
Json to_json(const audit::TrainingClaim& claim, const audit::TrainingAudit& audit);
audit::Verdict worst(const audit::TrainingAudit& audit);
// Text of several lines: the MFU by formula, then the findings.
std::string to_text(const audit::TrainingAudit& audit);

}  // namespace mw::compare
