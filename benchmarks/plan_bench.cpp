// SPDX-License-Identifier: GPL-3.0-or-later
// Measures one plan, from its document and from its request: a page computes one per keystroke, a search thousands.
#include <benchmark/benchmark.h>

#include "core/experiment/experiment.h"
#include "core/plan/calibration/plan_context.h"
#include "core/plan/document/plan_request.h"
#include "core/plan/experiment/experiment_plan.h"
#include "core/plan/prediction/predict.h"
#include "core/plan/prediction/serve_step.h"

namespace mw::plan {
namespace {

const PlanContext& context() {
  static const PlanContext kContext = PlanContext::load(MW_RESOURCES "/hardware");
  return kContext;
}

experiment::Experiment example(const char* name) {
  return experiment::Experiment::load(std::filesystem::path(MW_RESOURCES) / "examples" / name);
}

Request training(const char* target, int fsdp, int tp) {
  experiment::Experiment e = example("paper-train-v5p-8.json");
  e.set_value("target.id", target);
  e.set_value("mesh.fsdp", fsdp);
  e.set_value("mesh.tp", tp);
  return plan::plan_request(e, context());
}

Request serving() {
  return plan::plan_request(example("paper-serve-v6e-8.json"), context());
}

// From a document to its plan, as after a keystroke; the context stays.
void PlanOfADocument(benchmark::State& state) {
  const experiment::Experiment e = example("paper-train-v5p-8.json");
  double rate = 1e-4;
  for (auto _ : state) {
    experiment::Experiment edited = e;
    edited.set_value("train.learning_rate", rate += 1e-9);
    benchmark::DoNotOptimize(plan::plan_experiment(edited, context()));
  }
}
BENCHMARK(PlanOfADocument)->Unit(benchmark::kMicrosecond);

void ContextRead(benchmark::State& state) {  // once for each command
  for (auto _ : state) benchmark::DoNotOptimize(PlanContext::load(MW_RESOURCES "/hardware"));
}
BENCHMARK(ContextRead)->Unit(benchmark::kMillisecond);

void Train31bOnV5p8(benchmark::State& state) {
  const Request r = training("v5p-8", 1, 4);
  for (auto _ : state) benchmark::DoNotOptimize(predict(r));
}
BENCHMARK(Train31bOnV5p8)->Unit(benchmark::kMicrosecond);

void Train31bOn256Chips(benchmark::State& state) {
  const Request r = training("v5e-256", 32, 8);
  for (auto _ : state) benchmark::DoNotOptimize(predict(r));
}
BENCHMARK(Train31bOn256Chips)->Unit(benchmark::kMicrosecond);

void Train31bWithNumberedOverrides(benchmark::State& state) {  // layer by layer
  Request r = training("v5p-8", 1, 4);
  r.rules.overrides.push_back({R"(layers\.3\.q_proj)", mesh::parse_spec("(-, -, -)")});
  for (auto _ : state) benchmark::DoNotOptimize(predict(r));
}
BENCHMARK(Train31bWithNumberedOverrides)->Unit(benchmark::kMicrosecond);

void Serve31bOnV6e8(benchmark::State& state) {
  const Request r = serving();
  for (auto _ : state) benchmark::DoNotOptimize(predict(r));
}
BENCHMARK(Serve31bOnV6e8)->Unit(benchmark::kMicrosecond);

void StepOfAServer(benchmark::State& state) {  // computed by the simulator for every step
  const Request r = serving();
  const ServeStepModel model(r);
  StepLoad load{
      .decoding = 1, .prefill_tokens = 400, .prefilling = 1, .prefill_pairs = 8e4, .prefill_window_pairs = 8e4};
  for (auto _ : state) {
    load.decoding = load.decoding % 64 + 1;
    load.read_tokens = load.read_window_tokens = 700.0 * load.decoding;
    benchmark::DoNotOptimize(model.seconds(load));
  }
}
BENCHMARK(StepOfAServer)->Unit(benchmark::kNanosecond);

}  // namespace
}  // namespace mw::plan

BENCHMARK_MAIN();
