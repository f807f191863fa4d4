// SPDX-License-Identifier: Apache-2.0
#include "core/jobs/benchmark_run.h"

#include <algorithm>
#include <iterator>

#include "core/base/files.h"
#include "core/engine/kernels/kernel_choice.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/formats/results/bench_result.h"
#include "core/model/catalogue.h"
#include "core/store/store.h"

namespace mw::jobs {
namespace {

// The training experiment whose steps the benchmark measured; `steps` counts the warm-up.
experiment::Experiment benchmark_experiment(const MachineBenchmarkRequest& request, long steps) {
  experiment::Experiment e;
  e.set_value("kind", "train");
  e.set_value("name", "Benchmark of " + request.config.id);
  if (request.weights.empty()) {
    e.set_value("model.id", request.config.id);
    e.set_value("model.init", "random");
  } else {
    e.set_value("model.path", request.weights.string());
  }
  e.set_value("target.id", "cpu");
  e.set_value("data.max_len", request.train_len);
  e.set_value("train.method", "lora");
  e.set_value("train.dtype", "bf16");
  e.set_value("train.batch", request.train_rows);
  e.set_value("train.steps", steps);
  e.set_value("lora.rank", plan::kBenchmarkRank);
  e.set_value("lora.alpha", kBenchmarkAlpha);
  return e;
}

plan::MachineWork work_of(const BenchmarkFigure& figure) {
  const auto has = [&](const char* work) { return figure.id.find(work) != std::string::npos; };
  return has("lora_step") ? plan::MachineWork::train
         : has("prefill") ? plan::MachineWork::prefill
                          : plan::MachineWork::decode;
}

}  // namespace

std::optional<plan::MachineRates> machine_rates(const MachineBenchmarkRequest& request,
                                                const MachineBenchmark& benchmark, const store::RunId& run) {
  const std::vector<std::string> known = model::catalogue_ids();
  if (benchmark.figures.empty() || std::find(known.begin(), known.end(), request.config.id) == known.end())
    return std::nullopt;
  plan::MachineRates rates{.processor = engine::processor_model(),
                           .instructions = std::string(to_string(engine::usable_cpu())),
                           .model = request.config.id,
                           .threads = benchmark.threads,
                           .date = store::today_utc(),
                           .source = run,
                           .f32_flops = benchmark.peak.f32_flops,
                           .bf16_flops = benchmark.peak.bf16_flops,
                           .read_bytes = benchmark.peak.dram_bytes,
                           .spread = benchmark.spread()};
  for (const BenchmarkFigure& f : benchmark.figures) {
    const plan::MachineWork work = work_of(f);
    const double round = f.rates_seconds();
    rates.figures.push_back({work, plan::dtype_of(f.weights), f.rows, f.len,
                             work == plan::MachineWork::decode ? round * f.rows / f.tokens : round, f.model,
                             f.kv_seconds});
  }
  return rates;
}

MachineBenchmarkRequest benchmark_request(const std::string& model, BenchmarkLength length, int threads) {
  MachineBenchmarkRequest request{.threads = threads};
  if (path_exists(model)) {
    request.config = formats::read_config(model);
    request.weights = std::filesystem::absolute(model);
    if (request.config.id.empty()) request.config.id = model;
  } else {
    request.config = model::catalogue_config(model);
  }
  if (length == BenchmarkLength::quick) {
    request.peak_seconds = 0.3, request.seconds = 1, request.least_rounds = 2;
    request.decode_tokens = 4, request.train_rows = 1;
  }
  return request;
}

SavedBenchmark save_benchmark(store::Store& store, const MachineBenchmarkRequest& request,
                              const MachineBenchmark& benchmark, const std::filesystem::path& hardware_folder) {
  const BenchmarkFigure* found = benchmark.saved_step();
  const BenchmarkFigure lora = found ? *found : BenchmarkFigure{};
  const long steps = found ? std::ssize(lora.seconds) + 1 : 0;  // the first is the warm-up, which has no time
  const store::RunId run = store.create(benchmark_experiment(request, steps), {});
  const auto lock = store.lock(run);
  store.append(run, {0, event::Started{{{"kind", "train"},
                                        {"source", "measured"},
                                        {"model", benchmark.model},
                                        {"cpu", benchmark.instruction_set},
                                        {"threads", benchmark.threads},
                                        {"steps", steps}}}});
  if (benchmark.is_noisy()) store.append(run, {0, event::Log{"warning", kNoisyBenchmark}});
  double at = 0;
  for (size_t i = 0; i < lora.seconds.size(); ++i) {
    at += lora.seconds[i];
    store.append(
        run, {at, event::Metric{"train/tokens_per_second", static_cast<long>(i) + 2, lora.tokens / lora.seconds[i]}});
  }
  event::Finished finished;
  finished.steps = steps;
  finished.tokens = static_cast<long>(lora.tokens) * steps;
  finished.seconds = at;
  finished.summary = {{"benchmark", to_json(benchmark)}};
  store.finish(run, at, std::move(finished));
  store.set_tags(run, "benchmark");
  const auto rates = machine_rates(request, benchmark, run);
  return {run, rates && !hardware_folder.empty() ? plan::save_machine_rates(hardware_folder, *rates) : ""};
}

}  // namespace mw::jobs
