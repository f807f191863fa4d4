// SPDX-License-Identifier: GPL-3.0-or-later
// Measures the engine's matrix products as fractions of the machine's measured peak, and whole LoRA steps:
// `--benchmark_filter=Machine`, `Gemm_`, `Tiny`, `Gemma270m`, `Mesh`, `Decode`.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>

#include "core/base/rng.h"
#include "core/base/units.h"
#include "core/engine/distributed/cluster.h"
#include "core/engine/generate/sampler.h"
#include "core/engine/kernels/gemm.h"
#include "core/engine/kernels/machine_peak.h"
#include "core/engine/transformer/optimizer.h"

namespace mw::engine {
namespace {

constexpr int kThreads = 2;

struct Sizes {
  int layers, dim, mlp, heads, kv_heads, head_dim, vocab, window;
};
model::Config gemma3(const Sizes& sizes) {
  model::Config c;
  c.id = "bench";
  c.vocab = sizes.vocab, c.dim = sizes.dim, c.sliding_window = sizes.window, c.max_positions = 32768, c.qk_norm = true;
  c.attention_scale = 1.0f / std::sqrt(static_cast<float>(sizes.head_dim));
  for (int i = 0; i < sizes.layers; ++i) {
    model::Layer l;
    l.attention = i % 6 == 5 ? model::Attention::full : model::Attention::sliding;
    l.heads = sizes.heads, l.kv_heads = sizes.kv_heads, l.head_dim = sizes.head_dim, l.mlp_dim = sizes.mlp;
    l.rope_theta = i % 6 == 5 ? 1e6f : 1e4f;
    c.layers.push_back(l);
  }
  return c;
}

model::Config tiny() {
  return gemma3({6, 192, 768, 4, 2, 48, 4096, 128});
}
model::Config gemma270m() {
  return gemma3({18, 640, 2048, 4, 1, 256, 262144, 512});
}

struct Rows {
  int rows, len;
  std::vector<int> ids, targets, positions, segments;
  operator TokenBatch() const { return {rows, len, ids, targets, positions, segments}; }
};

Rows random_rows(int rows, int len, int vocab, double loss_share) {
  const auto n = static_cast<size_t>(rows * len);
  Rows b{rows, len, std::vector<int>(n), std::vector<int>(n, -1), std::vector<int>(n), std::vector<int>(n, 0)};
  Rng rng{1};
  for (size_t i = 0; i < n; ++i) {
    b.ids[i] = static_cast<int>(rng.below(static_cast<std::uint64_t>(vocab)));
    if (static_cast<double>(rng.next_uniform()) < loss_share)
      b.targets[i] = static_cast<int>(rng.below(static_cast<std::uint64_t>(vocab)));
    b.positions[i] = static_cast<int>(i) % len;
  }
  return b;
}

void print_profile(const std::vector<KernelTime>& times, std::int64_t steps) {
  double total = 0;
  for (const auto& t : times) total += t.seconds;
  for (const auto& t : times)
    std::fprintf(stderr, "  %-20s %8.2f ms %5.1f %% %6lld calls %7.1f GFLOP/s\n", t.name.c_str(),
                 1e3 * t.seconds / static_cast<double>(steps), 100 * t.seconds / total,
                 static_cast<long long>(t.calls / steps), t.flops / t.seconds / 1e9);
}

struct BatchShape {
  int rows, len;
  double loss_share;
};
void train_steps(benchmark::State& state, const model::Config& config, model::WeightType type,
                 model::TrainMethod method, const BatchShape& shape) {
  Device device(Bytes(0), kThreads);
  Network network(config, device, type);
  network.init_random(1);
  if (method == model::TrainMethod::lora)
    network.add_lora({.targets = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}}, 1);
  network.set_trainable(method);
  AdamW adam(device, network.parameters(), {});
  const Rows batch = random_rows(shape.rows, shape.len, config.vocab, shape.loss_share);
  std::int64_t t = 0;
  for (auto _ : state) {
    if (t == 1) network.take_profile();
    network.zero_gradients();
    benchmark::DoNotOptimize(network.forward_backward(batch, {.gradient_scale = 1e-3f}));
    adam.step(++t, 1e-4f, 1.0f, adam.gradient_norm());
    network.parameters_changed();
  }
  state.counters["tokens/s"] =
      benchmark::Counter(static_cast<double>(shape.rows * shape.len), benchmark::Counter::kIsIterationInvariantRate);
  const Ledger peak = device.arena.use().at_peak;
  state.counters["peak_MiB"] = static_cast<double>(peak.total().value) / (1 << 20);
  state.counters["besides_weights_MiB"] =
      static_cast<double>(peak.total().value - peak[MemoryCategory::weights].value) / (1 << 20);
  if (t > 1) print_profile(network.take_profile(), t - 1);
}

const engine::MachinePeak& machine_peak() {
  static const engine::MachinePeak peak = [] {
    Device device(Bytes(0), kThreads);
    return engine::measure_machine_peak(device);
  }();
  return peak;
}

void Machine_peak(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(machine_peak());
  const engine::MachinePeak& peak = machine_peak();
  state.counters = {{"f32_FLOP/s", peak.f32_flops},
                    {"bf16_FLOP/s", peak.bf16_flops},
                    {"read_16MiB_B/s", peak.cache_bytes},
                    {"read_DRAM_B/s", peak.dram_bytes},
                    {"threads_worth", peak.threads_worth}};
}
BENCHMARK(Machine_peak)->Iterations(1)->Unit(benchmark::kMillisecond);

// Times products that each read `bytes` of weights; peak_flops is 0 if no peak was measured.
template <class F>
void time_gemm(benchmark::State& state, double flops, double peak_flops, double bytes, F fn) {
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) fn();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const double a_second = static_cast<double>(state.iterations()) / took.count();
  state.counters["FLOP/s"] = flops * a_second;
  if (peak_flops > 0) state.counters["of_peak"] = flops * a_second / peak_flops;
  state.counters["of_DRAM"] = bytes * a_second / machine_peak().dram_bytes;
}

