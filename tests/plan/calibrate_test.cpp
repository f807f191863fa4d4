// SPDX-License-Identifier: GPL-3.0-or-later
// The fit: it finds what is there, a stray row does not carry it away, and held out rows never matter.
#include "core/plan/calibration/calibration_file.h"

#include <gmock/gmock.h>

#include <cmath>
#include <tuple>

#include "tests/base/scratch.h"
#include "tests/plan/measured_rows.h"
#include "tests/plan/shipped_rows.h"

namespace mw::plan {
namespace {

namespace fs = std::filesystem;
using test::context;
using test::kHardware;
using test::measured;
using test::shipped_rows;
using test::small;
using testing::HasSubstr;

Calibration fit(const std::vector<Measurement>& rows, const FitOptions& options = {}) {
  return {.basis = {}, .factors = with_means(fit_factors(rows, options))};
}

double factor_of(const Calibration& c, const std::string& chip) {
  for (const CalibrationFactor& x : c.factors)
    if (x.chip == chip && x.name == "matmul") return x.value;
  return 0;
}

ErrorSummary errors_of(const std::vector<Measurement>& rows, const Calibration& calibration, MeasurementUse purpose) {
  return summarise(rows, predict_all(rows, calibration), purpose, is_time);
}

TEST(Calibrate, RecoversTheEfficiencyOfGeneratedRows) {
  for (const double truth : {0.6, 0.9, 1.1}) {
    const std::vector<Measurement> rows = measured(truth, MeasurementUse::calibration);
    const Calibration c = fit(rows, {.trust = 100});
    EXPECT_NEAR(factor_of(c, "v5e"), truth, 0.002);
    EXPECT_LT(errors_of(rows, c, MeasurementUse::calibration).mean, 0.002);
    EXPECT_GT(errors_of(rows, {}, MeasurementUse::calibration).mean, 0.03);
  }
}

// A simulator that takes a tenth longer than the steady state: the fit brings the simulation to the measured values.
TEST(Calibrate, FitsServersToTheirSimulation) {
  std::vector<Measurement> rows;
  for (const Measurement& m : shipped_rows())
    if (m.request.stack == model::Stack::sglang && m.request.target.chip.id == "h100") rows.push_back(m);
  const auto simulated = [](const Measurement& m) {
    const double steady = predicted(m, m.request).predicted;
    return more_is_faster(m.what) ? steady / 1.1 : steady * 1.1;
  };
  const auto mean_error = [&](const FitOptions& options) {
    const Calibration c = fit(rows, options);
    double sum = 0;
    int speeds = 0;
    for (Measurement m : rows)
      if (is_fitted(m)) {
        apply(c, m.request);
        sum += compare(m, simulated(m)).error, ++speeds;
      }
    return sum / speeds;
  };
  EXPECT_NEAR(mean_error({}), 0.1, 0.02);
  EXPECT_NEAR(mean_error({.simulated = simulated}), 0, 0.02);
}

TEST(Calibrate, FitsTimesToFirstTokenUnderLoadOnlyWithASimulator) {
  std::vector<Measurement> rows;
  for (const Measurement& m : shipped_rows())
    if (m.id.starts_with("4xh100-qwen3-32b-sglang") && kind_of(m.what) == FigureKind::ttft) rows.push_back(m);
  ASSERT_FALSE(rows.empty());
  EXPECT_TRUE(fit_factors(rows).empty());
  const auto factors = fit_factors(rows, {.simulated = [](const Measurement& m) { return 2 * m.value; }});
  const auto matmul = std::find_if(factors.begin(), factors.end(), [](const auto& f) { return f.name == "matmul"; });
  ASSERT_TRUE(matmul != factors.end());
  EXPECT_GT(matmul->value, 1.05);  // twice as slow as measured
}

// Rows in fp8 and in bf16 tell how far their products are from their limits apart.
TEST(Calibrate, TellsProductsInFp8Apart) {
  for (const double truth : {0.6, 0.9}) {
    std::vector<Measurement> rows;
    for (Measurement m : shipped_rows())
      if (m.request.stack == model::Stack::tensorrt_llm && is_speed(m.what) && m.request.serve.output_len == 128) {
        m.purpose = MeasurementUse::calibration;
        Request real = m.request;
        real.efficiencies.fp8.value *= truth;
        m.value = predicted(m, real).predicted;
        rows.push_back(std::move(m));
      }
    double fp8 = 0, matmul = 0;
    for (const CalibrationFactor& f : fit_factors(rows, {.trust = 100, .serving = {"matmul", "fp8"}}))
      (f.name == "fp8" ? fp8 : matmul) = f.value;
    EXPECT_NEAR(fp8, truth, 0.01);
    EXPECT_NEAR(matmul, 1, 0.01);
  }
}

// Kernels of one maker say nothing about those of another.
TEST(Calibrate, TheMeanOfFp8HoldsForItsMaker) {
  Calibration c;
  for (const char* name : {"fp8", "memory"}) {
    CalibrationFactor f{model::Stack::vllm_gpu, "mi300x", hardware::Vendor::gpu, name, 0.5, 0.5, 0.5, {"a row"}};
    f.maker = "AMD";
    c.factors.push_back(f);
  }
  c.factors = with_means(std::move(c.factors));
  const auto ratios = [&](const char* target) {
    Request r;
    r.target = context().catalogue.target(target);
    set_stack(r, model::Stack::vllm_gpu);
    const Efficiencies before = r.efficiencies;
    apply(c, r);
    return std::pair(r.efficiencies.fp8.value / before.fp8.value, r.efficiencies.memory.value / before.memory.value);
  };
  EXPECT_EQ(ratios("1xmi325x"), std::pair(0.5, 0.5));
  EXPECT_EQ(ratios("1xh100"), std::pair(1.0, 0.5));
}

TEST(Calibrate, IsRobustAgainstAnOutlier) {
  std::vector<Measurement> rows = measured(0.8, MeasurementUse::calibration, 7);
  rows[3].value *= 4;
  EXPECT_NEAR(factor_of(fit(rows), "v5e"), 0.8, 0.08);
}

// H200 has the die of H100: its factors are nearer than the mean of all GPUs.
TEST(Calibrate, ChipsOfOneDieShareFactors) {
  Calibration c;
  for (const auto& [chip, value] : {std::pair("h100", 1.1), std::pair("b200", 0.6), std::pair("", 0.8)})
    c.factors.push_back({.stack = model::Stack::megatron,
                         .chip = chip,
                         .vendor = hardware::Vendor::gpu,
                         .name = "matmul",
                         .value = value,
                         .low = value,
                         .high = value});
  const auto applied = [&](const char* target) {
    Request r;
    r.target = context().catalogue.target(target);
    set_stack(r, model::Stack::megatron);
    r.efficiencies.matmul.value = 0.5;
    apply(c, r);
    return r.efficiencies.matmul.value;
  };
  EXPECT_DOUBLE_EQ(applied("8xh100"), 0.55);
  EXPECT_DOUBLE_EQ(applied("8xh200"), 0.55);
  EXPECT_DOUBLE_EQ(applied("8xgb200"), 0.3);
  EXPECT_DOUBLE_EQ(applied("8xl40s"), 0.4);
}

// An NVIDIA chip without factors takes the mean of the NVIDIA chips, not one of these and of an AMD chip.
TEST(Calibrate, ChipsWithoutFactorsTakeTheMeanOfTheirMaker) {
  Calibration c;
  for (const auto& [chip, maker, value] :
       {std::tuple("h100", "NVIDIA", 1.2), std::tuple("b200", "NVIDIA", 0.3), std::tuple("mi300x", "AMD", 0.5)}) {
    CalibrationFactor f{model::Stack::vllm_gpu, chip, hardware::Vendor::gpu, "matmul", value, value, value, {"a row"}};
    f.maker = maker;
    c.factors.push_back(f);
  }
  c.factors = with_means(std::move(c.factors));
  const test::Scratch scratch;
  const Calibration read = read_calibration(scratch.put("calibration.json", to_json(c).dump()));
  const auto applied = [&](const Calibration& calibration, const char* target, const char* maker = nullptr) {
    Request r;
    r.target = context().catalogue.target(target);
    if (maker) r.target.chip.maker = maker;
    set_stack(r, model::Stack::vllm_gpu);
    r.efficiencies.matmul.value = 0.5;
    apply(calibration, r);
    return r.efficiencies.matmul.value;
  };
  for (const Calibration* calibration : {static_cast<const Calibration*>(&c), &read}) {
    EXPECT_NEAR(applied(*calibration, "1xrtx4090"), 0.5 * std::sqrt(1.2 * 0.3), 1e-4);
    EXPECT_NEAR(applied(*calibration, "1xmi355x"), 0.25, 1e-4);
    EXPECT_NEAR(applied(*calibration, "1xmi300x"), 0.25, 1e-4);
    // A maker without factors, and a chip without a maker: the mean of all.
    EXPECT_NEAR(applied(*calibration, "1xrtx4090", "Somebody"), 0.5 * std::cbrt(1.2 * 0.3 * 0.5), 1e-4);
    EXPECT_NEAR(applied(*calibration, "1xrtx4090", ""), 0.5 * std::cbrt(1.2 * 0.3 * 0.5), 1e-4);
  }
  for (const hardware::Chip& chip : context().catalogue.chips()) EXPECT_NE(chip.maker, "") << chip.id;
}

TEST(Calibrate, HeldOutRowsAreOnlyPredicted) {
  std::vector<Measurement> rows = measured(0.8, MeasurementUse::calibration);
  const double alone = factor_of(fit(rows), "v5e");
  for (Measurement& m : measured(0.3, MeasurementUse::holdout)) {
    m.id += " held out";
    rows.push_back(m);
  }
  const Calibration c = fit(rows);
  EXPECT_DOUBLE_EQ(factor_of(c, "v5e"), alone);
  const ErrorSummary held_out = errors_of(rows, c, MeasurementUse::holdout);
  EXPECT_EQ(held_out.rows, 5);
  EXPECT_GT(held_out.mean, 0.2);  // seen before accepting
}

TEST(Calibrate, OtherChipsTakeTheMeanWithItsSource) {
  Calibration c = fit(measured(0.7, MeasurementUse::calibration), {.trust = 100});
  c.basis = {"2026-11-21", "a test"};
  Request own = small(1, 512), other = small(1, 512), another_stack = small(1, 512);
  other.target = context().catalogue.target("v6e-1");
  set_stack(other, model::Stack::maxtext);
  set_stack(another_stack, model::Stack::tunix);
  const double default_other = other.efficiencies.matmul.value, default_own = own.efficiencies.matmul.value,
               default_stack = another_stack.efficiencies.matmul.value;
  apply(c, own);
  apply(c, other);
  apply(c, another_stack);
  EXPECT_NEAR(own.efficiencies.matmul.value, 0.7 * default_own, 0.01);
  EXPECT_EQ(own.efficiencies.matmul.origin, Origin::measured);
  EXPECT_THAT(own.efficiencies.matmul.source, HasSubstr("2026-11-21, a test, fitted to 5 measured steps"));
  EXPECT_NEAR(other.efficiencies.matmul.value, 0.7 * default_other, 0.01);
  EXPECT_EQ(other.efficiencies.matmul.origin, Origin::transferred);
  EXPECT_DOUBLE_EQ(another_stack.efficiencies.matmul.value, default_stack);
}

TEST(Calibrate, StaysWithinItsBounds) {
  std::vector<Measurement> rows = measured(0.8, MeasurementUse::calibration);
  for (Measurement& m : rows) m.value *= 50;
  EXPECT_GE(factor_of(fit(rows), "v5e"), FitOptions{}.shortest - 1e-3);
  EXPECT_LE(factor_of(fit(measured(1.5, MeasurementUse::calibration)), "v5e"), FitOptions{}.longest + 1e-3);
}

// Rows without experts or partial sums say nothing about these.
TEST(Calibrate, LeavesOutWhatNoRowDependsOn) {
  const auto factors =
      fit_factors(measured(0.8, MeasurementUse::calibration), {.names = {"experts", "matmul", "overlap_sums"}});
  ASSERT_EQ(factors.size(), 1U);
  EXPECT_EQ(factors.front().name, "matmul");
}

TEST(Calibrate, RejectsWhatCannotBeFitted) {
  EXPECT_TRUE(fit_factors({}).empty());
  EXPECT_TRUE(fit_factors(measured(0.8, MeasurementUse::holdout)).empty());
  EXPECT_THROW(fit(measured(0.8, MeasurementUse::calibration), {.names = {"matmull"}}), Error);
  std::stop_source stop;
  stop.request_stop();
  try {
    fit_factors(measured(0.8, MeasurementUse::calibration), {}, stop.get_token());
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Error::Kind::cancelled);
  }
}

TEST(CalibrationFile, RoundTrips) {
  Calibration c = fit(measured(0.7, MeasurementUse::calibration));
  c.basis = {"2026-11-21", "a test"};
  const test::Scratch scratch;
  const Calibration back = read_calibration(scratch.put("calibration.json", to_json(c).dump()));
  ASSERT_EQ(back.factors.size(), c.factors.size());
  EXPECT_EQ(back.basis.date, "2026-11-21");
  for (size_t i = 0; i < back.factors.size(); ++i) {
    EXPECT_EQ(back.factors[i].chip, c.factors[i].chip);
    EXPECT_EQ(back.factors[i].rows, c.factors[i].rows);
    EXPECT_NEAR(back.factors[i].value, c.factors[i].value, 1e-4);
  }
  for (const char* bad :
       {"{}", R"({"date": "d", "source": "s"})", R"({"date": "d", "source": "s", "factors": [{}]})",
        R"({"date": "d", "source": "s", "factors": "x"})",
        R"({"date": "d", "source": "s", "factors": [{"stack": "maxtext", "vendor": "tpu", "name": "matmul",
                              "factor": 0, "low": 1, "high": 1, "rows": ["a"]}]})"}) {
    EXPECT_THROW(read_calibration(scratch.put("calibration.json", bad)), Error) << bad;
  }
}

}  // namespace
}  // namespace mw::plan
