// SPDX-License-Identifier: GPL-3.0-or-later
// Measures serving in the engine: decoding with paged KV against generate_batch, chunked against whole prompts, and a
// sweep simulated from its own steps against the measured sweep.
//   mw_engine_serve_bench RESOURCES [decode|prefill|adapters|idle|sweep]...
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <thread>

#include "core/base/rng.h"
#include "core/base/units.h"
#include "core/engine/generate/sampler.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/serve/load/engine_backend.h"
#include "core/serve/load/load_statistics.h"
#include "core/serve/load/replay_steps.h"
#include "core/serve/load/simulated_backend.h"
#include "core/serve/scheduling/engine_executor.h"
#include "core/serve/scheduling/measured_steps.h"
#include "core/serve/scheduling/serving_loop.h"

namespace mw::serve {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kThreads = 2;

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

struct Model {
  Model(const model::Config& config, model::WeightType type)
      : device(Bytes(0), kThreads), network(config, device, type, engine::NetworkUse::inference) {}
  engine::Device device;
  engine::Network network;
};

std::unique_ptr<Model> shipped(const std::string& resources) {
  const std::string folder = resources + "/base-model";
  auto m = std::make_unique<Model>(formats::read_config(folder), model::WeightType::bf16);
  const formats::HfWeights weights(folder, m->network.inventory());
  m->network.load(
      {.f32 = [&](size_t i, std::int64_t first, std::span<float> out) { weights.read_f32(i, first, out); },
       .bf16 = [&](size_t i, std::int64_t first, std::span<std::uint16_t> out) { weights.read_bf16(i, first, out); }});
  return m;
}

// A model with the sizes of Gemma 3 270M, random weights and a smaller vocabulary.
std::unique_ptr<Model> random_270m() {
  model::Config c;
  c.id = "270m";
  c.vocab = 32768, c.dim = 640, c.sliding_window = 512, c.max_positions = 32768, c.qk_norm = true;
  c.attention_scale = 1.0f / 16;
  for (int i = 0; i < 18; ++i) {
    model::Layer l;
    l.attention = i % 6 == 5 ? model::Attention::full : model::Attention::sliding;
    l.heads = 4, l.kv_heads = 1, l.head_dim = 256, l.mlp_dim = 2048;
    l.rope_theta = i % 6 == 5 ? 1e6f : 1e4f;
    c.layers.push_back(l);
  }
  auto m = std::make_unique<Model>(c, model::WeightType::bf16);
  m->network.init_random(1);
  return m;
}

std::vector<int> prompt_of(int row, int len, int vocab) {
  const Rng rng{7, static_cast<std::uint64_t>(row)};
  std::vector<int> ids;
  for (int i = 0; i < len; ++i)
    ids.push_back(static_cast<int>(rng.at(static_cast<std::uint64_t>(i)) % static_cast<std::uint64_t>(vocab)));
  return ids;
}

SchedulerSettings room(engine::Network& network, int seqs, int tokens, int len) {
  SchedulerSettings s{.max_num_seqs = seqs, .max_num_batched_tokens = tokens, .max_model_len = len, .kv = {}};
  s.prefix_cache = PrefixCache::off;
  return lay_out_engine_kv(network.config(), s, Bytes(0));
}

struct Times {
  double prefill = 0, step = 0;  // seconds of all prompts, and of a step that decodes every row
};

Times generate(engine::Network& network, int rows, int len, int steps) {
  std::vector<std::vector<int>> prompts;
  for (int r = 0; r < rows; ++r) prompts.push_back(prompt_of(r, len, network.config().vocab));
  Times t;
  int tokens = 0;
  const auto begun = Clock::now();
  engine::Sampler(network).generate_batch(prompts, {.max_new_tokens = steps + 1}, {}, [&](int, int) {
    if (++tokens == rows) t.prefill = seconds_since(begun);
    return true;
  });
  t.step = (seconds_since(begun) - t.prefill) / steps;
  return t;
}

struct ServedLoad {
  int rows, len, steps, budget;
  const formats::PeftAdapter* adapter = nullptr;
  int adapters = 1;
};
Times served(engine::Network& network, const ServedLoad& load) {
  const auto& [rows, len, steps, budget, adapter, adapters] = load;
  constexpr int kMore = 200;  // extra tokens, so that the first rows still run when the last one decodes
  const SchedulerSettings s = room(network, rows, budget, len + steps + kMore);
  EngineExecutor executor(network, s);
  if (adapter)
    for (int i = 0; i < adapters; ++i) executor.add_adapter(std::to_string(i), *adapter);
  Scheduler scheduler(s);
  for (int r = 0; r < rows; ++r) {
    executor.begin(RequestId{r}, {.prompt_ids = prompt_of(r, len, network.config().vocab),
                                  .adapter = adapter ? std::to_string(r % adapters) : ""});
    scheduler.add({.id = RequestId{r}, .prompt_len = len, .max_new_tokens = steps + kMore});
  }
  Times t;
  std::vector<double> each;
  while (static_cast<int>(each.size()) < steps) {
    const auto begun = Clock::now();
    const Step step = scheduler.next();
    const StepResult result = executor.run(step, scheduler);
    scheduler.advance(step);
    scheduler.finish({});
    const bool decodes = step.tokens() == rows && static_cast<int>(result.sampled.size()) == rows;
    (decodes ? each.emplace_back(0) : t.prefill) += seconds_since(begun);
  }
  double sum = 0;
  for (const double x : each) sum += x;
  t.step = sum / static_cast<double>(each.size());
  return t;
}

void decode(const std::string& resources) {
  std::printf("decode: a step of every row, blocks against generate_batch\n%8s %5s %6s %14s %14s %7s\n", "model",
              "rows", "prompt", "generate us", "blocks us", "ratio");
  const auto table = [](const char* name, engine::Network& network, int len, int steps, std::vector<int> batches) {
    for (const int rows : batches) {
      std::vector<double> g, s;
      for (int i = 0; i < 3; ++i) {
        g.push_back(generate(network, rows, len, steps).step);
        s.push_back(served(network, {rows, len, steps, 2048}).step);
      }
      std::printf("%8s %5d %6d %14.0f %14.0f %7.3f\n", name, rows, len, 1e6 * median(g), 1e6 * median(s),
                  median(s) / median(g));
    }
  };
  table("shipped", shipped(resources)->network, 200, 100, {1, 4, 16, 32});
  const auto large = random_270m();
  table("270m", large->network, 100, 12, {1, 4, 16, 32});
  table("270m", large->network, 1000, 8, {8});
}

void prefill() {
  const auto m = random_270m();
  constexpr int kLen = 4096;
  std::printf("prefill of %d tokens, 270m: whole in one pass, then in chunks\n", kLen);
  const double whole = generate(m->network, 1, kLen, 1).prefill;
  std::printf("%8s %10.2f s\n", "whole", whole);
  for (const int chunk : {2048, 512, 128}) {
    const double t = served(m->network, {1, kLen, 1, chunk}).prefill;
    std::printf("%8d %10.2f s %7.3f of whole\n", chunk, t, t / whole);
  }
}

void adapters(const std::string& resources) {
  const auto m = shipped(resources);
  formats::PeftAdapter adapter;
  for (const model::LoraTarget& t : m->network.inventory().lora_targets())
    adapter.modules.push_back({t, 8, 16, std::vector<float>(static_cast<size_t>(8 * t.in), 0.01f),
                               std::vector<float>(static_cast<size_t>(8 * t.out), 0.01f)});
  std::printf("decode, shipped model, 16 rows of 200: adapters of rank 8\n");
  const double base = served(m->network, {16, 200, 60, 2048}).step;
  std::printf("%20s %8.0f us\n", "none", 1e6 * base);
  for (const int n : {1, 4, 16}) {
    const double t = served(m->network, {16, 200, 60, 2048, &adapter, n}).step;
    std::printf("%17d of %8.0f us %7.3f of none\n", n, 1e6 * t, t / base);
  }
}

// Measures the loads of resources/examples/tiny-serve.json in the engine and simulates each from its own steps, as a
// replay does. Medians of three rounds.
class Sweep {
 public:
  explicit Sweep(const std::string& resources) : model_(shipped(resources)) {}

