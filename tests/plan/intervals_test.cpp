// SPDX-License-Identifier: GPL-3.0-or-later
// 90 % intervals by conformal prediction: the rank of the quantile, coverage of rows that were not fitted to, and which
// rows speak for a chip.
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

using Evidence = ConformalFactor::Evidence;
using test::catalogue;
using test::measured;
using test::small;

// Rows whose steps took 0.8 of the speed of the default, with a normal error of 8 % of each.
std::vector<Measurement> noisy(int count, unsigned seed, MeasurementUse use, const std::string& target) {
  std::vector<Measurement> rows = measured(0.8, use, count, target);
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(0, 0.08);
  for (Measurement& m : rows) m.value *= std::exp(noise(random));
  return rows;
}

Calibration fitted(const std::vector<Measurement>& rows) {
  Calibration c{.basis = {}, .factors = with_means(fit_factors(rows))};
  c.intervals = conformal_factors(rows, c);
  return c;
}

TEST(Intervals, QuantileHasTheRankThatCoversNewScores) {
  std::vector<double> scores;
  for (int i = 1; i <= 8; ++i) scores.push_back(0.01 * i);
  EXPECT_TRUE(std::isinf(conformal_quantile(scores, 0.9)));  // rank 9 of 8
  EXPECT_TRUE(std::isinf(conformal_quantile({}, 0.9)));
  scores.push_back(0.09);
  EXPECT_EQ(conformal_quantile(scores, 0.9), 0.09);  // rank 9 of 9
  for (int i = 10; i <= 19; ++i) scores.push_back(0.01 * i);
  EXPECT_EQ(conformal_quantile(scores, 0.9), 0.18);  // rank 18 of 19
}

TEST(Intervals, CoverNineOfTenRowsThatWereNotFitted) {
  int rows = 0, inside = 0;
  for (unsigned seed = 0; seed < 6; ++seed) {
    const Calibration c = fitted(noisy(14, 100 + seed, MeasurementUse::calibration, "v5e-1"));
    for (const Measurement& m : noisy(40, 200 + seed, MeasurementUse::holdout, "v5e-1")) {
      Request request = m.request;
      apply(c, request);
      const double factor = interval_factors(c, request).training, ratio = predicted(m, request).error + 1;
      ++rows;
      inside += 1 / factor <= ratio && ratio <= factor ? 1 : 0;
      Plan plan = predict(request);
      widen_intervals(plan, request, interval_factors(c, request));
      EXPECT_LE(plan.step.seconds.low, plan.step.seconds.value / factor * (1 + 1e-12));
      EXPECT_GE(plan.step.seconds.high, plan.step.seconds.value * factor * (1 - 1e-12));
    }
  }
  EXPECT_GE(inside, 0.84 * rows) << inside << " of " << rows;
  EXPECT_LE(inside, 0.99 * rows) << inside << " of " << rows;
}

TEST(Intervals, ChipWithoutRowsGetsTheErrorsOnChipsLeftOut) {
  std::vector<Measurement> rows = noisy(12, 1, MeasurementUse::calibration, "v5e-1");
  for (Measurement& m : measured(0.5, MeasurementUse::calibration, 12, "v6e-1")) rows.push_back(std::move(m));
  const Calibration c = fitted(rows);
  const double own = interval_factors(c, small(1, 512, "v5e-1")).training,
               other = interval_factors(c, small(1, 512, "v5p-1x1x1")).training;
  EXPECT_GT(own, 1);
  EXPECT_LT(own, 1.35);
  EXPECT_GT(other, 1.4);  // 0.8 and 0.5 of the default are far apart
  EXPECT_EQ(interval_factors(Calibration{}, small(1, 512, "v5e-1")).training, 0);
}

TEST(Intervals, HeldOutRowsDoNotMatter) {
  std::vector<Measurement> rows = noisy(12, 1, MeasurementUse::calibration, "v5e-1");
  const auto before = conformal_factors(rows, fitted(rows));
  for (Measurement& m : noisy(6, 2, MeasurementUse::holdout, "v5e-1")) {
    m.id += " held out";
    m.value *= 3;
    rows.push_back(std::move(m));
  }
  const auto after = conformal_factors(rows, fitted(rows));
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i].factor, after[i].factor);
}

TEST(Intervals, FileKeepsThem) {
  const Calibration c = fitted(noisy(12, 1, MeasurementUse::calibration, "v5e-1"));
  const test::Scratch folder;
  std::ofstream(folder.path() / "calibration.json") << to_json(c).dump();
  const Calibration read = read_calibration(folder.path() / "calibration.json");
  ASSERT_EQ(read.intervals.size(), c.intervals.size());
  ASSERT_FALSE(c.intervals.empty());
  for (size_t i = 0; i < c.intervals.size(); ++i) {
    EXPECT_EQ(read.intervals[i].kind, c.intervals[i].kind);
    EXPECT_EQ(read.intervals[i].chip, c.intervals[i].chip);
    EXPECT_NEAR(read.intervals[i].factor, c.intervals[i].factor, 1e-4);
    EXPECT_EQ(read.intervals[i].rows, c.intervals[i].rows);
  }
  Json bad = to_json(c);
  bad["intervals"][0]["factor"] = 0.5;
  std::ofstream(folder.path() / "bad.json") << bad.dump();
  EXPECT_THROW(read_calibration(folder.path() / "bad.json"), Error);
}

}  // namespace
}  // namespace mw::plan
