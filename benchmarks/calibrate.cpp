// SPDX-License-Identifier: GPL-3.0-or-later
// Prints predicted and measured values of every row of resources/hardware/measurements.json, and fits
// resources/hardware/calibration.json.
//   mw_calibrate [--write DATE]
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <iostream>

#include "core/audit/accuracy.h"
#include "core/base/files.h"
#include "core/plan/calibration/calibration_file.h"
#include "core/plan/calibration/intervals.h"
#include "core/plan/document/simulated_rows.h"

namespace mw {
namespace {

namespace fs = std::filesystem;

void print_rows(const std::vector<plan::Measurement>& rows, const std::vector<plan::RowPrediction>& before,
                const std::vector<plan::RowPrediction>& after, plan::MeasurementUse purpose,
                bool (*of)(plan::MeasuredQuantity)) {
  for (size_t i = 0; i < rows.size(); ++i) {
    const plan::Measurement& m = rows[i];
    if (m.purpose != purpose || !of(m.what)) continue;
    std::printf("| %s%s | %s | %s | %s | %+.1f %% | %+.1f %% |\n", m.id.c_str(), m.counted() ? "" : " (alternative)",
                number_text(after[i].measured).c_str(), number_text(after[i].predicted).c_str(), m.unit.c_str(),
                100 * before[i].error, 100 * after[i].error);
  }
}

struct Errors {
  plan::ErrorSummary fitted_before, fitted_after;      // step times of the calibration rows
  plan::ErrorSummary time_before, time_after, memory;  // of the held-out rows
};

Errors summarise(const std::vector<plan::Measurement>& rows, const std::vector<plan::RowPrediction>& before,
                 const std::vector<plan::RowPrediction>& after) {
  constexpr auto kFitted = plan::MeasurementUse::calibration, kHeldOut = plan::MeasurementUse::holdout;
  return {.fitted_before = plan::summarise(rows, before, kFitted, plan::is_time),
          .fitted_after = plan::summarise(rows, after, kFitted, plan::is_time),
          .time_before = plan::summarise(rows, before, kHeldOut, plan::is_time),
          .time_after = plan::summarise(rows, after, kHeldOut, plan::is_time),
          .memory = plan::summarise(rows, after, kHeldOut, plan::is_memory)};
}

void print_summary(const char* what, const plan::ErrorSummary& s) {
  std::printf("%s: %d rows, mean error %.1f %%, worst %.1f %% (%s)\n", what, s.rows, 100 * s.mean, 100 * s.worst,
              s.worst_row.c_str());
}

void print_part(const char* title, const std::vector<plan::Measurement>& rows,
                const std::vector<plan::RowPrediction>& before, const std::vector<plan::RowPrediction>& after,
                plan::MeasurementUse purpose, bool (*of)(plan::MeasuredQuantity)) {
  std::printf(
      "\n### %s\n\n| row | measured | predicted | unit | error before the fit | error |\n|---|--:|--:|---|--:|--:|\n",
      title);
  print_rows(rows, before, after, purpose, of);
}

// Writes calibration.json: the errors on fitted and held-out rows, then the factors.
void write_calibration(const std::filesystem::path& file, const plan::Calibration& calibration, const Errors& errors) {
  Json document = to_json(calibration);
  const Json factors = document["factors"];
  document.erase("factors");  // appended last: the errors come first in the file
  document["step_time_of_fitted_rows"] = {{"before", to_json(errors.fitted_before)},
                                          {"after", to_json(errors.fitted_after)}};
  document["step_time_of_held_out_rows"] = {{"before", to_json(errors.time_before)},
                                            {"after", to_json(errors.time_after)}};
  document["memory_of_held_out_rows"] = to_json(errors.memory);
  document["factors"] = factors;
  write_file_atomically(file, plan::calibration_text(std::move(document)));
}

void print_intervals(const plan::Calibration& calibration) {
  for (const plan::ConformalFactor& f : calibration.intervals)
    std::printf(
        "interval: %s, %s %s: / %.3f, x %.3f, %d rows\n", std::string(to_string(f.kind)).c_str(),
        std::string(to_string(f.evidence)).c_str(),
        f.evidence == plan::ConformalFactor::Evidence::all ? "" : std::string(model::to_string(f.stack)).c_str(),
        f.limits.below, f.limits.above, f.rows);
  for (const plan::SpreadScore& s : calibration.scores)
    std::printf("interval: %s, own stack and chip: %.3f spreads, %d rows\n", std::string(to_string(s.kind)).c_str(),
                s.spreads, s.rows);
}

// The errors of servers come from simulations, which read the calibration from a folder.
audit::AccuracyReport accuracy_with(const plan::Calibration& calibration, const char* date) {
  const fs::path folder = fs::temp_directory_path() / ("mw_calibrate-" + std::to_string(getpid()));
  fs::create_directories(folder);
  write_file_atomically(folder / "calibration.json", to_json(calibration).dump());
  const plan::PlanContext context = plan::PlanContext::load(fs::path(MW_RESOURCES) / "hardware", folder);
  audit::AccuracyReport report = audit::accuracy({.resources = MW_RESOURCES, .date = date}, context);
  fs::remove_all(folder);
  return report;
}

int run(int argc, char** argv) {
  const fs::path folder = fs::path(MW_RESOURCES) / "hardware";
  const plan::PlanContext context = plan::PlanContext::load(folder);
  const plan::Measurements measured = plan::read_measurements(folder / "measurements.json", context.catalogue);
  plan::Calibration calibration{
      .basis = {}, .factors = plan::with_means(plan::fit_factors(measured.rows, plan::simulated_fit_options()))};
  const std::vector<plan::RowPrediction> before = plan::predict_all(measured.rows, {});
  const std::vector<plan::RowPrediction> after = plan::predict_all(measured.rows, calibration);
  const Errors errors = summarise(measured.rows, before, after);
  using plan::MeasurementUse;
  print_part("Step time, held out", measured.rows, before, after, MeasurementUse::holdout, plan::is_time);
  print_part("Memory, held out", measured.rows, before, after, MeasurementUse::holdout, plan::is_memory);
  print_part("Step time, fitted to", measured.rows, before, after, MeasurementUse::calibration, plan::is_time);
  std::printf("\n");
  print_summary("step time held out, before the fit", errors.time_before);
  print_summary("step time held out", errors.time_after);
  print_summary("memory held out", errors.memory);
  print_summary("step time fitted to", errors.fitted_after);
  for (const auto& f : calibration.factors)
    if (model::serves(f.stack) && !f.chip.empty())
      std::printf("%s %s %s x %.3f\n", std::string(model::to_string(f.stack)).c_str(), f.chip.c_str(), f.name.c_str(),
                  f.value);
  for (const auto& left : measured.left_out) std::printf("left out: %s: %s\n", left.row.c_str(), left.why.c_str());
  if (argc == 3 && std::strcmp(argv[1], "--write") == 0) {
    calibration.basis = {argv[2], "resources/hardware/measurements.json"};
    const audit::AccuracyReport report = accuracy_with(calibration, argv[2]);
    plan::calibrate_intervals(calibration, audit::errors_for_intervals(report.rows));
    print_intervals(calibration);
    std::printf("\n%s", audit::totals_text(report).c_str());
    write_calibration(folder / "calibration.json", calibration, errors);
  }
  return 0;
}

}  // namespace
}  // namespace mw

int main(int argc, char** argv) {
  try {
    return mw::run(argc, argv);
  } catch (const mw::Error& e) {
    std::cerr << e.what() << "\n";
    return 2;
  }
}
