// SPDX-License-Identifier: GPL-3.0-or-later
// Measures one plan: a page computes one per keystroke, a search thousands.
#include <benchmark/benchmark.h>

#include "core/hardware/catalogue.h"
#include "core/model/catalogue.h"
#include "core/plan/time/predict.h"
#include "core/plan/time/serve_step.h"

namespace mw::plan {
namespace {

Request lora_31b(const char* target, Stack stack, std::vector<mesh::MeshAxis> axes) {
  static const hardware::Catalogue kCatalogue = hardware::Catalogue::load(MW_RESOURCES "/hardware");
  Request r;
  r.model = model::catalogue_config("gemma4-31b");
  r.target = kCatalogue.target(target);
  set_stack(r, stack);
  r.mesh.axes = std::move(axes);
  r.rank = 64;
  using model::Role;
  r.targets = {Role::q_proj, Role::k_proj, Role::v_proj, Role::o_proj, Role::gate_proj, Role::up_proj, Role::down_proj};
  r.lengths.max_len = 4096;
  r.train.remat = model::Remat::layer;
  r.train.accumulation = 8;
  r.train.steps = 1244;
  return r;
}

void Train31bOnV5p8(benchmark::State& state) {
  const Request r = lora_31b("v5p-8", Stack::tunix, {{"fsdp", 1}, {"tp", 4}});
  for (auto _ : state) benchmark::DoNotOptimize(predict(r));
}
BENCHMARK(Train31bOnV5p8)->Unit(benchmark::kMicrosecond);

void Train31bOn256Chips(benchmark::State& state) {
  const Request r = lora_31b("v5e-256", Stack::tunix, {{"fsdp", 32}, {"tp", 8}});
  for (auto _ : state) benchmark::DoNotOptimize(predict(r));
}
BENCHMARK(Train31bOn256Chips)->Unit(benchmark::kMicrosecond);

void Train31bWithNumberedOverrides(benchmark::State& state) {  // layer by layer
  Request r = lora_31b("v5p-8", Stack::tunix, {{"fsdp", 1}, {"tp", 4}});
  r.rules.overrides.push_back({R"(layers\.3\.q_proj)", mesh::parse_spec("(-, -, -)")});
  for (auto _ : state) benchmark::DoNotOptimize(predict(r));
}
BENCHMARK(Train31bWithNumberedOverrides)->Unit(benchmark::kMicrosecond);

void Serve31bOnV6e8(benchmark::State& state) {
  Request r = lora_31b("v6e-8", Stack::vllm_tpu, {{"tp", 8}});
  r.work = Work::serve;
  r.targets.clear();
  for (auto _ : state) benchmark::DoNotOptimize(predict(r));
}
BENCHMARK(Serve31bOnV6e8)->Unit(benchmark::kMicrosecond);

void StepOfAServer(benchmark::State& state) {  // computed by the simulator for every step
  Request r = lora_31b("v6e-8", Stack::vllm_tpu, {{"tp", 8}});
  r.work = Work::serve;
  r.targets.clear();
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
