// SPDX-License-Identifier: GPL-3.0-or-later
// Measures how many requests the simulator processes per second of wall time, including records and statistics (goal:
// 20,000, so that 60 s at 300 requests/s take less than a second).
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <limits>

#include "core/model/catalogue.h"
#include "core/plan/calibration/plan_context.h"
#include "core/serve/load/load_statistics.h"
#include "core/serve/load/simulated_backend.h"

namespace {

using namespace mw;

plan::Request gemma_on(const char* target, int tp) {
  static const auto kContext = plan::PlanContext::load(MW_RESOURCES "/hardware");
  plan::Request request;
  request.model = model::catalogue_config("gemma3-1b");
  request.target = kContext.catalogue.target(target);
  plan::set_stack(request, model::Stack::vllm_tpu);
  request.mesh.axes = {{"tp", tp}};
  request.work = plan::Work::serve;
  request.targets.clear();
  return request;
}

// Requests of 512 prompt tokens at 300 requests/s for 60 s of simulated time.
void simulate(benchmark::State& state, options::PromptMode prompts, double request_rate) {
  const auto output_len = static_cast<int>(state.range(0));
  plan::Request request = gemma_on("v6e-8", 8);
  request.serve.max_num_seqs = 1024, request.serve.max_num_batched_tokens = 8192;
  const auto backend = serve::make_cost_model_backend(
      request, {.max_num_seqs = 1024, .max_num_batched_tokens = 8192, .max_model_len = 4096, .kv = {}});
  const serve::Load load = serve::make_load({.request_rate = request_rate,
                                             .input_len = 512,
                                             .output_len = output_len,
                                             .prompts = prompts,
                                             .num_prompts = static_cast<int>(60 * request_rate)});
  formats::BenchPoint point;
  for (auto _ : state) point = serve::summarise(load, backend->run(load, {}, {}), {.ttft_ms = 500});
  const auto requests = static_cast<double>(load.requests.size());
  state.counters["requests/s"] = benchmark::Counter(requests, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["simulated_s"] = point.duration_s;
  state.counters["in_flight"] = point.max_concurrent_requests;
  state.counters["ttft_ms"] = point.ttft.median;
  state.counters["tpot_ms"] = point.tpot.median;
  state.counters["completed"] = static_cast<double>(point.completed);
}
BENCHMARK_CAPTURE(simulate, salted, options::PromptMode::salted, 300)
    ->Arg(128)
    ->Arg(256)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate, replayed, options::PromptMode::replayed, 300)
    ->Arg(128)
    ->Arg(256)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate, overloaded, options::PromptMode::salted, 1200)->Arg(128)->Unit(benchmark::kMillisecond);

// Prompts of 128k tokens, more than the server can take; the goal is 10,000 requests a second of wall time.
void simulate_long_prompts(benchmark::State& state) {
  plan::Request request = gemma_on("v6e-8", 8);
  request.serve.max_num_batched_tokens = 8192, request.serve.max_model_len = 140'000;
  const auto backend = serve::make_cost_model_backend(
      request, {.max_num_seqs = 64, .max_num_batched_tokens = 8192, .max_model_len = 140'000, .kv = {}});
  const serve::Load load =
      serve::make_load({.request_rate = 1, .input_len = 131'072, .output_len = 128, .num_prompts = 2000});
  for (auto _ : state) benchmark::DoNotOptimize(serve::summarise(load, backend->run(load, {}, {}), {}));
  state.counters["requests/s"] = benchmark::Counter(2000, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(simulate_long_prompts)->Unit(benchmark::kMillisecond);

// Without results of single requests; `bytes_each`: growth of the process by request, its largest value. The server
// sustains 80 requests/s; of twice as many, half wait in its queue at the end of the arrivals, of a burst all.
void measure_many(benchmark::State& state, double request_rate) {
  const auto backend = serve::make_cost_model_backend(
      gemma_on("v6e-8", 8), {.max_num_seqs = 1024, .max_num_batched_tokens = 8192, .max_model_len = 4096, .kv = {}});
  const auto requests = static_cast<int>(state.range(0));
  const auto held = [] {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return 1024.0 * static_cast<double>(used.ru_maxrss);
  };
  const double before = held();
  for (auto _ : state)
    benchmark::DoNotOptimize(backend->measure(
        {.request_rate = request_rate, .input_len = 512, .output_len = 128, .num_prompts = requests}, {}, {}, {}));
  state.counters["requests/s"] = benchmark::Counter(requests, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["bytes_each"] = (held() - before) / requests;
}
BENCHMARK_CAPTURE(measure_many, stable, 80)->Arg(1'000'000)->Arg(10'000'000)->Iterations(1)->Unit(benchmark::kSecond);
BENCHMARK_CAPTURE(measure_many, overloaded, 160)
    ->Arg(1'000'000)
    ->Arg(10'000'000)
    ->Iterations(1)
    ->Unit(benchmark::kSecond);
BENCHMARK_CAPTURE(measure_many, burst, std::numeric_limits<double>::infinity())
    ->Arg(1'000'000)
    ->Arg(10'000'000)
    ->Iterations(1)
    ->Unit(benchmark::kSecond);

}  // namespace

BENCHMARK_MAIN();
