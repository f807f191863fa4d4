// SPDX-License-Identifier: GPL-3.0-or-later
// Measures the checker and full searches (goal: Gemma 4 31B on v5p-8 in less than 1 s).
#include <benchmark/benchmark.h>

#include <filesystem>

#include "core/plan/experiment/experiment_plan.h"
#include "core/plan/experiment/search_experiment.h"

namespace {

using namespace mw;

const plan::PlanContext& context() {
  static const auto kCatalogue = plan::PlanContext::load(std::filesystem::path(MW_RESOURCES) / "hardware");
  return kCatalogue;
}

experiment::Experiment paper() {
  return experiment::Experiment::load(std::filesystem::path(MW_RESOURCES) / "examples" / "paper-train-v5p-8.json");
}

// Reads, plans and checks a document, including the search for changes that make it fit.
void diagnostics_of_the_paper(benchmark::State& state) {
  const experiment::Experiment experiment = paper();
  for (auto _ : state) benchmark::DoNotOptimize(plan::diagnostics(experiment, context()));
}
BENCHMARK(diagnostics_of_the_paper)->Unit(benchmark::kMillisecond);

void search(benchmark::State& state, const char* target, std::int64_t rows) {
  plan::Request request = plan::plan_request(paper(), context());
  request.target = context().catalogue.target(target);
  request.train.batch = rows;
  request.train.accumulation = 1;
  request.mesh = {{{"fsdp", 1}, {"tp", request.target.devices()}}};
  std::int64_t evaluated = 0;
  for (auto _ : state) evaluated = plan::search(std::span(&request, 1), {.threads = 1}).evaluated;
  state.counters["plans"] = static_cast<double>(evaluated);
}

// All settings of a training on several targets, on two threads; the goal is 20,000 plans a second.
void search_settings(benchmark::State& state) {
  std::vector<plan::Request> requests;
  for (const char* target : {"v5p-8", "v5p-64", "v5p-256", "v6e-8", "v6e-64", "v5e-256"}) {
    requests.push_back(plan::plan_request(paper(), context()));
    requests.back().target = context().catalogue.target(target);
    requests.back().train.batch = 2048;
    requests.back().train.accumulation = 1;
    requests.back().mesh = {{{"fsdp", 1}, {"tp", requests.back().target.devices()}}};
  }
  std::int64_t evaluated = 0;
  for (auto _ : state)
    evaluated = plan::search(requests, {.scope = plan::SearchScope::settings, .threads = 2}).evaluated;
  state.counters["plans"] = static_cast<double>(evaluated);
  state.counters["plans/s"] =
      benchmark::Counter(static_cast<double>(evaluated), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(search_settings)->Unit(benchmark::kMillisecond)->UseRealTime();

// Searches of other work over the same targets, on two threads; the goal is 20,000 plans a second, too. `axes`: of the
// meshes.
void search_work(benchmark::State& state, plan::Work work, std::vector<std::string> axes) {
  std::vector<plan::Request> requests;
  for (const char* target : {"v5p-8", "v5p-64", "v5p-256", "v6e-8", "v6e-64", "v5e-256"}) {
    plan::Request r = plan::plan_request(paper(), context());
    r.target = context().catalogue.target(target);
    r.work = work;
    plan::set_stack(r, plan::default_stack(hardware::Vendor::tpu, work));
    r.forward.batch = r.rollout.batch = 256;
    r.mesh = {};
    for (const std::string& axis : axes) r.mesh.axes.push_back({axis, axis == "tp" ? r.target.devices() : 1});
    requests.push_back(std::move(r));
  }
  std::int64_t evaluated = 0;
  for (auto _ : state) evaluated = plan::search(requests, {.threads = 2}).evaluated;
  state.counters["plans"] = static_cast<double>(evaluated);
  state.counters["plans/s"] =
      benchmark::Counter(static_cast<double>(evaluated), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK_CAPTURE(search_work, serve, plan::Work::serve, {"data", "fsdp", "tp"})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(search_work, forward, plan::Work::forward, {"data", "fsdp", "tp"})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(search_work, rollout, plan::Work::rollout, {"data", "fsdp", "tp"})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

BENCHMARK_CAPTURE(search, gemma4_31b_on_v5p_8, "v5p-8", 8)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search, gemma4_31b_on_v5p_256, "v5p-256", 256)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
