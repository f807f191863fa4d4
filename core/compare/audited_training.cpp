// SPDX-License-Identifier: Apache-2.0
#include "core/compare/audited_training.h"

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "core/experiment/bound_experiment.h"
#include "core/formats/logs/run_log.h"
#include "core/model/catalogue.h"

namespace mw::compare {
namespace {

double last_of(const views::RunView& run, const std::string& name) {
  const views::MetricSeries* series = run.metric(name);
  return series && !series->raw.empty() ? series->raw.back().y : audit::TrainingClaim::kNot;
}

double median_of(const views::RunView& run, const std::string& name) {
  const views::MetricSeries* series = run.metric(name);
  return series ? formats::percentile_of({series->raw.y().begin(), series->raw.y().end()}, 50)
                : audit::TrainingClaim::kNot;
}

double first_known(std::initializer_list<double> values) {
  for (const double value : values)
    if (!std::isnan(value)) return value;
  return audit::TrainingClaim::kNot;
}

double peak_of(const views::RunView& run) {
  double most = run.finished() ? static_cast<double>(run.finished()->peak.value) : 0;
  for (const auto& [device, timeline] : run.memory()) most = std::max(most, static_cast<double>(timeline.peak.value));
  return most > 0 ? most : audit::TrainingClaim::kNot;
}

}  // namespace

audit::TrainingClaim training_claim(const ComparedRun& run) {
  return training_claim({.name = run.name,
                         .id = run.id,
                         .experiment = run.experiment,
                         .view = *run.training,
                         .has_all_settings = run.has_all_settings});
}

audit::TrainingClaim training_claim(const TrainingRecord& run) {
  audit::TrainingClaim claim{.name = run.name, .source = run.id};
  const experiment::BoundExperiment config = run.experiment.valid_values();
  claim.model = config.model.id;
  const auto stated = [&](const char* key) { return run.experiment.has(key); };
  if (stated("target.id")) claim.target = config.target.id;
  if (stated("train.dtype")) claim.dtype = std::string(to_string(config.train.dtype));
  if (run.has_all_settings) claim.method = config.train.method;
  const views::RunView& view = run.view;
  claim.tokens_per_second =
      first_known({median_of(view, "train/tokens_per_second"), median_of(view, "train/tokens_per_sec")});
  claim.mfu = first_known({median_of(view, "train/mfu"), median_of(view, "mfu")});
  claim.peak_bytes = peak_of(view);
  claim.train_loss = last_of(view, "train/loss");
  claim.eval_loss = last_of(view, "eval/loss");
  if (!std::isnan(claim.eval_loss)) {
    claim.perplexity = last_of(view, "eval/perplexity");
    claim.token_accuracy = first_known({last_of(view, "eval/mean_token_accuracy"), last_of(view, "eval/accuracy")});
  } else {
    claim.token_accuracy = first_known({last_of(view, "train/mean_token_accuracy"), last_of(view, "train/accuracy")});
  }
  return claim;
}

namespace {

double bytes_of(const formats::BenchSet& set, const char* condition) {
  const std::string type = set.condition(condition);
  return type.find("fp8") != std::string::npos || type.find("int8") != std::string::npos ? 1 : 2;
}

// With physical lower bounds, if the catalogues have model and target.
template <class Record>
auto audit_with_bounds(const Record& record, double weight_bytes, double kv_bytes, const plan::PlanContext& context) {
  if (!record.model.empty() && !record.target.empty() && record.target != "cpu") try {
      return audit::audit(record, {.model = model::catalogue_config(record.model),
                                   .target = context.catalogue.target(record.target),
                                   .weight_bytes = weight_bytes,
                                   .kv_bytes = kv_bytes});
    } catch (const Error&) {  // the catalogue does not have the model or chip
    }
  return audit::audit(record);
}

}  // namespace

audit::TrainingAudit audit_known(const audit::TrainingClaim& claim, const plan::PlanContext& context) {
  return audit_with_bounds(claim, 2, 2, context);
}

std::vector<audit::AuditFinding> audit_known(const formats::BenchSet& set, const plan::PlanContext& context) {
  return audit_with_bounds(set, bytes_of(set, "weight_dtype"), bytes_of(set, "kv_dtype"), context);
}

void add_audit(ComparedRun& run, const plan::PlanContext& context) {
  if (run.sweep) run.sweep->findings = audit_known(run.sweep->set, context);
  if (run.training && kind_of(run) == ComparedKind::training)
    run.training_findings = audit_known(training_claim(run), context).findings;
}

ComparedRun compared_log(const std::filesystem::path& file) {
  const formats::RunLog log = formats::read_log(file);
  ComparedRun out{.name = log.name, .provenance = formats::ResultProvenance::imported};
  out.has_all_settings = false;
  views::RunView view;
  view.feed({0, event::Started{{{"kind", "train"}, {"source", "imported"}, {"name", log.name}, {"facts", log.facts}}}});
  std::vector<formats::Scalar> scalars = log.scalars;
  std::stable_sort(scalars.begin(), scalars.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  for (const formats::Scalar& s : scalars) view.feed({0, event::Metric{s.name, s.step, s.value}});
  out.training = std::move(view);
  return out;
}

audit::Verdict worst(const audit::TrainingAudit& audit) {
  audit::Verdict worst = audit::Verdict::fine;
  for (const audit::AuditFinding& f : audit.findings) worst = std::max(worst, f.verdict);
  return worst;
}

Json to_json(const audit::TrainingClaim& claim, const audit::TrainingAudit& audit) {
  Json mfu = Json::array(), findings = Json::array();
  for (const audit::MfuFormula& f : audit.mfu) mfu.push_back({{"formula", f.name}, {"share", or_null(f.share)}});
  for (const audit::AuditFinding& f : audit.findings)
    findings.push_back({{"rule", f.rule},
                        {"metric", f.metric},
                        {"unit", audit::unit_of(f.metric)},
                        {"value", or_null(f.value)},
                        {"floor", or_null(f.floor)},
                        {"verdict", to_string(f.verdict)},
                        {"text", f.text},
                        {"formula", f.formula}});
  return {{"name", claim.name},
          {"model", claim.model},
          {"target", claim.target},
          {"verdict", to_string(worst(audit))},
          {"mfu", std::move(mfu)},
          {"claimed_formula", audit.claimed_formula},
          {"findings", std::move(findings)}};
}

std::string to_text(const audit::TrainingAudit& audit) {
  std::string out;
  for (const audit::MfuFormula& f : audit.mfu)
    out += "  MFU " + number_text(f.share * 100, 3) + " %  " + f.name +
           (f.name == audit.claimed_formula ? "  (the claimed one)" : "") + "\n";
  for (const audit::AuditFinding& f : audit.findings) {
    out += "  " + std::string(to_string(f.verdict)) + "  " + f.rule + ": " + f.text + "\n";
    if (!f.formula.empty()) out += "      " + f.formula + "\n";
  }
  return out.empty() ? "  no findings\n" : out;
}

}  // namespace mw::compare