void Gemm_nt(benchmark::State& state) {
  const std::int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  Device device(Bytes(0), kThreads);
  Gemm gemm(device, model::WeightType::f32);
  std::vector<float> a(static_cast<size_t>(m * k), 0.5f), b(static_cast<size_t>(n * k), 0.25f),
      c(static_cast<size_t>(m * n));
  time_gemm(state, 2.0 * static_cast<double>(m * n * k), machine_peak().f32_flops, 4.0 * static_cast<double>(n * k),
            [&] {
              gemm.nt({m, n, k}, a.data(), {.f32 = b.data()}, c.data());
            });
}
BENCHMARK(Gemm_nt)
    ->Args({1, 2048, 640})
    ->Args({8, 2048, 640})
    ->Args({2048, 192, 192})
    ->Args({2048, 768, 192})
    ->Args({2048, 16, 192})
    ->Args({2048, 2048, 640})
    ->Args({256, 32768, 640})
    ->UseRealTime();

void Gemm_nt_bf16(benchmark::State& state) {
  const std::int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  Device device(Bytes(0), kThreads);
  Gemm gemm(device, model::WeightType::bf16);
  std::vector<float> a(static_cast<size_t>(m * k), 0.5f), c(static_cast<size_t>(m * n));
  std::vector<std::uint16_t> b(static_cast<size_t>(n * k), 0x3e80);
  time_gemm(state, 2.0 * static_cast<double>(m * n * k), machine_peak().bf16_flops, 2.0 * static_cast<double>(n * k),
            [&] {
              gemm.nt({m, n, k}, a.data(), {.bf16 = b.data()}, c.data());
            });
}
BENCHMARK(Gemm_nt_bf16)
    ->Args({1, 2048, 640})
    ->Args({8, 2048, 640})
    ->Args({2048, 2048, 640})
    ->Args({256, 32768, 640})
    ->UseRealTime();

// With few rows the weights rotate through 512 MiB of copies, so that they are read from DRAM as in a model.
void Gemm_nt_packed(benchmark::State& state) {
  const std::int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  Device device(Bytes(0), kThreads);
  Gemm gemm(device, model::WeightType::bf16);
  const std::int64_t copies = m <= 16 ? std::max<std::int64_t>(1, (std::int64_t{256} << 20) / (n * k)) : 1;
  std::vector<float> a(static_cast<size_t>(m * k), 0.5f), c(static_cast<size_t>(m * n));
  const std::vector<std::uint16_t> b(static_cast<size_t>(copies * n * k), 0x3e80);
  std::int64_t i = 0;
  time_gemm(state, 2.0 * static_cast<double>(m * n * k), machine_peak().bf16_flops, 2.0 * static_cast<double>(n * k),
            [&] {
              gemm.nt({m, n, k}, a.data(), {.packed = b.data() + i++ % copies * n * k}, c.data());
            });
}
BENCHMARK(Gemm_nt_packed)->UseRealTime()->Apply([](benchmark::internal::Benchmark* b) {
  for (const auto& [n, k] : {std::pair{2048, 640}, {262144, 640}, {6912, 1152}})
    for (const int m : {1, 4, 16, 64, 256, 512, 2048}) b->Args({m, n, k});
});

