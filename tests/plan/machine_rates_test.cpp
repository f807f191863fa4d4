// SPDX-License-Identifier: Apache-2.0
// Rates of processors: plans that take the seconds that were measured, the choice among them, and their files.
#include "core/plan/calibration/machine_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/base/files.h"
#include "core/model/catalogue.h"
#include "core/plan/calibration/calibration_file.h"
#include "core/plan/calibration/plan_context.h"
#include "core/plan/prediction/step_time.h"
#include "tests/base/scratch.h"
#include "tests/shipped.h"

namespace mw::plan {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

RatesInForce in_force(const MachineRates& rates, RatesOrigin origin) {
  return {.rates = &rates, .origin = origin, .costs = test::context().processors().costs};
}

Request request_of(const MachineRates& rates, const MachineFigure& f) {
  Request r;
  r.model = model::catalogue_config(rates.model);
  r.target = test::context().catalogue.target("cpu");
  set_stack(r, model::Stack::engine);
  set_weights(r, f.weights);
  r.mesh.axes = {{"fsdp", 1}, {"tp", 1}};
  if (f.work != MachineWork::train) {
    r.work = Work::serve;
    r.kv = model::DType::f32;
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
  ASSERT_GE(test::context().processors().rates.size(), 4U);
  for (const MachineRates& rates : test::context().processors().rates)
    for (const MachineFigure& f : rates.figures) {
      Request r = request_of(rates, f);
      apply(in_force(rates, RatesOrigin::measured), rates.threads, r);
      const double ratio = planned_seconds(f, r) / f.seconds;
      const bool bound = f.weights == model::DType::int8 && f.rows > 1;  // by the products of prefill
      EXPECT_GT(ratio, 0.97) << rates.instructions << ", " << to_string(f.work) << ", " << to_string(f.weights) << ", "
                             << f.rows << " rows";
      EXPECT_LT(ratio, bound ? 1.55 : 1.03) << rates.instructions << ", " << to_string(f.work) << ", "
                                            << to_string(f.weights) << ", " << f.rows << " rows";
    }
}

// The engine computes no padding, so that the limit of a row's length changes nothing while the rows are the same.
TEST(MachineRates, TimeOfAStepFollowsFromRealTokens) {
  const MachineRates& rates = test::context().processors().rates.front();
  Request r = request_of(rates, rates.figures.front());
  apply(in_force(rates, RatesOrigin::measured), rates.threads, r);
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
  const MachineRates& amx = test::context().processors().rates.back();
  ASSERT_EQ(amx.instructions, "amx");
  for (MachineFigure f : amx.figures) {
    ASSERT_EQ(f.weights, model::DType::bf16) << "f32 was measured with AMX: test another class";
    f.weights = model::DType::f32;
    Request r = request_of(amx, f);
    apply(in_force(amx, RatesOrigin::shipped), amx.threads, r);
    EXPECT_GT(planned_seconds(f, r), 1.5 * f.seconds) << to_string(f.work) << ", " << f.rows << " rows";
  }
}

TEST(MachineRates, IntervalsHoldTheMeasurementAndAreWiderElsewhere) {
  const MachineRates& rates = test::context().processors().rates.front();
  const MachineFigure& f = rates.figures.front();
  const auto step = [&](RatesOrigin origin, int threads) {
    Request r = request_of(rates, f);
    apply(in_force(rates, origin), threads, r);
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
  const std::vector<MachineRates> own{other, two, eight}, &shipped = test::context().processors().rates;
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
  MachineRates first = test::context().processors().rates.front(), second = first;
  first.processor = "A 1 2", second.processor = "B 1 2";
  save_machine_rates(own, first);
  save_machine_rates(own, second);
  first.f32_flops = 5e9;
  save_machine_rates(own, first);
  const std::vector<MachineRates> read = own_measurements(own).rates;
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(to_json(read[0]), to_json(first));
  EXPECT_EQ(to_json(read[1]), to_json(second));
}

MeasuredRun finished_run(const MachineRates& basis) {
  return {.processor = {"A 1 2", basis.instructions, 2},
          .weights = model::DType::bf16,
          .factor = 1.5,
          .basis = basis_of(basis),
          .date = "2026-11-30",
          .run = "run-7"};
}

TEST(MachineRates, TheNewestRunOfTheSameKindCorrectsPlans) {
  const test::Scratch folder;
  const auto load = [&] { return PlanContext::load(MW_RESOURCES "/hardware", folder.path()); };
  const MachineRates& shipped = test::context().processors().rates.front();
  MeasuredRun run = finished_run(shipped);
  save_measured_run(folder.path(), run);
  run.run = "run-8", run.factor = 2;
  save_measured_run(folder.path(), run);
  run.weights = model::DType::f32, run.run = "run-9";
  save_measured_run(folder.path(), run);
  const PlanContext context = load();
  ASSERT_EQ(context.machine.runs.size(), 2U);
  Request r = request_of(shipped, shipped.figures.front());
  const Processor own{"A 1 2", shipped.instructions, 2};
  ASSERT_TRUE(rates_of(context, own, r).run);
  EXPECT_EQ(rates_of(context, own, r).run->run, "run-8");
  EXPECT_FALSE(rates_of(context, {"B 1 2", shipped.instructions, 2}, r).run);
  EXPECT_FALSE(rates_of(context, {"A 1 2", shipped.instructions, 1}, r).run);
  Request other = r;
  other.weights = model::DType::f32;
  EXPECT_EQ(rates_of(context, own, other).run->run, "run-9");
  other.weights = model::DType::int8;
  EXPECT_FALSE(rates_of(context, own, other).run);
  other = r, other.work = Work::serve;
  EXPECT_FALSE(rates_of(context, own, other).run);
  other = r, other.mesh.axes = {{"fsdp", 2}, {"tp", 1}};
  EXPECT_FALSE(rates_of(context, own, other).run);

  // A plan takes as much longer as the run did, and says so.
  const auto seconds = [&](const RatesInForce& found) {
    Request planned = r;
    apply(found, 2, planned);
    return train_time(local_model(planned, mesh::ShardingUse::training)).seconds;
  };
  const Estimate corrected = seconds(rates_of(context, own, r)),
                 plain = seconds(in_force(shipped, RatesOrigin::shipped));
  EXPECT_NEAR(corrected.value, 2 * plain.value, 1e-9 * plain.value);
  EXPECT_LT(corrected.high / corrected.low, 1.4);
  apply(rates_of(context, own, r), 2, r);
  EXPECT_EQ(r.efficiencies.matmul.source, "measured here in run-8, 2026-11-30, 2 threads");

  // A newer benchmark ends it; so does one of other threads, which the run was not compared with.
  MachineRates bench = shipped;
  bench.processor = "A 1 2", bench.threads = 1, bench.source = "run-10";
  save_machine_rates(folder.path(), bench);
  EXPECT_EQ(load().machine.runs.size(), 2U);
  EXPECT_FALSE(rates_of(load(), own, r).run);
  bench.threads = 2;
  save_machine_rates(folder.path(), bench);
  EXPECT_TRUE(load().machine.runs.empty());
  EXPECT_EQ(load().machine.rates.size(), 2U);
}

TEST(MachineRates, SpreadIsThatOfTheMiddleOfTheTimes) {
  EXPECT_EQ(spread_of({}, 1), 0);
  std::vector<std::pair<double, double>> times;
  for (int i = 0; i < 20; ++i) times.emplace_back(i == 0 ? 100 : 1 + 0.01 * (i % 3), 1);
  EXPECT_NEAR(spread_of(times, 1.01), 0.0101, 1e-4) << "one of twenty is no spread";
  for (int i = 0; i < 3; ++i) times[static_cast<size_t>(i)].first = 2;
  EXPECT_NEAR(spread_of(times, 1.01), 2 / 1.01 - 1, 1e-9);
  EXPECT_NEAR(spread_of({{1, 1}, {1.5, 9}}, 1.5), 0.5, 1e-9) << "shorter ones, too";
  EXPECT_NEAR(spread_of({{1, 1}, {1.5, 99}}, 1.5), 0, 1e-9) << "by weight";
}

TEST(MachineRates, AnUnevenRunDoesNotReplaceABetterMeasurement) {
  const test::Scratch folder;
  const MachineRates& shipped = test::context().processors().rates.front();
  int runs = 0;
  // Whether it is kept, with the run that corrects plans then.
  const auto corrected_by = [&](double factor, double spread, const MachineRates& basis) {
    MeasuredRun run = finished_run(basis);
    run.factor = factor, run.spread = spread, run.run = "run-" + std::to_string(++runs);
    const std::string kept = save_measured_run(folder.path(), run);
    const PlanContext context = PlanContext::load(MW_RESOURCES "/hardware", folder.path());
    Request r = request_of(shipped, shipped.figures.front());
    const RatesInForce found = rates_of(context, run.processor, r);
    const std::string used = found.run ? found.run->run : "";
    EXPECT_EQ(kept.empty(), used == run.run) << kept;
    if (!kept.empty() && !used.empty()) {
      EXPECT_THAT(kept, HasSubstr(used));
    }
    return used;
  };
  EXPECT_EQ(corrected_by(1, 2, shipped), "") << "more uncertain than the class";
  EXPECT_EQ(corrected_by(2, 0.6, shipped), "run-2");
  EXPECT_EQ(corrected_by(1.9, 0.3, shipped), "run-3") << "steadier";
  EXPECT_EQ(corrected_by(3, 0.5, shipped), "run-3") << "slower and less even: other programs";
  EXPECT_EQ(corrected_by(1, 0.5, shipped), "run-5") << "faster beyond both intervals";
  EXPECT_EQ(corrected_by(1, 0.12, shipped), "run-6");
  EXPECT_EQ(corrected_by(2.5, 0.14, shipped), "run-7") << "even within 15 %: the newest";
  MachineRates bench = shipped;
  bench.processor = "A 1 2", bench.threads = 2, bench.source = "run-8", bench.spread = 0.05;
  EXPECT_EQ(save_machine_rates(folder.path(), bench), "");
  EXPECT_EQ(corrected_by(2, 0.6, bench), "") << "the benchmark is better";
  EXPECT_EQ(corrected_by(2, 0.1, bench), "run-9");
  MachineRates loaded = bench;
  loaded.source = "run-20", loaded.spread = 0.5;
  for (MachineFigure& f : loaded.figures) f.seconds *= 2;
  EXPECT_THAT(save_machine_rates(folder.path(), loaded), HasSubstr("run-8"));
  loaded.spread = 0.1;
  EXPECT_EQ(save_machine_rates(folder.path(), loaded), "");
}

TEST(MachineRates, IntervalsAreAsWideAsTheSpreadAndSayIt) {
  MachineRates rates = test::context().processors().rates.front();
  const MachineFigure f = rates.figures.front();
  const auto matmul = [&](const RatesInForce& found) {
    Request r = request_of(rates, f);
    apply(found, rates.threads, r);
    return r.efficiencies.matmul;
  };
  const auto above = [](const Efficiency& e) { return e.high / e.value; };
  EXPECT_NEAR(above(matmul(in_force(rates, RatesOrigin::measured))), 1.15, 1e-9);
  rates.spread = 0.4;
  EXPECT_NEAR(above(matmul(in_force(rates, RatesOrigin::measured))), 1.4, 1e-9);
  EXPECT_THAT(matmul(in_force(rates, RatesOrigin::measured)).source,
              HasSubstr("spread 40 % (a steadier measurement takes its place)"));
  MeasuredRun run = finished_run(rates);
  RatesInForce found = in_force(rates, RatesOrigin::measured);
  found.run = &run;
  EXPECT_NEAR(above(matmul(found)), 1.15, 1e-9) << "a file without spreads";
  run.spread = 0.8;
  EXPECT_NEAR(above(matmul(found)), 1.8, 1e-9);
}

// Between the two models of a benchmark the efficiencies are between theirs, and each model's own plan is exact.
TEST(MachineRates, TheSmallModelOfABenchmarkIsPlannedByItsOwnFigures) {
  MachineRates rates = test::context().processors().rates.front();
  const MachineFigure large = rates.figures.front();
  MachineFigure small{.work = MachineWork::train, .rows = 4, .len = 512, .model = kSmallModel};
  Request r = request_of(rates, large);
  r.model = benchmark_model(kSmallModel);
  apply(in_force(rates, RatesOrigin::measured), rates.threads, r);
  small.seconds = 0.5 * planned_seconds(small, r);
  rates.figures.push_back(small);
  apply(in_force(rates, RatesOrigin::measured), rates.threads, r);
  EXPECT_NEAR(planned_seconds(small, r), small.seconds, 0.01 * small.seconds);
  r.model = model::catalogue_config(rates.model);
  apply(in_force(rates, RatesOrigin::measured), rates.threads, r);
  EXPECT_NEAR(planned_seconds(large, r), large.seconds, 0.01 * large.seconds);
  const double own = r.efficiencies.matmul.value;
  r.model.layers.resize(2);
  apply(in_force(rates, RatesOrigin::measured), rates.threads, r);
  EXPECT_GT(r.efficiencies.matmul.value, own);
}

TEST(MachineRates, AFileOfANewerVersionIsNeitherReadNorWritten) {
  const test::Scratch folder;
  const std::string content = Json({{"schema", 2}, {"machines", Json::array()}, {"new", 1}}).dump();
  folder.put("machine.json", content);
  const MachineRates& rates = test::context().processors().rates.front();
  const auto refused = [&](auto write) {
    try {
      write();
    } catch (const Error& error) {
      const Problem& p = error.problem();
      return p.id + " " + p.place + " " + p.found + " " + p.expected + (p.file.empty() || p.fix.empty() ? "?" : "");
    }
    return std::string("no error");
  };
  EXPECT_EQ(refused([&] { own_measurements(folder.path()); }), "HARDWARE-FILE schema 2 1");
  EXPECT_EQ(refused([&] { save_machine_rates(folder.path(), rates); }), "HARDWARE-FILE schema 2 1");
  EXPECT_EQ(refused([&] { save_measured_run(folder.path(), finished_run(rates)); }), "HARDWARE-FILE schema 2 1");
  EXPECT_EQ(read_file(folder.path() / "machine.json"), content);
}

TEST(MachineRates, RunsThatEndTogetherAreAllKept) {
  const test::Scratch folder;
  std::vector<std::thread> threads;
  for (int i = 1; i <= 16; ++i)
    threads.emplace_back([&, i] {
      MeasuredRun run = finished_run(test::context().processors().rates.front());
      run.processor.threads = i;
      save_measured_run(folder.path(), run);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(own_measurements(folder.path()).runs.size(), 16U);
}

TEST(MachineRates, TextsOfTheFileStayOnTheirLine) {
  const test::Scratch folder;
  MachineRates rates = test::context().processors().rates.front();
  rates.source = "run-1\nerror: forged\x1b";
  save_machine_rates(folder.path(), rates);
  EXPECT_EQ(own_measurements(folder.path()).rates.front().source, "run-1\\x0aerror: forged\\x1b");
}

// An accepted calibration of version 1.0 may have factors for this machine.
TEST(MachineRates, ACalibrationOfThisMachineIsNotUsed) {
  const test::Scratch folder;
  Proposal accepted;
  accepted.calibration.basis = {"2026-11-21", "mine", CalibrationAuthor::user};
  accepted.calibration.factors.push_back({.stack = model::Stack::engine,
                                          .chip = "cpu",
                                          .vendor = hardware::Vendor::cpu,
                                          .name = "matmul",
                                          .value = 0.2,
                                          .low = 0.1,
                                          .high = 0.3,
                                          .rows = {"run-1"}});
  accept_proposal(folder.path(), accepted);
  const PlanContext context = PlanContext::load(MW_RESOURCES "/hardware", folder.path());
  EXPECT_TRUE(context.calibration.factors.empty());
  ASSERT_EQ(context.problems().size(), 1U);
  EXPECT_EQ(context.problems().front().severity, Severity::warning);
  EXPECT_THAT(to_text(context.problems().front()), testing::AllOf(HasSubstr("cpu"), HasSubstr("calibrate --remove")));
}

TEST(MachineRates, ErrorsNameFileRowAndKey) {
  const test::Scratch folder;
  const auto message = [&](auto change) {
    Json rates = to_json(test::context().processors().rates.front());
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
  EXPECT_THAT(message([](Json& r) { r["figures"][0]["work"] = "sleep"; }), HasSubstr("train, prefill or decode"));
  EXPECT_THAT(message([](Json& r) { r["figures"][0]["seconds"] = -1; }), HasSubstr("seconds"));
  EXPECT_THAT(message([](Json& r) { r["model"] = "gemma9"; }), HasSubstr("gemma9"));
  EXPECT_THAT(message([](Json& r) { r["more"] = 1; }), HasSubstr("more"));
  Json bad_run = {{"processor", "A"}, {"instructions", "avx2"}, {"threads", 2}, {"devices", 1},
                  {"work", "sleep"},  {"weights", "bf16"},      {"factor", 1},  {"basis", "b"},
                  {"date", "d"},      {"run", "run-1"}};
  folder.put("machine.json", Json({{"machines", Json::array()}, {"runs", Json::array({bad_run})}}).dump());
  EXPECT_THAT(to_text(*PlanContext::load(MW_RESOURCES "/hardware", folder.path()).unrated), HasSubstr("runs[0].work"));
  bad_run["work"] = "train", bad_run["factor"] = 1e300;
  folder.put("machine.json", Json({{"machines", Json::array()}, {"runs", Json::array({bad_run})}}).dump());
  EXPECT_THAT(to_text(*PlanContext::load(MW_RESOURCES "/hardware", folder.path()).unrated), HasSubstr("0.001 to 1000"));
  // Plans take the shipped ones then.
  folder.put("machine.json", "{");
  const PlanContext context = PlanContext::load(MW_RESOURCES "/hardware", folder.path());
  EXPECT_EQ(context.problems().size(), 1U);
  EXPECT_EQ(rates_of(context, {"A 1 2", "avx2", 2}, Request()).origin, RatesOrigin::shipped);
}

}  // namespace
}  // namespace mw::plan
