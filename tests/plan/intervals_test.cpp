// SPDX-License-Identifier: GPL-3.0-or-later
// 90 % intervals from errors on published rows: the weighted quantile, limits of either side, coverage of new
// publications and runs, similar work, and which rows speak for a chip.
#include "core/plan/calibration/intervals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>

#include "core/base/files.h"
#include "tests/base/scratch.h"
#include "tests/plan/measured_rows.h"

namespace mw::plan {
namespace {

using test::measured;
using test::small;

constexpr FigureKind kTraining = FigureKind::training;

// `count` errors of one publication on one chip.
std::vector<RowError> errors(const std::string& source, const std::string& chip, int count, double error) {
  return std::vector<RowError>(static_cast<size_t>(count), {kTraining, model::Stack::maxtext, chip, source, error});
}
std::vector<RowError> operator+(std::vector<RowError> a, const std::vector<RowError>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Calibration with_intervals(const std::vector<RowError>& rows) {
  Calibration c{.basis = {},
                .factors = with_means(fit_factors(measured(0.8, MeasurementUse::calibration, 12, "v5e-1")))};
  c.intervals = conformal_factors(rows);
  return c;
}

TEST(Intervals, EveryPublicationHasTheSameWeight) {
  EXPECT_TRUE(std::isinf(weighted_quantile({}, 0.9)));
  EXPECT_TRUE(std::isinf(weighted_quantile(errors("one", "v5e", 90, 0.1), 0.9)));  // one publication
  EXPECT_TRUE(
      std::isinf(weighted_quantile(errors("one", "v5e", 7, 0.1) + errors("two", "v5e", 1, 0.2), 0.9)));  // 8 rows
  // Ninety rows of one publication do not hide two rows of another, which have half the weight.
  const auto rows = errors("one", "v5e", 90, 0.1) + errors("two", "v5e", 2, 0.3);
  EXPECT_EQ(weighted_quantile(rows, 0.9), 0.3);
  EXPECT_EQ(weighted_quantile(rows, 0.5), 0.1);
  EXPECT_EQ(publication_of("arXiv 2605.25645 v3, serving table"), "arXiv 2605.25645");
  EXPECT_EQ(publication_of("arXiv 2605.25645 and h2loop/gemma-tpu"), "arXiv 2605.25645");
  EXPECT_EQ(publication_of("pytorch/torchtune README"), "pytorch/torchtune README");
}

// Five to eleven rows of each of forty publications: the publication's bias and noise of 5 %.
template <class Bias>
std::vector<RowError> publications(Bias bias) {
  std::mt19937 random(7);
  std::normal_distribution<double> noise(0, 0.05);
  std::vector<RowError> rows;
  for (int p = 0; p < 40; ++p) {
    const double own = bias(random);
    for (int i = 0; i < 5 + p % 7; ++i)
      rows.push_back(
          {kTraining, model::Stack::maxtext, "v5e", "publication " + std::to_string(p), own + noise(random)});
  }
  return rows;
}

// The share of the rows inside the interval of the other publications.
double coverage(const std::vector<RowError>& rows) {
  int inside = 0;
  for (const RowError& row : rows) {
    const LimitFactors limits = conformal_factors(rows, publication_of(row.source)).at(0).limits;
    inside += -std::log(limits.below) - 1e-12 <= row.log_ratio && row.log_ratio <= std::log(limits.above) + 1e-12;
  }
  return inside / static_cast<double>(rows.size());
}

TEST(Intervals, CoverNineOfTenRowsOfPublicationsThatWereLeftOut) {
  const std::vector<RowError> rows = publications(std::normal_distribution<double>(0, 0.1));
  EXPECT_GE(coverage(rows), 0.85);
  EXPECT_LE(coverage(rows), 0.95);
}

TEST(Intervals, AreNarrowerOnTheSideOfTheSmallErrors) {
  std::exponential_distribution<double> skewed(5);  // most programs are a little slower than predicted, some much
  const std::vector<RowError> rows = publications([&](std::mt19937& random) { return skewed(random) - 0.1; });
  EXPECT_GE(coverage(rows), 0.85);
  EXPECT_LE(coverage(rows), 0.95);
  const LimitFactors limits = conformal_factors(rows).at(0).limits;
  EXPECT_GT(std::log(limits.above), 2 * std::log(limits.below));
  std::vector<RowError> absolute = rows;
  for (RowError& row : absolute) row.log_ratio = std::abs(row.log_ratio);
  const double symmetric = std::exp(weighted_quantile(absolute, kIntervalLevel));
  EXPECT_LT(limits.above - 1 / limits.below, symmetric - 1 / symmetric);
}

TEST(Intervals, ContainTheirPredictionIfAllErrorsHaveOneSign) {
  for (const double error : {-0.2, 0.2}) {
    const auto rows = errors("one", "v5e", 20, error) + errors("two", "v5e", 3, error);
    for (const ConformalFactor& f : conformal_factors(rows)) {
      EXPECT_NEAR(f.limits.below, error < 0 ? std::exp(0.2) : 1, 1e-12);
      EXPECT_NEAR(f.limits.above, error < 0 ? 1 : std::exp(0.2), 1e-12);
    }
  }
}

TEST(Intervals, ThoseOfOutputRatesMirrorThoseOfTimesPerToken) {
  auto rows = errors("one", "v5e", 20, 0.3) + errors("two", "v5e", 20, -0.1);
  for (RowError& row : rows) row.kind = row.log_ratio > 0 ? FigureKind::throughput : FigureKind::tpot;
  const IntervalFactors factors = interval_factors(with_intervals(rows), model::Stack::maxtext, "v5e", {});
  EXPECT_NEAR(factors.of(FigureKind::tpot).above, std::exp(0.3), 1e-12);
  EXPECT_NEAR(factors.of(FigureKind::tpot).below, std::exp(0.1), 1e-12);
  EXPECT_EQ(factors.of(FigureKind::throughput).above, factors.of(FigureKind::tpot).below);
  EXPECT_EQ(factors.of(FigureKind::throughput).below, factors.of(FigureKind::tpot).above);
}

// `count` runs of one publication on one chip, a row each, with sizes of 1 to 8 devices.
template <class Error>
std::vector<RowError> runs(const std::string& chip, int count, Error error) {
  std::vector<RowError> rows;
  for (int i = 0; i < count; ++i) {
    RowError row{kTraining, model::Stack::maxtext, chip, "one"};
    row.size.devices = 1 << (i % 4);
    row.run = chip + " run " + std::to_string(i);
    row.log_ratio = error(row.size.devices);
    rows.push_back(row);
  }
  return rows;
}
WorkSize of_devices(double devices) {
  return {.devices = devices};
}
LimitFactors training_limits(const Calibration& c, const std::string& chip, const WorkSize& size = {}) {
  return interval_factors(c, model::Stack::maxtext, chip, size).of(kTraining);
}

TEST(Intervals, OwnRowsThenThoseOfTheStackThenAll) {
  auto rows = runs("v5e", 12, [](double) { return 0.05; }) + errors("two", "v6e", 8, 0.2);
  for (RowError other : errors("three", "h100", 12, 0.6)) {
    other.stack = model::Stack::trl_fsdp;
    rows.push_back(other);
  }
  Calibration c = with_intervals({});
  calibrate_intervals(c, rows);
  EXPECT_LT(training_limits(c, "v5e").above, std::exp(0.15));
  EXPECT_TRUE(interval_factors(c, model::Stack::maxtext, "v5e", {}).is_own(kTraining));
  EXPECT_NEAR(training_limits(c, "v6e").above, std::exp(0.6), 1e-12);  // too few rows, and no factors of its own
  EXPECT_FALSE(interval_factors(c, model::Stack::maxtext, "v6e", {}).is_own(kTraining));
  EXPECT_FALSE(training_limits({}, "v5e").is_calibrated());
  EXPECT_EQ(interval_factors(c, model::Stack::maxtext, "v5e", {}).source,
            "90 % intervals: errors on 12 published rows of maxtext on v5e, most of all those on work of this size");
  // With factors of the chip but too few rows of it, the rows of its stack speak for it.
  for (CalibrationFactor& f : c.factors) f.stack = model::Stack::maxtext, f.chip = f.chip.empty() ? "" : "v6e";
  EXPECT_NEAR(training_limits(c, "v6e").above, std::exp(0.2), 1e-12);
  EXPECT_EQ(interval_factors(c, model::Stack::maxtext, "v6e", {}).source,
            "90 % intervals: errors on 20 held-out rows of maxtext");
}

TEST(Intervals, TenRowsSpeakForTheirStackAndChip) {
  std::mt19937 random(3);
  std::normal_distribution<double> noise(0, 0.05);
  auto rows = runs("v5e", 20, [&](double) { return noise(random); }) + errors("two", "v5p", 9, 0.3);
  Calibration c;
  calibrate_intervals(c, rows);
  EXPECT_FALSE(interval_factors(c, model::Stack::maxtext, "v5p", {}).is_own(kTraining));
  rows.push_back(rows.back());
  calibrate_intervals(c, rows);
  EXPECT_TRUE(interval_factors(c, model::Stack::maxtext, "v5p", {}).is_own(kTraining));
  // Memory has limits of stacks and of all only.
  for (RowError& row : rows) row.kind = FigureKind::memory;
  calibrate_intervals(c, rows);
  EXPECT_FALSE(interval_factors(c, model::Stack::maxtext, "v5e", {}).is_own(FigureKind::memory));
}

TEST(Intervals, FollowTheErrorsOnSimilarWork) {
  std::mt19937 random(5);
  std::normal_distribution<double> noise(0, 0.05);
  // Eight devices are slower than predicted, and vary more.
  Calibration c;
  calibrate_intervals(
      c, runs("v5e", 80, [&](double devices) { return devices == 8 ? 0.3 + 2 * noise(random) : noise(random); }));
  const LimitFactors one = training_limits(c, "v5e", of_devices(1)), eight = training_limits(c, "v5e", of_devices(8));
  EXPECT_LT(one.above - 1 / one.below, eight.above - 1 / eight.below);
  EXPECT_GT(eight.above, std::exp(0.3));
  EXPECT_LT(one.above, std::exp(0.2));
  // The rows do not speak for work unlike theirs.
  EXPECT_TRUE(interval_factors(c, model::Stack::maxtext, "v5e", of_devices(16)).is_own(kTraining));
  EXPECT_FALSE(interval_factors(c, model::Stack::maxtext, "v5e", of_devices(4096)).is_own(kTraining));
}

TEST(Intervals, GrowWithTheErrors) {
  std::mt19937 random(5);
  std::normal_distribution<double> noise(0, 0.05);
  std::vector<RowError> rows = runs("v5e", 40, [&](double) { return noise(random); });
  Calibration small_errors, large_errors;
  calibrate_intervals(small_errors, rows);
  for (RowError& row : rows) row.log_ratio *= 2;
  calibrate_intervals(large_errors, rows);
  for (const double devices : {1, 4, 8}) {
    const LimitFactors a = training_limits(small_errors, "v5e", of_devices(devices)),
                       b = training_limits(large_errors, "v5e", of_devices(devices));
    EXPECT_NEAR(std::log(b.above), 2 * std::log(a.above), 1e-12);
    EXPECT_NEAR(std::log(b.below), 2 * std::log(a.below), 1e-12);
  }
}

TEST(Intervals, CoverNineOfTenRunsThatWereLeftOut) {
  std::mt19937 random(11);
  std::normal_distribution<double> noise(0, 0.04);
  const std::vector<RowError> rows =
      runs("v5e", 200, [&](double devices) { return 0.02 * devices + std::sqrt(devices) * noise(random); });
  std::vector<double> widths;
  int inside = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<RowError> others = rows;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    Calibration c;
    calibrate_intervals(c, others);
    const LimitFactors limits = training_limits(c, "v5e", rows[i].size);
    widths.push_back(limits.above - 1 / limits.below);
    inside += -std::log(limits.below) <= rows[i].log_ratio && rows[i].log_ratio <= std::log(limits.above) ? 1 : 0;
  }
  EXPECT_GE(inside, 170);
  EXPECT_LE(inside, 190);
  // Narrower for most rows than limits that know no sizes.
  std::vector<double> absolute;
  for (const RowError& row : rows) absolute.push_back(std::abs(row.log_ratio));
  std::sort(absolute.begin(), absolute.end());
  std::sort(widths.begin(), widths.end());
  EXPECT_LT(widths[100], std::exp(absolute[180]) - std::exp(-absolute[180]));
}

TEST(Intervals, OfOtherChipsWidenThePlan) {
  const Calibration c = with_intervals(errors("one", "v5e", 6, 0.4) + errors("two", "v5e", 6, -0.5));
  const Request request = small(1, 512, "v5e-1");
  const IntervalFactors factors = interval_factors(c, request.stack, "v5e", work_size(request));
  EXPECT_NEAR(factors.of(FigureKind::training).above, std::exp(0.4), 1e-12);
  EXPECT_NEAR(factors.of(FigureKind::training).below, std::exp(0.5), 1e-12);
  Plan plan = predict(request);
  set_intervals(plan, request, factors);
  EXPECT_LE(plan.step.seconds.low, plan.step.seconds.value / factors.of(FigureKind::training).below * (1 + 1e-12));
  EXPECT_GE(plan.step.seconds.high, plan.step.seconds.value * factors.of(FigureKind::training).above * (1 - 1e-12));
  EXPECT_EQ(plan.sources.back(), factors.source);
}

TEST(Intervals, OfTheOwnChipReplaceThoseOfThePlan) {
  Calibration c;
  const Request request = small(1, 512, "v5e-1");
  std::vector<RowError> rows = runs("v5e", 20, [](double devices) { return devices > 2 ? 0.01 : -0.01; });
  for (RowError& row : rows) row.size = work_size(request);
  calibrate_intervals(c, rows);
  const IntervalFactors factors = interval_factors(c, request.stack, "v5e", work_size(request));
  const Plan wide = predict(request);
  Plan plan = wide;
  set_intervals(plan, request, factors);
  EXPECT_NEAR(plan.step.seconds.low, plan.step.seconds.value / factors.of(kTraining).below, 1e-12);
  EXPECT_NEAR(plan.step.seconds.high, plan.step.seconds.value * factors.of(kTraining).above, 1e-12);
  EXPECT_LT(plan.step.seconds.high - plan.step.seconds.low, wide.step.seconds.high - wide.step.seconds.low);
  EXPECT_EQ(plan.memory.total.high, wide.memory.total.high);
}

TEST(Intervals, FileKeepsThem) {
  const Calibration c = with_intervals(errors("one", "v5e", 6, -0.05) + errors("two", "v5e", 6, 0.1));
  const test::Scratch folder;
  const auto written = [&](const Json& document) {
    std::ofstream(folder.path() / "calibration.json") << document.dump();
    return folder.path() / "calibration.json";
  };
  const Calibration read = read_calibration(written(to_json(c)));
  ASSERT_EQ(read.intervals.size(), c.intervals.size());
  ASSERT_EQ(c.intervals.size(), 2U);
  for (size_t i = 0; i < c.intervals.size(); ++i) {
    EXPECT_EQ(read.intervals[i].kind, c.intervals[i].kind);
    EXPECT_EQ(read.intervals[i].evidence, c.intervals[i].evidence);
    EXPECT_EQ(read.intervals[i].chip, c.intervals[i].chip);
    EXPECT_NEAR(read.intervals[i].limits.below, c.intervals[i].limits.below, 1e-4);
    EXPECT_NEAR(read.intervals[i].limits.above, c.intervals[i].limits.above, 1e-4);
    EXPECT_EQ(read.intervals[i].rows, c.intervals[i].rows);
  }
  Calibration own = c;
  std::vector<RowError> rows = runs("v5e", 12, [](double devices) { return 0.01 * devices; });
  for (RowError& row : rows) row.size.parameters = 8030261248.0;
  calibrate_intervals(own, rows);
  std::ofstream(folder.path() / "calibration.json") << calibration_text(to_json(own));
  const Calibration again = read_calibration(folder.path() / "calibration.json");
  ASSERT_EQ(again.errors.size(), 12U);
  ASSERT_EQ(again.scores.size(), 1U);
  EXPECT_EQ(again.scores[0].rows, 12);
  EXPECT_EQ(again.errors[3].size.parameters, 8030261248.0);
  const WorkSize size{.devices = 8, .parameters = 8030261248.0};
  EXPECT_TRUE(training_limits(own, "v5e", size).is_calibrated());
  EXPECT_NEAR(training_limits(again, "v5e", size).above, training_limits(own, "v5e", size).above, 1e-3);
  for (const char* row : {"[1, 2, 3]", "[1, 1, 1, 1, 1, 1, \"0.1\"]", "[1, 1, 1, 1, 1, 1, 11]", "7"}) {
    Json broken = to_json(own);
    broken["errors"][0]["rows"].push_back(Json::parse(row));
    EXPECT_THROW(read_calibration(written(broken)), Error) << row;
  }
  Json no_score = to_json(own);
  no_score["scores"][0]["spreads"] = 0;
  EXPECT_THROW(read_calibration(written(no_score)), Error);
  Json chip = to_json(c);  // as older files have it
  chip["intervals"].push_back({{"kind", "training"},
                               {"evidence", "own"},
                               {"stack", "maxtext"},
                               {"chip", "v5p"},
                               {"below", 1.5},
                               {"above", 1.75},
                               {"rows", 22}});
  EXPECT_EQ(training_limits(read_calibration(written(chip)), "v5p").above, 1.75);
  Json bad = to_json(c);
  bad["intervals"][0]["below"] = 0.5;
  EXPECT_THROW(read_calibration(written(bad)), Error);
  Json symmetric = to_json(c);  // as written before intervals had a limit on either side
  symmetric["intervals"] = {{{"kind", "tpot"}, {"evidence", "all"}, {"factor", 1.25}, {"rows", 22}}};
  const LimitFactors limits = read_calibration(written(symmetric)).intervals.at(0).limits;
  EXPECT_EQ(limits.below, 1.25);
  EXPECT_EQ(limits.above, 1.25);
  Json older = to_json(c);
  older["intervals"].push_back({{"kind", "tpot"}, {"evidence", "measured chips"}, {"factor", 1.1}, {"rows", 22}});
  EXPECT_TRUE(read_calibration(written(older)).intervals.empty());
}

}  // namespace
}  // namespace mw::plan
