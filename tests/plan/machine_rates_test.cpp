// SPDX-License-Identifier: Apache-2.0
// Rates of processors: plans that take the seconds that were measured, the choice among them, and their files.
#include "core/plan/calibration/machine_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/files.h"
#include "core/model/catalogue.h"
#include "core/plan/time/step_time.h"
#include "tests/base/scratch.h"
#include "tests/shipped.h"

namespace mw::plan {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

Request request_of(const MachineRates& rates, const MachineFigure& f) {
  Request r;
  r.model = model::catalogue_config(rates.model);
  r.target = test::context().catalogue.target("cpu");
  set_stack(r, model::Stack::engine);
  set_weights(r, f.weights);
  r.mesh.axes = {{"fsdp", 1}, {"tp", 1}};
  if (f.work != MachineWork::train) {
    r.work = Work::serve;
    return r;
  }
  using model::Role;
  r.lora.rank = 16;
  r.targets = {Role::q_proj, Role::k_proj, Role::v_proj, Role::o_proj, Role::gate_proj, Role::up_proj, Role::down_proj};
  r.lengths = {.max_len = f.len};
  r.train.batch = f.rows;
  return r;
}

TEST(MachineRates, PlansTakeTheMeasuredSeconds) {
  ASSERT_GE(test::context().processors().size(), 4U);
  for (const MachineRates& rates : test::context().processors())
    for (const MachineFigure& f : rates.figures) {
      Request r = request_of(rates, f);
      apply(rates, RatesOrigin::measured, rates.threads, r);
      const double ratio = planned_seconds(f, r) / f.seconds;
      const bool bound = f.weights == model::DType::int8 && f.rows > 1;  // by the products of prefill
      EXPECT_GT(ratio, 0.97) << rates.instructions << ", " << to_string(f.work) << ", " << to_string(f.weights);
      EXPECT_LT(ratio, bound ? 1.5 : 1.03) << rates.instructions << ", " << to_string(f.work) << ", "
                                           << to_string(f.weights) << ", " << f.rows << " rows";
    }
}

// The engine computes no padding, so that the limit of a row's length changes nothing while the rows are the same.
TEST(MachineRates, TimeOfAStepFollowsFromRealTokens) {
  const MachineRates& rates = test::context().processors().front();
  Request r = request_of(rates, rates.figures.front());
  apply(rates, RatesOrigin::measured, rates.threads, r);
  const auto seconds = [&](int max_len, RowLayout rows) {
    r.lengths = {.histogram = {{40, 90}, {200, 10}}, .max_len = max_len, .rows = rows, .computes_padding = false};
    return train_time(local_model(r, mesh::ShardingUse::training)).seconds.value;
  };
  const double own = seconds(200, RowLayout::padded);
  EXPECT_DOUBLE_EQ(seconds(2048, RowLayout::padded), own);
  EXPECT_DOUBLE_EQ(seconds(2048, RowLayout::ragged), own);
  EXPECT_GT(seconds(2048, RowLayout::packed), 10 * own);  // rows of many examples
}

// Rates of one type of weights that lack another: its own peak and its own bytes count.
TEST(MachineRates, WeightsThatWereNotMeasuredAreNotAsFastAsThoseThatWere) {
  const MachineRates& amx = test::context().processors().back();
  ASSERT_EQ(amx.instructions, "amx");
  for (MachineFigure f : amx.figures) {
    ASSERT_EQ(f.weights, model::DType::bf16) << "f32 was measured with AMX: test another class";
    f.weights = model::DType::f32;
    Request r = request_of(amx, f);
    apply(amx, RatesOrigin::shipped, amx.threads, r);
    EXPECT_GT(planned_seconds(f, r), 1.5 * f.seconds) << to_string(f.work) << ", " << f.rows << " rows";
  }
}

TEST(MachineRates, IntervalsHoldTheMeasurementAndAreWiderElsewhere) {
  const MachineRates& rates = test::context().processors().front();
  const MachineFigure& f = rates.figures.front();
  const auto step = [&](RatesOrigin origin, int threads) {
    Request r = request_of(rates, f);
    apply(rates, origin, threads, r);
    return train_time(local_model(r, mesh::ShardingUse::training)).seconds;
  };
  const Estimate own = step(RatesOrigin::measured, rates.threads), other = step(RatesOrigin::shipped, rates.threads),
                 more = step(RatesOrigin::measured, 2 * rates.threads);
  EXPECT_LT(own.low, f.seconds);
  EXPECT_GT(own.high, f.seconds);
  EXPECT_GT(other.high / other.low, 1.5 * own.high / own.low);
  EXPECT_LT(more.value, 0.6 * own.value);
  EXPECT_GT(more.high / more.low, 1.5 * own.high / own.low);
}

TEST(MachineRates, OfThisProcessorComeFirstThenThoseOfItsInstructions) {
  MachineRates two{.processor = "A 1 2", .instructions = "avx2", .threads = 2}, eight = two, other = two;
  eight.threads = 8, other.processor = "B 1 2";
  const std::vector<MachineRates> own{other, two, eight}, &shipped = test::context().processors();
  EXPECT_EQ(rates_of(own, shipped, {"A 1 2", "avx2", 6}), &own[2]);
  EXPECT_EQ(rates_of(own, shipped, {"A 1 2", "avx2", 1}), &own[1]);
  EXPECT_EQ(rates_of(own, shipped, {"A 1 2", "avx512", 2})->instructions, "avx512");
  EXPECT_EQ(rates_of(own, shipped, {"C 1 2", "avx512_bf16", 2})->instructions, "avx512_bf16");
  EXPECT_EQ(rates_of({}, shipped, {"C 1 2", "avx512_vnni", 2})->instructions, "avx512");
  EXPECT_EQ(rates_of({}, shipped, {"C 1 2", "avx_vnni", 2})->instructions, "avx2");
  EXPECT_EQ(rates_of({}, shipped, {"D", "neon", 4}), &shipped.front());
  EXPECT_EQ(rates_of({}, {}, {"D", "neon", 4}), nullptr);
}

TEST(MachineRates, AreReplacedForOneProcessorAndKeptForOthers) {
  const test::Scratch folder;
  const fs::path own = folder.path() / "hardware";
  MachineRates first = test::context().processors().front(), second = first;
  first.processor = "A 1 2", second.processor = "B 1 2";
  save_machine_rates(own, first);
  save_machine_rates(own, second);
  first.f32_flops = 5e9;
  save_machine_rates(own, first);
  const std::vector<MachineRates> read = read_machine_rates(own / kMachineRatesFile);
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(to_json(read[0]), to_json(first));
  EXPECT_EQ(to_json(read[1]), to_json(second));
}

TEST(MachineRates, ErrorsNameFileRowAndKey) {
  const test::Scratch folder;
  const auto message = [&](auto change) {
    Json rates = to_json(test::context().processors().front());
    change(rates);
    const fs::path file = folder.put("machine.json", Json({{"machines", Json::array({rates})}}).dump());
    try {
      read_machine_rates(file);
    } catch (const Error& e) {
      return to_text(e.problem());
    }
    return std::string("no error");
  };
  EXPECT_THAT(message([](Json& r) { r["threads"] = 0; }), HasSubstr("machines[0].threads"));
  EXPECT_THAT(message([](Json& r) { r["figures"][0]["work"] = "sleep"; }), HasSubstr("train, prefill, decode"));
  EXPECT_THAT(message([](Json& r) { r["figures"][0]["seconds"] = -1; }), HasSubstr("seconds"));
  EXPECT_THAT(message([](Json& r) { r["model"] = "gemma9"; }), HasSubstr("gemma9"));
  EXPECT_THAT(message([](Json& r) { r["more"] = 1; }), HasSubstr("more"));
  // Plans take the shipped ones then.
  folder.put("machine.json", "{");
  const PlanContext context = PlanContext::load(MW_RESOURCES "/hardware", folder.path());
  EXPECT_EQ(context.problems().size(), 1U);
  EXPECT_EQ(rates_of(context, {"A 1 2", "avx2", 2}).origin, RatesOrigin::shipped);
}

}  // namespace
}  // namespace mw::plan
