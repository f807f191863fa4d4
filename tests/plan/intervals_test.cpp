// SPDX-License-Identifier: GPL-3.0-or-later
// 90 % intervals from errors on held-out rows: the weighted quantile, coverage of new publications, and which rows
// speak for a chip.
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

// Publications with a bias of their own of 10 % and noise of 5 % in their rows.
TEST(Intervals, CoverNineOfTenRowsOfPublicationsThatWereLeftOut) {
  std::mt19937 random(7);
  std::normal_distribution<double> bias(0, 0.1), noise(0, 0.05);
  std::vector<RowError> rows;
  for (int p = 0; p < 40; ++p) {
    const double own = bias(random);
    for (int i = 0; i < 5 + p % 7; ++i)
      rows.push_back(
          {kTraining, Stack::maxtext, "v5e", "publication " + std::to_string(p), std::abs(own + noise(random))});
  }
  int inside = 0;
  for (const RowError& row : rows) {
    const std::vector<ConformalFactor> factors = conformal_factors(rows, publication_of(row.source));
    ASSERT_FALSE(factors.empty());
    inside += row.log_ratio <= std::log(factors.front().factor) + 1e-12 ? 1 : 0;
  }
  EXPECT_GE(inside, 0.85 * static_cast<double>(rows.size())) << inside << " of " << rows.size();
  EXPECT_LE(inside, 0.95 * static_cast<double>(rows.size())) << inside << " of " << rows.size();
}

TEST(Intervals, OwnRowsThenThoseOfTheStackThenAll) {
  const auto own = errors("one", "v5e", 6, 0.05) + errors("two", "v5e", 6, 0.05);
  auto rows = own + errors("three", "v6e", 8, 0.2);
  for (RowError other : errors("four", "h100", 12, 0.6)) {
    other.stack = Stack::trl_fsdp;
    rows.push_back(other);
  }
  const Calibration c = with_intervals(rows);
  const auto training = [&](Stack stack, const char* chip) { return interval_factors(c, stack, chip).training; };
  EXPECT_NEAR(training(Stack::maxtext, "v5e"), std::exp(0.05), 1e-12);
  EXPECT_NEAR(training(Stack::maxtext, "v6e"), std::exp(0.6), 1e-12);  // too few rows, and no factors of its own
  EXPECT_NEAR(training(Stack::trl_fsdp, "h100"), std::exp(0.6), 1e-12);
  EXPECT_EQ(interval_factors(Calibration{}, Stack::maxtext, "v5e").training, 0);
  EXPECT_EQ(interval_factors(c, Stack::maxtext, "v5e").source,
            "90 % intervals: errors on 12 held-out rows of maxtext on v5e");
  // With factors of the chip but too few rows of it, the rows of its stack speak for it.
  Calibration measured_chip = c;
  for (CalibrationFactor& f : measured_chip.factors) f.stack = Stack::maxtext, f.chip = f.chip.empty() ? "" : "v6e";
  EXPECT_NEAR(interval_factors(measured_chip, Stack::maxtext, "v6e").training, std::exp(0.2), 1e-12);
}

TEST(Intervals, NineRowsOfOnePublicationSpeakForTheirChip) {
  auto rows = errors("one", "v5e", 12, 0.5) + errors("two", "v5p", 9, 0.1);
  rows.back().log_ratio = 0.3;
  const auto on_v5p = [](const std::vector<RowError>& all) {
    return interval_factors(with_intervals(all), Stack::maxtext, "v5p").training;
  };
  EXPECT_NEAR(on_v5p(rows), std::exp(0.3), 1e-12);  // the largest of nine
  rows.pop_back();
  EXPECT_NEAR(on_v5p(rows), std::exp(0.5), 1e-12);  // of all
}

TEST(Intervals, WidenThePlan) {
  const Calibration c = with_intervals(errors("one", "v5e", 6, 0.4) + errors("two", "v5e", 6, 0.4));
  const Request request = small(1, 512, "v5e-1");
  const IntervalFactors factors = interval_factors(c, request.stack, "v5e");
  const double factor = factors.training;
  EXPECT_NEAR(factor, std::exp(0.4), 1e-12);
  Plan plan = predict(request);
  widen_intervals(plan, request, factors);
  EXPECT_LE(plan.step.seconds.low, plan.step.seconds.value / factor * (1 + 1e-12));
  EXPECT_GE(plan.step.seconds.high, plan.step.seconds.value * factor * (1 - 1e-12));
  EXPECT_EQ(plan.sources.back(), factors.source);
}

TEST(Intervals, FileKeepsThem) {
  const Calibration c = with_intervals(errors("one", "v5e", 6, 0.05) + errors("two", "v5e", 6, 0.1));
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
    EXPECT_NEAR(read.intervals[i].factor, c.intervals[i].factor, 1e-4);
    EXPECT_EQ(read.intervals[i].rows, c.intervals[i].rows);
  }
  Json bad = to_json(c);
  bad["intervals"][0]["factor"] = 0.5;
  EXPECT_THROW(read_calibration(written(bad)), Error);
  Json older = to_json(c);
  older["intervals"].push_back({{"kind", "tpot"}, {"evidence", "measured chips"}, {"factor", 1.1}, {"rows", 22}});
  EXPECT_TRUE(read_calibration(written(older)).intervals.empty());
}

}  // namespace
}  // namespace mw::plan
