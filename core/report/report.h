// SPDX-License-Identifier: Apache-2.0
// A run, the plan of an experiment, or a comparison as one HTML file that needs no other file and no network: figures
// with units, charts, settings (differing ones first), problems, provenance. Thread-safe.
#pragma once
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/compare/comparison.h"
#include "core/store/store.h"

namespace mw::report {

struct ReportFigure {
  std::string label, text;  // with its unit
};
// A column of a report: a run, a set of results, or the plan of an experiment.
struct ReportItem {
  compare::ComparedRun run;
  std::optional<store::RunRow> row{};     // of a run of the store
  std::vector<ReportFigure> predicted{};  // of a plan
  std::vector<Problem> problems{};        // of an experiment
};

// Throws RUN-UNKNOWN.
ReportItem report_item(const store::Store& store, const store::RunId& run, const plan::PlanContext& context);
// A plan of an experiment, or one item for each set of a file of results. Throws errors of the file.
std::vector<ReportItem> report_items(const std::filesystem::path& file, const plan::PlanContext& context,
                                     const std::stop_token& stop = {});
ReportItem report_item(const experiment::Experiment& experiment, const plan::PlanContext& context,
                       const std::stop_token& stop = {});

// One item: a report of it. More: a comparison with the first as baseline. `written`: the time, "2026-01-31T12:00:00Z".
// Throws COMPARE without items.
std::string html_report(const std::vector<ReportItem>& items, const std::string& written);

}  // namespace mw::report
