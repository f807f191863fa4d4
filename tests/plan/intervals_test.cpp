// SPDX-License-Identifier: GPL-3.0-or-later
// 90 % intervals from errors on held-out rows: the weighted quantile, limits of either side, coverage of new
// publications, and which rows speak for a chip.
#include "core/plan/calibration/intervals.h"

#include <gtest/gtest.h>

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
  return std::vector<RowError>(static_cast<size_t>(count), {kTraining, Stack::maxtext, chip, source, error});
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
      rows.push_back({kTraining, Stack::maxtext, "v5e", "publication " + std::to_string(p), own + noise(random)});
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
  const IntervalFactors factors = interval_factors(with_intervals(rows), Stack::maxtext, "v5e");
  EXPECT_NEAR(factors.of(FigureKind::tpot).above, std::exp(0.3), 1e-12);
  EXPECT_NEAR(factors.of(FigureKind::tpot).below, std::exp(0.1), 1e-12);
  EXPECT_EQ(factors.of(FigureKind::throughput).above, factors.of(FigureKind::tpot).below);
  EXPECT_EQ(factors.of(FigureKind::throughput).below, factors.of(FigureKind::tpot).above);
}

TEST(Intervals, OwnRowsThenThoseOfTheStackThenAll) {
  const auto own = errors("one", "v5e", 6, 0.05) + errors("two", "v5e", 6, 0.05);
  auto rows = own + errors("three", "v6e", 8, 0.2);
  for (RowError other : errors("four", "h100", 12, 0.6)) {
    other.stack = Stack::trl_fsdp;
    rows.push_back(other);
  }
  const Calibration c = with_intervals(rows);
  const auto training = [&](Stack stack, const char* chip) {
    return interval_factors(c, stack, chip).of(FigureKind::training).above;
  };
  EXPECT_NEAR(training(Stack::maxtext, "v5e"), std::exp(0.05), 1e-12);
  EXPECT_NEAR(training(Stack::maxtext, "v6e"), std::exp(0.6), 1e-12);  // too few rows, and no factors of its own
  EXPECT_NEAR(training(Stack::trl_fsdp, "h100"), std::exp(0.6), 1e-12);
  EXPECT_FALSE(interval_factors(Calibration{}, Stack::maxtext, "v5e").of(FigureKind::training).is_calibrated());
  EXPECT_EQ(interval_factors(c, Stack::maxtext, "v5e").source,
            "90 % intervals: errors on 12 held-out rows of maxtext on v5e");
  // With factors of the chip but too few rows of it, the rows of its stack speak for it.
  Calibration measured_chip = c;
  for (CalibrationFactor& f : measured_chip.factors) f.stack = Stack::maxtext, f.chip = f.chip.empty() ? "" : "v6e";
  EXPECT_NEAR(interval_factors(measured_chip, Stack::maxtext, "v6e").of(FigureKind::training).above, std::exp(0.2),
              1e-12);
}

TEST(Intervals, NineRowsOfOnePublicationSpeakForTheirChip) {
  auto rows = errors("one", "v5e", 12, 0.5) + errors("two", "v5p", 9, 0.1);
  rows.back().log_ratio = 0.3;
  const auto on_v5p = [](const std::vector<RowError>& all) {
    return interval_factors(with_intervals(all), Stack::maxtext, "v5p").of(FigureKind::training);
  };
  EXPECT_NEAR(on_v5p(rows).above, std::exp(0.3), 1e-12);  // the largest of nine
  EXPECT_NEAR(on_v5p(rows).below, std::exp(0.3), 1e-12);
  rows.pop_back();
  EXPECT_NEAR(on_v5p(rows).above, std::exp(0.5), 1e-12);  // of all
  // Nineteen rows have a limit on either side.
  EXPECT_NEAR(conformal_factors(errors("two", "v5p", 18, 0.1)).at(0).limits.below, std::exp(0.1), 1e-12);
  EXPECT_EQ(conformal_factors(errors("two", "v5p", 19, 0.1)).at(0).limits.below, 1);
}

TEST(Intervals, WidenThePlan) {
  const Calibration c = with_intervals(errors("one", "v5e", 6, 0.4) + errors("two", "v5e", 6, -0.5));
  const Request request = small(1, 512, "v5e-1");
  const IntervalFactors factors = interval_factors(c, request.stack, "v5e");
  EXPECT_NEAR(factors.of(FigureKind::training).above, std::exp(0.4), 1e-12);
  EXPECT_NEAR(factors.of(FigureKind::training).below, std::exp(0.5), 1e-12);
  Plan plan = predict(request);
  widen_intervals(plan, request, factors);
  EXPECT_LE(plan.step.seconds.low, plan.step.seconds.value / factors.of(FigureKind::training).below * (1 + 1e-12));
  EXPECT_GE(plan.step.seconds.high, plan.step.seconds.value * factors.of(FigureKind::training).above * (1 - 1e-12));
  EXPECT_EQ(plan.sources.back(), factors.source);
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
  ASSERT_EQ(c.intervals.size(), 3U);
  for (size_t i = 0; i < c.intervals.size(); ++i) {
    EXPECT_EQ(read.intervals[i].kind, c.intervals[i].kind);
    EXPECT_EQ(read.intervals[i].evidence, c.intervals[i].evidence);
    EXPECT_EQ(read.intervals[i].chip, c.intervals[i].chip);
    EXPECT_NEAR(read.intervals[i].limits.below, c.intervals[i].limits.below, 1e-4);
    EXPECT_NEAR(read.intervals[i].limits.above, c.intervals[i].limits.above, 1e-4);
    EXPECT_EQ(read.intervals[i].rows, c.intervals[i].rows);
  }
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