  void run() {
    constexpr int kRounds = 3;
    const auto begun = Clock::now();
    std::printf("%5s %6s %6s | %9s %7s | %8s %7s | %8s %7s | %s\n", "round", "prompt", "rate", "tok/s", "error",
                "TPOT ms", "error", "TTFT ms", "error", "verdict");
    for (int round = 1; round <= kRounds; ++round)
      for (const int len : {64, 256})
        for (const double rate : {20.0, 40.0, 120.0, 240.0}) point(round, len, rate);
    Error worst, worst_half;
    for (const auto& [at, errors] : errors_) worst = worst.or_worse(of_rounds(errors));
    for (const auto& [at, errors] : of_half_) worst_half = worst_half.or_worse(of_rounds(errors));
    std::printf(
        "largest error: throughput %.1f %% (bar 10 %%), median TPOT %.1f %% (bar 15 %%), median TTFT %.1f %%; %.0f s\n",
        100 * worst.throughput, 100 * worst.tpot, 100 * worst.ttft, seconds_since(begun));
    std::printf("from every second of its steps: %.1f %%, %.1f %%, %.1f %%\n", 100 * worst_half.throughput,
                100 * worst_half.tpot, 100 * worst_half.ttft);
  }

 private:
  struct Error {  // simulated / measured - 1
    double throughput = 0, tpot = 0, ttft = 0;
    Error or_worse(const Error& e) const {
      return {std::max(throughput, std::abs(e.throughput)), std::max(tpot, std::abs(e.tpot)),
              std::max(ttft, std::abs(e.ttft))};
    }
  };
  static Error of_rounds(const std::vector<Error>& rounds) {
    std::vector<double> throughput, tpot, ttft;
    for (const Error& e : rounds) throughput.push_back(e.throughput), tpot.push_back(e.tpot), ttft.push_back(e.ttft);
    return {median(throughput), median(tpot), median(ttft)};
  }