void Tiny_lora(benchmark::State& state) {
  train_steps(state, tiny(), model::WeightType::f32, model::TrainMethod::lora,
              {16, static_cast<int>(state.range(0)), 0.5});
}
BENCHMARK(Tiny_lora)->Arg(64)->Arg(256)->UseRealTime()->Unit(benchmark::kMillisecond);
void Tiny_full(benchmark::State& state) {
  train_steps(state, tiny(), model::WeightType::f32, model::TrainMethod::full,
              {16, static_cast<int>(state.range(0)), 1.0});
}
BENCHMARK(Tiny_full)->Arg(64)->Arg(256)->UseRealTime()->Unit(benchmark::kMillisecond);

// The shape of scripts/peers.sh: batch 4 x 512, loss on all tokens.
void Gemma270m_lora_f32(benchmark::State& state) {
  train_steps(state, gemma270m(), model::WeightType::f32, model::TrainMethod::lora, {4, 512, 1.0});
}
void Gemma270m_lora_bf16(benchmark::State& state) {
  train_steps(state, gemma270m(), model::WeightType::bf16, model::TrainMethod::lora, {4, 512, 1.0});
}
// The same number of tokens in rows of 2048 and 4096: the cost of longer sequences with mostly sliding layers.
void Gemma270m_sequence(benchmark::State& state) {
  const int len = static_cast<int>(state.range(0));
  train_steps(state, gemma270m(), model::WeightType::bf16, model::TrainMethod::lora, {4096 / len, len, 0.25});
}
BENCHMARK(Gemma270m_sequence)->Arg(2048)->Arg(4096)->UseRealTime()->Unit(benchmark::kMillisecond)->Iterations(2);
// Compares besides_weights_MiB of a large and a small vocabulary.
void Gemma270m_vocabulary(benchmark::State& state) {
  model::Config config = gemma270m();
  config.vocab = static_cast<int>(state.range(0));
  train_steps(state, config, model::WeightType::bf16, model::TrainMethod::lora, {4, 512, 1.0});
}
BENCHMARK(Gemma270m_vocabulary)->Arg(32768)->Arg(262144)->UseRealTime()->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK(Gemma270m_lora_f32)->UseRealTime()->Unit(benchmark::kMillisecond)->Iterations(3);
BENCHMARK(Gemma270m_lora_bf16)->UseRealTime()->Unit(benchmark::kMillisecond)->Iterations(3);

