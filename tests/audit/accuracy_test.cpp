// SPDX-License-Identifier: GPL-3.0-or-later
// Accuracy of predictions: every published row once, calibration and holdout apart, refused rows counted as off.
#include "core/audit/accuracy.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>

#include "core/base/files.h"
#include "core/plan/document/simulated_rows.h"
#include "tests/base/scratch.h"
#include "tests/plan/shipped_rows.h"

namespace mw::audit {
namespace {

namespace fs = std::filesystem;
using plan::FigureKind;
using plan::MeasurementUse;
using testing::HasSubstr;

const AccuracyReport& shipped() {
  static const AccuracyReport report = accuracy({.resources = MW_RESOURCES, .date = "2026-11-25"}, test::context());
  return report;
}

const AccuracyRow* row(const AccuracyReport& report, const std::string& id) {
  for (const AccuracyRow& r : report.rows)
    if (r.id == id) return &r;
  return nullptr;
}

TEST(Accuracy, PredictsEveryPublishedRowAndTheServingTable) {
  for (const plan::Measurement& m : test::shipped_rows()) {
    const AccuracyRow* found = row(shipped(), m.id);
    ASSERT_TRUE(found) << m.id;
    EXPECT_EQ(found->use, m.purpose) << m.id;
    EXPECT_EQ(found->measured, m.value) << m.id;
    EXPECT_TRUE(found->predicted > 0 || !found->refused.empty()) << m.id;
  }
  const auto cells = std::count_if(shipped().rows.begin(), shipped().rows.end(), [](const AccuracyRow& r) {
    return r.id.starts_with("arXiv 2605.25645") && r.use == MeasurementUse::holdout;
  });
  EXPECT_EQ(static_cast<size_t>(cells) + test::shipped_rows().size(), shipped().rows.size());
  EXPECT_GE(cells, 20);
  EXPECT_TRUE(row(shipped(), "arXiv 2605.25645 v6e-8, 1024/512 at 4/s, ms median TTFT"));
}

TEST(Accuracy, GroupsAddUpToTotals) {
  for (const AccuracyGroup& total : shipped().totals) {
    if (total.stable_only || total.vendor) continue;
    int rows = 0, inside = 0;
    double errors = 0;
    for (const AccuracyGroup& g : shipped().groups)
      if (g.kind == total.kind && g.use == total.use) rows += g.rows, inside += g.inside, errors += g.mean * g.rows;
    EXPECT_EQ(rows, total.rows);
    EXPECT_EQ(inside, total.inside);
    EXPECT_NEAR(errors / rows, total.mean, 1e-9);
    EXPECT_LE(total.inside, total.with_interval);
    EXPECT_LE(total.with_interval, total.rows);
  }
}

TEST(Accuracy, IntervalsOfAllKindsAddUp) {
  int rows = 0, inside = 0;
  for (const AccuracyGroup& g : shipped().totals)
    if (g.use == MeasurementUse::holdout && !g.stable_only && !g.vendor) rows += g.with_interval, inside += g.inside;
  const IntervalSummary& s = shipped().intervals;
  EXPECT_EQ(s.all.rows, rows);
  EXPECT_EQ(s.all.inside, inside);
  EXPECT_LT(s.calibrated_chips.rows, rows);  // RTX 4090, for one, has held-out rows only
  EXPECT_GT(s.calibrated_chips.rows, rows / 2);
  EXPECT_LT(s.calibrated_chips.median_width, s.all.median_width);
  EXPECT_EQ(to_json(shipped()).at("held_out_intervals").at("all").at("rows"), rows);
}

TEST(Accuracy, TrainingOnTpusAndGpusIsReportedApart) {
  const auto total = [](std::optional<hardware::Vendor> vendor) {
    const auto& all = shipped().totals;
    const auto found = std::find_if(all.begin(), all.end(), [&](const AccuracyGroup& g) {
      return g.kind == FigureKind::training && g.use == MeasurementUse::holdout && g.vendor == vendor;
    });
    return found == all.end() ? AccuracyGroup() : *found;
  };
  const AccuracyGroup tpu = total(hardware::Vendor::tpu), gpu = total(hardware::Vendor::gpu), both = total({});
  EXPECT_GT(tpu.rows, 10);
  EXPECT_GT(gpu.rows, 10);
  EXPECT_EQ(tpu.rows + gpu.rows, both.rows);
  EXPECT_NEAR(tpu.mean * tpu.rows + gpu.mean * gpu.rows, both.mean * both.rows, 1e-9);
  EXPECT_NE(tpu.mean, gpu.mean);
  EXPECT_THAT(totals_text(shipped()), testing::AllOf(HasSubstr("training, TPU"), HasSubstr("training, GPU")));
  std::vector<std::string> vendors;
  const Json json = to_json(shipped());
  for (const Json& group : json["totals"])
    if (group.contains("vendor")) vendors.push_back(group["vendor"]);
  EXPECT_THAT(vendors, testing::ElementsAre("tpu", "gpu", "tpu", "gpu"));
}

// The bars that held-out rows are kept under; no step time, output rate or time per token is off by more than 30 %.
TEST(Accuracy, HeldOutRowsStayUnderTheirBars) {
  const auto mean = [](FigureKind kind, std::optional<hardware::Vendor> vendor, bool stable) {
    for (const AccuracyGroup& g : shipped().totals)
      if (g.use == MeasurementUse::holdout && g.kind == kind && g.vendor == vendor && g.stable_only == stable)
        return g.mean;
    return 1.0;
  };
  EXPECT_LT(mean(FigureKind::training, hardware::Vendor::tpu, false), 0.08);
  EXPECT_LT(mean(FigureKind::training, hardware::Vendor::gpu, false), 0.12);
  EXPECT_LT(mean(FigureKind::memory, {}, false), 0.05);
  EXPECT_LT(mean(FigureKind::throughput, {}, false), 0.08);
  EXPECT_LT(mean(FigureKind::tpot, {}, false), 0.08);
  EXPECT_LT(mean(FigureKind::ttft, {}, true), 0.15);
  for (const AccuracyRow& r : shipped().rows)
    if (r.kind != FigureKind::ttft && r.counted) {
      EXPECT_LT(std::abs(r.error), 0.3) << r.id;
    }
}

// Every interval leaves the row's own run out. Bounds of 85 and 95 % in whole rows: of 66, 56 to 63.
TEST(Accuracy, IntervalsCoverNineOfTenHeldOutRows) {
  for (const AccuracyGroup& total : shipped().totals) {
    if (total.use != MeasurementUse::holdout || total.stable_only || total.vendor) continue;
    EXPECT_GE(total.with_interval, 30) << to_string(total.kind);
    EXPECT_GE(total.inside, std::floor(0.85 * total.with_interval)) << to_string(total.kind);
    EXPECT_LE(total.inside, std::ceil(0.95 * total.with_interval)) << to_string(total.kind);
    EXPECT_GE(total.inside_apart, std::floor(0.85 * total.with_interval)) << to_string(total.kind);
    const bool is_narrow = total.kind != FigureKind::training && total.kind != FigureKind::ttft;
    EXPECT_LT(total.median_width, is_narrow ? 0.25 : 0.45) << to_string(total.kind);
  }
}

// A held-out value changes no prediction and no interval of its own run, only those of other runs.
TEST(Accuracy, ValuesOfARunChangeNoIntervalOfIt) {
  const test::Scratch folder;
  fs::create_directories(folder.path() / "hardware");
  fs::create_directories(folder.path() / "results");
  std::ofstream(folder.path() / "results" / "paper-2605.25645.json") << R"({"sets": []})";
  Json rows = read_json(fs::path(MW_RESOURCES) / "hardware" / "measurements.json");
  const Json all = rows["rows"];
  rows["rows"] = Json::array();
  for (const Json& r : all)
    if (r["stack"] == "maxtext" && r["target"].get<std::string>().find("v5") != std::string::npos)
      rows["rows"].push_back(r);
  const auto predicted = [&] {
    std::ofstream(folder.path() / "hardware" / "measurements.json") << rows.dump();
    return accuracy({.resources = folder.path(), .date = "2026-11-25"}, test::context());
  };
  const AccuracyReport before = predicted();
  ASSERT_GT(before.rows.size(), 30U);
  for (size_t changed : {4U, 20U, 30U}) {
    while (rows["rows"][changed]["use"] != "holdout") ++changed;
    Json& value = rows["rows"][changed]["value"];
    const Json kept = value;
    value = 1.5 * kept.get<double>();
    const AccuracyReport after = predicted();
    value = kept;
    int others = 0;
    for (size_t i = 0; i < before.rows.size(); ++i) {
      const AccuracyRow &a = before.rows[i], &b = after.rows[i];
      EXPECT_EQ(a.predicted, b.predicted) << a.id;
      if (i != changed) {
        others += a.low != b.low || a.high != b.high ? 1 : 0;
        continue;
      }
      EXPECT_EQ(a.low, b.low) << a.id;
      EXPECT_EQ(a.high, b.high) << a.id;
      EXPECT_EQ(a.low_apart, b.low_apart) << a.id;
      EXPECT_EQ(a.high_apart, b.high_apart) << a.id;
      EXPECT_LT(a.low, a.high);
    }
    EXPECT_GT(others, 5);
  }
}

TEST(Accuracy, ShippedIntervalsAreThoseOfTheShippedRows) {
  const plan::Calibration filed = test::context().calibration;
  plan::Calibration fresh = filed;
  plan::calibrate_intervals(fresh, errors_for_intervals(shipped().rows));
  ASSERT_EQ(fresh.intervals.size(), filed.intervals.size()) << "run scripts/calibrate.sh";
  for (size_t i = 0; i < fresh.intervals.size(); ++i) {
    const plan::ConformalFactor &a = fresh.intervals[i], &b = filed.intervals[i];
    EXPECT_EQ(a.kind, b.kind);
    EXPECT_EQ(a.stack, b.stack);
    EXPECT_NEAR(a.limits.below, b.limits.below, 1e-3) << "run scripts/calibrate.sh";
    EXPECT_NEAR(a.limits.above, b.limits.above, 1e-3) << "run scripts/calibrate.sh";
  }
  ASSERT_EQ(fresh.scores.size(), filed.scores.size());
  for (size_t i = 0; i < fresh.scores.size(); ++i)
    EXPECT_NEAR(fresh.scores[i].spreads, filed.scores[i].spreads, 1e-2) << "run scripts/calibrate.sh";
  ASSERT_EQ(fresh.errors.size(), filed.errors.size()) << "run scripts/calibrate.sh";
  for (const AccuracyRow& r : shipped().rows) {
    const auto limits = [&](const plan::Calibration& c) {
      return plan::interval_factors(c, plan::parse_stack(r.stack), r.chip, r.size).of(r.kind);
    };
    EXPECT_NEAR(limits(fresh).above, limits(filed).above, 3e-3) << r.id << ": run scripts/calibrate.sh";
    EXPECT_NEAR(limits(fresh).below, limits(filed).below, 3e-3) << r.id << ": run scripts/calibrate.sh";
  }
}

TEST(Accuracy, LimitsOfTrainingRatesMirrorThoseOfStepTimes) {
  const std::vector<plan::RowError> all = errors_for_intervals(shipped().rows);
  int rates = 0;
  for (const AccuracyRow& r : shipped().rows) {
    if (r.has_interval()) {
      EXPECT_LE(r.low, r.predicted) << r.id;
      EXPECT_GE(r.high, r.predicted) << r.id;
    }
    if (r.kind != FigureKind::training || !r.is_rate || !r.counted) continue;
    const std::string run = errors_for_intervals({r}).at(0).run;
    std::vector<plan::RowError> others;
    for (const plan::RowError& e : all)
      if (e.kind == FigureKind::training && e.run != run) others.push_back(e);
    plan::Calibration calibration;
    plan::calibrate_intervals(calibration, others);
    const plan::IntervalFactors factors =
        plan::interval_factors(calibration, plan::parse_stack(r.stack), r.chip, r.size);
    if (!factors.is_own(FigureKind::training)) continue;
    const plan::LimitFactors& time = factors.of(FigureKind::training);
    EXPECT_NEAR(r.low, r.predicted / time.above, 1e-9 * r.predicted) << r.id;
    EXPECT_NEAR(r.high, r.predicted * time.below, 1e-9 * r.predicted) << r.id;
    rates += std::abs(time.above - time.below) > 0.02 ? 1 : 0;
  }
  EXPECT_GT(rates, 0);
}

TEST(Accuracy, ServersArePredictedBySimulation) {
  const AccuracyRow* ttft = row(shipped(), "v6e-8-llama3.3-70b-c64-ttft, ms mean TTFT");
  ASSERT_TRUE(ttft);
  EXPECT_EQ(ttft->kind, FigureKind::ttft);
  EXPECT_EQ(ttft->load, ServedLoad::stable);
  for (const plan::Measurement& m : test::shipped_rows())
    if (m.id == ttft->id) {
      plan::Measurement calibrated = m;
      plan::apply(test::context().calibration, calibrated.request);
      EXPECT_EQ(ttft->predicted, plan::simulated_row(calibrated).ttft.mean);
    }
}

TEST(Accuracy, PromptsOfEarlierRunsAreCached) {
  for (plan::Measurement m : test::shipped_rows()) {
    if (m.id != "paper-burst-2-v6e-8, ms median TTFT") continue;
    plan::apply(test::context().calibration, m.request);
    ASSERT_EQ(m.load.earlier.size(), 1U);
    const double after = plan::simulated_row(m).ttft.median;
    m.load.earlier.clear();
    const double alone = plan::simulated_row(m).ttft.median;
    // The first 64 of 128 prompts begin with the 256 tokens of the run before: half of what the median request waits
    // for.
    EXPECT_GT(after, 0.45 * alone);
    EXPECT_LT(after, 0.7 * alone);
    return;
  }
  FAIL();
}

TEST(Accuracy, FiltersByStackChipAndKind) {
  const AccuracyReport some =
      accuracy({.resources = MW_RESOURCES, .date = "2026-11-25", .filter = {"maxtext", "v5p", FigureKind::training}},
               test::context());
  ASSERT_FALSE(some.rows.empty());
  EXPECT_LT(some.rows.size(), shipped().rows.size());
  for (const AccuracyRow& r : some.rows) {
    EXPECT_EQ(r.stack, "maxtext");
    EXPECT_EQ(r.chip, "v5p");
    EXPECT_EQ(r.kind, FigureKind::training);
    EXPECT_EQ(r.predicted, row(shipped(), r.id)->predicted);
  }
  EXPECT_EQ(some.groups.size(), 2U);  // calibration and holdout
  try {
    accuracy({.resources = MW_RESOURCES, .date = "2026-11-25", .filter = {"", "h1000", {}}}, test::context());
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.problem().id, "ACCURACY");
  }
}

TEST(Accuracy, RefusedRowCountsAsAnErrorOfAHundredPercent) {
  const test::Scratch folder;
  fs::create_directories(folder.path() / "hardware");
  fs::create_directories(folder.path() / "results");
  std::ofstream(folder.path() / "results" / "paper-2605.25645.json") << R"({"sets": []})";
  const auto serving = [](const char* id, int chips, const char* target) {
    return Json{{"id", id},
                {"use", "holdout"},
                {"value", 100},
                {"unit", "output tokens/s"},
                {"model", "llama3.1-70b"},
                {"target", target},
                {"stack", "vllm-gpu"},
                {"mesh", {{"tp", chips}}},
                {"work", "serve"},
                {"input_len", 1024},
                {"output_len", 128},
                {"max_model_len", 2048},
                {"concurrency", 4},
                {"source", "mine"}};
  };
  std::ofstream(folder.path() / "hardware" / "measurements.json")
      << Json{{"rows", {serving("fits", 8, "8xh100"), serving("does not fit", 1, "1xh100")}}}.dump();
  const AccuracyReport report = accuracy({.resources = folder.path(), .date = "2026-11-25"}, test::context());
  ASSERT_EQ(report.rows.size(), 2U);
  EXPECT_EQ(report.rows[0].refused, "");
  EXPECT_NE(report.rows[1].refused, "");
  ASSERT_EQ(report.totals.size(), 1U);
  EXPECT_EQ(report.totals[0].refused, 1);
  EXPECT_GE(report.totals[0].off, 1);
  EXPECT_NEAR(report.totals[0].mean, (std::abs(report.rows[0].error) + 1) / 2, 1e-12);
  const Json json = to_json(report);
  EXPECT_TRUE(json["rows"][1]["predicted"].is_null());
  EXPECT_TRUE(json["rows"][1].contains("refused"));
  EXPECT_THAT(to_text(report), HasSubstr("refused: does not fit"));
  EXPECT_THAT(to_markdown(report), HasSubstr("| does not fit | holdout | vllm-gpu | h100 | 100 | - |"));
}

}  // namespace
}  // namespace mw::audit