  Error simulated(const Load& load, std::vector<formats::TimedStep> own, const formats::BenchPoint& measured) const {
    const ReplayStepModel steps = ReplayStepModel::fit_load(merge_similar_steps(own), {});
    auto executor = std::make_unique<ReplayExecutor>(steps, config());
    executor->use(steps, load);
    const formats::BenchPoint p =
        summarise(load, make_simulated_backend(std::move(executor), settings_)->run(load, {}, {}), {});
    return {p.output_throughput / measured.output_throughput - 1, p.tpot.median / measured.tpot.median - 1,
            p.ttft.median / measured.ttft.median - 1};
  }

  void point(int round, int len, double rate) {
    const Load load = make_load({.request_rate = rate,
                                 .input_len = len,
                                 .output_len = 32,
                                 .num_prompts = 100,
                                 .warmups = 8,
                                 .seed = static_cast<std::uint64_t>(round)});
    logged_.take();
    const formats::BenchPoint a = summarise(load, real_->run(load, {}, {}), {});
    const std::vector<formats::TimedStep> log = time_logged_steps(logged_.take());
    // Uses every second step, so that the step model has to predict the others.
    std::vector<formats::TimedStep> half;
    for (size_t i = 1; i < log.size(); i += 2) half.push_back(log[i]), half.back().count = 2;
    const Error own = simulated(load, log, a);
    errors_[{len, rate}].push_back(own);
    of_half_[{len, rate}].push_back(simulated(load, half, a));
    std::printf("%5d %6d %6.0f | %9.0f %6.1f%% | %8.3f %6.1f%% | %8.2f %6.1f%% | %s\n", round, len, rate,
                a.output_throughput, 100 * own.throughput, a.tpot.median, 100 * own.tpot, a.ttft.median, 100 * own.ttft,
                a.verdict.c_str());
    std::fflush(stdout);
  }

  const model::Config& config() const { return model_->network.config(); }

  static constexpr int kFirst = 10;  // id of prompts
  std::unique_ptr<Model> model_;
  SchedulerSettings settings_ =
      lay_out_engine_kv(model_->network.config(),
                        {.max_num_seqs = 16, .max_num_batched_tokens = 512, .max_model_len = 512, .kv = {}}, Bytes(0));
  EngineExecutor executor_{model_->network, settings_};
  LoggingExecutor logged_{executor_, model_->network.config()};
  std::unique_ptr<LoadBackend> real_ = make_loop_backend(
      logged_, settings_,
      {.first_id = kFirst, .vocab = model_->network.config().vocab, .on_warmed_up = [this] { logged_.take(); }});
  std::map<std::pair<int, double>, std::vector<Error>> errors_, of_half_;
};

// Measures the steps of a single request after the server has been idle for a while.
void after_idle(const std::string& resources) {
  constexpr int kTimes = 40, kNew = 32;
  const auto model = shipped(resources);
  const SchedulerSettings settings =
      lay_out_engine_kv(model->network.config(),
                        {.max_num_seqs = 16, .max_num_batched_tokens = 512, .max_model_len = 512, .kv = {}}, Bytes(0));
  EngineExecutor executor(model->network, settings);
  LoggingExecutor logged(executor, model->network.config());
  ServingLoop loop(settings, logged, 16);
  std::printf("us from a step's begin to the next one's, medians of %d requests alone; prefill first\n%8s", kTimes,
              "idle ms");
  for (int i = 0; i < kNew - 1; ++i) std::printf(" %4d", i);
  std::printf("\n");
  for (const int idle_ms : {0, 1, 3, 10, 30, 100}) {
    std::vector<std::vector<double>> us(kNew);
    for (int t = 0; t < kTimes; ++t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(idle_ms));
      std::promise<void> over;
      loop.submit({.prompt_ids = std::vector<int>(64, 10 + t), .sampling = {.max_new_tokens = kNew}},
                  [&](RequestId, const TokenEvent& event) {
                    if (event.is_last()) over.set_value();
                  });
      over.get_future().wait();
      const auto log = logged.take();
      for (size_t i = 0; i + 1 < log.size(); ++i) us[i].push_back(1e6 * (log[i + 1].begun_s - log[i].begun_s));
    }
    std::printf("%8d", idle_ms);
    for (int i = 0; i < kNew - 1; ++i) std::printf(" %4.0f", median(us[static_cast<size_t>(i)]));
    std::printf("\n");
  }
}

}  // namespace
}  // namespace mw::serve

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "mw_engine_serve_bench RESOURCES [decode|prefill|adapters|idle|sweep]...\n");
    return 2;
  }
  const std::string resources = argv[1];
  const auto wanted = [&](const char* name) {
    return argc == 2 || std::any_of(argv + 2, argv + argc, [&](const char* a) { return std::strcmp(a, name) == 0; });
  };
  if (wanted("decode")) mw::serve::decode(resources);
  if (wanted("prefill")) mw::serve::prefill();
  if (wanted("adapters")) mw::serve::adapters(resources);
  if (wanted("idle")) mw::serve::after_idle(resources);
  if (wanted("sweep")) mw::serve::Sweep(resources).run();
}