// The shipped model and the LoRA of its example on meshes of (fsdp, tp): the same work on more virtual devices.
void mesh_steps(benchmark::State& state, model::WeightType type) {
  const model::Config config = gemma3({6, 192, 640, 8, 4, 32, 2048, 128});
  const mesh::Mesh mesh{{{"fsdp", static_cast<int>(state.range(0))}, {"tp", static_cast<int>(state.range(1))}}};
  const auto created = Cluster::create(config, {.mesh = mesh, .rules = {}, .weights = type, .threads = kThreads});
  Cluster& cluster = *created;
  cluster.init_random(1);
  cluster.add_lora(
      {.rank = 8, .targets = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}}, 1);
  cluster.train(model::TrainMethod::lora, {});
  const Rows batch = random_rows(16, 96, config.vocab, 0.5);
  std::int64_t t = 0;
  for (auto _ : state) {
    if (t == 1) cluster.take_profile(), cluster.clear_traffic();
    cluster.zero_gradients();
    benchmark::DoNotOptimize(cluster.forward_backward(batch, {.gradient_scale = 1e-3f}));
    cluster.update(++t, 1e-4f, 1.0f, cluster.gradient_norm());
  }
  std::map<std::string, std::pair<double, double>> spent;  // seconds in calls, seconds waiting
  for (int device = 0; device < cluster.devices(); ++device)
    for (const CollectiveTraffic& one : cluster.traffic(device)) {
      auto& [seconds, waited] = spent[to_string(one.what.kind) + ", " + to_string(one.what.cause)];
      seconds += one.seconds, waited += one.waited;
    }
  const double steps = static_cast<double>(std::max<std::int64_t>(1, t - 1)) / 1e3;
  for (const auto& [what, seconds] : spent)
    std::fprintf(stderr, "  %-60s %8.2f ms, of these %8.2f waiting, all devices\n", what.c_str(), seconds.first / steps,
                 seconds.second / steps);
  if (t > 1) print_profile(cluster.take_profile(), t - 1);
}
void Mesh_lora_f32(benchmark::State& state) {
  mesh_steps(state, model::WeightType::f32);
}
void Mesh_lora_bf16(benchmark::State& state) {
  mesh_steps(state, model::WeightType::bf16);
}
void mesh_sizes(benchmark::internal::Benchmark* b) {
  for (const auto& [fsdp, tp] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 4}}) b->Args({fsdp, tp});
  b->UseRealTime()->Unit(benchmark::kMillisecond);
}
BENCHMARK(Mesh_lora_f32)->Apply(mesh_sizes);
BENCHMARK(Mesh_lora_bf16)->Apply(mesh_sizes);

// A batch of rows with a 16-token prompt and 48 new tokens each. non_matmul_%: share of wall time outside matmuls.
enum class Lora { without, rank16 };
void decode(benchmark::State& state, const model::Config& config, model::WeightType type, Lora lora) {
  constexpr int kNew = 48;
  const auto rows = static_cast<size_t>(state.range(0));
  Device device(Bytes(0), kThreads);
  Network network(config, device, type, NetworkUse::inference);
  network.init_random(1);
  if (lora == Lora::rank16)
    network.add_lora({.targets = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}}, 1);
  const std::vector<std::vector<int>> prompts(rows, std::vector<int>(16, 5));
  using Clock = std::chrono::steady_clock;
  double seconds = 0, matmul = 0;
  std::int64_t tokens = 0;
  const auto run = [&] {  // excludes prefill: the clock starts at the first token of the last row
    Clock::time_point begun;
    size_t seen = 0;
    Sampler(network).generate_batch(prompts, {.max_new_tokens = kNew}, {}, [&](int, int) {
      if (++seen == rows) network.take_profile(), begun = Clock::now();
      return true;
    });
    seconds += seconds_since(begun);
    tokens += static_cast<std::int64_t>(rows) * (kNew - 1);
    std::vector<KernelTime> times = network.take_profile();
    for (const auto& t : times)
      if (t.name == "projections" || t.name == "output head" || t.name == "lora") matmul += t.seconds;
    return times;
  };
  run();
  seconds = matmul = 0, tokens = 0;
  std::vector<KernelTime> times;
  for (auto _ : state) times = run();
  state.counters["decode_tokens/s"] = static_cast<double>(tokens) / seconds;
  state.counters["non_matmul_%"] = 100 * (1 - matmul / seconds);
  for (const auto& t : times)
    std::fprintf(stderr, "  %-14s %8.3f ms a step %8.1f us a call\n", t.name.c_str(), 1e3 * t.seconds / (kNew - 1),
                 1e6 * t.seconds / static_cast<double>(t.calls));
}
void Decode_tiny(benchmark::State& state) {
  decode(state, tiny(), model::WeightType::f32, Lora::without);
}
void Decode_gemma270m_bf16(benchmark::State& state) {
  decode(state, gemma270m(), model::WeightType::bf16, Lora::without);
}
void Decode_gemma270m_bf16_lora(benchmark::State& state) {
  decode(state, gemma270m(), model::WeightType::bf16, Lora::rank16);
}
BENCHMARK(Decode_tiny)->Arg(1)->Arg(16)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(Decode_gemma270m_bf16)->Arg(1)->Arg(16)->UseRealTime()->Unit(benchmark::kMillisecond)->Iterations(3);
BENCHMARK(Decode_gemma270m_bf16_lora)->Arg(1)->Arg(16)->UseRealTime()->Unit(benchmark::kMillisecond)->Iterations(3);

}  // namespace
}  // namespace mw::engine

BENCHMARK_MAIN();
