// SPDX-License-Identifier: GPL-3.0-or-later
// The Meshwright side of scripts/peers.sh: one workload per process, whose measurements are one JSON line on standard
// output.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/rng.h"
#include "core/base/units.h"
#include "core/data/dataset/batches.h"
#include "core/engine/generate/sampler.h"
#include "core/engine/kernels/machine_peak.h"
#include "core/engine/transformer/optimizer.h"
#include "core/formats/huggingface/hf_weights.h"

namespace mw {
namespace {

struct Options {
  std::string model, work, batches, dtype = "bf16", remat = "none";
  int threads = 2, prompt = 16, tokens = 128, rows = 1;
  double seconds = 8;
  bool panels = false;
};

using Clock = std::chrono::steady_clock;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

struct Model {
  engine::Device device;
  engine::Network network;
  Model(const model::Config& config, const Options& o, engine::NetworkUse use)
      : device(Bytes(0), o.threads),
        network(config, device,
                o.dtype == "f32"    ? model::WeightType::f32
                : o.dtype == "int8" ? model::WeightType::int8
                                    : model::WeightType::bf16,
                use) {}
};

std::unique_ptr<Model> load(const Options& o, engine::NetworkUse use) {
  const model::Config config = formats::read_config(o.model);
  auto model = std::make_unique<Model>(config, o, use);
  const formats::HfWeights weights(o.model, model->network.inventory());
  model->network.load(
      {.f32 = [&](size_t i, std::int64_t first, std::span<float> out) { weights.read_f32(i, first, out); },
       .bf16 = [&](size_t i, std::int64_t first, std::span<std::uint16_t> out) { weights.read_bf16(i, first, out); }});
  return model;
}

struct Elapsed {
  double wall = 0, cpu = 0;  // seconds; cpu: of all threads
};

class Stopwatch {
 public:
  Elapsed elapsed() const { return {seconds_since(start_), static_cast<double>(std::clock() - cpu_) / CLOCKS_PER_SEC}; }

 private:
  Clock::time_point start_ = Clock::now();
  std::clock_t cpu_ = std::clock();
};

double median(const std::vector<Elapsed>& times, double Elapsed::*which) {
  std::vector<double> values;
  for (const Elapsed& e : times) values.push_back(e.*which);
  return median(std::move(values));
}

Json result(double tokens, const std::vector<Elapsed>& times, const engine::Device& device) {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const double middle = median(times, &Elapsed::wall);
  return {{"tokens_per_s", tokens / middle},
          {"seconds", middle},
          {"cpu_seconds", median(times, &Elapsed::cpu)},
          {"repeats", times.size()},
          {"peak_bytes", std::int64_t{usage.ru_maxrss} * 1024},
          {"engine_peak_bytes", device.arena.use().at_peak.total().value}};
}

// Repeats fn, which returns the time to count, at least once, until enough time has been measured.
template <class F>
std::vector<Elapsed> measure(double seconds, F fn) {
  std::vector<Elapsed> times;
  const auto start = Clock::now();
  do times.push_back(fn());
  while (seconds_since(start) < seconds);
  return times;
}

// {"batches": [[{"ids": [...], "loss_from": n}, ...], ...]}: tokens from `loss_from` on carry loss.
std::vector<data::Batch> read_batches(const std::string& file) {
  const Json content = read_json(file);
  std::vector<data::Batch> out;
  for (const Json& batch : member(content, "batches", file)) {
    std::vector<data::Example> examples;
    std::vector<std::vector<int>> rows;
    for (const Json& row : batch) {
      data::Example e;
      e.ids = member(row, "ids", file).get<std::vector<int>>();
      e.loss.assign(e.ids.size(), 0);
      const auto from = static_cast<size_t>(int_member(row, "loss_from", file));
      std::fill(e.loss.begin() + static_cast<std::ptrdiff_t>(std::min(from, e.loss.size())), e.loss.end(), 1);
      rows.push_back({static_cast<int>(examples.size())});
      examples.push_back(std::move(e));
    }
    out.push_back(data::make_batch(examples, rows, 0));
  }
  return out;
}

// Returns seconds and GFLOP/s of each kind of kernel per pass.
Json profile(engine::Network& network, size_t repeats) {
  Json out = Json::object();
  for (const auto& k : network.take_profile())
    out[k.name] = {{"seconds", k.seconds / static_cast<double>(repeats)}, {"gflops", k.flops / k.seconds / 1e9}};
  return out;
}

// Measures whole passes over the batches, with an optimizer step per batch. The first batch also serves as warm-up.
Json lora(const Options& o) {
  const std::vector<data::Batch> batches = read_batches(o.batches);
  const auto model = load(o, engine::NetworkUse::training);
  engine::Network& network = model->network;
  network.add_lora({.rank = 16,
                    .alpha = 32,
                    .targets = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}},
                   1);
  network.set_trainable(model::TrainMethod::lora);
  engine::AdamW adam(model->device, network.parameters(), {});
  const auto remat = o.remat == "layer"   ? model::Remat::layer
                     : o.remat == "block" ? model::Remat::block
                                          : model::Remat::none;
  std::int64_t t = 0;
  double last_loss = 0;
  const auto step = [&](const data::Batch& b) {
    network.zero_gradients();
    const engine::LossSum loss = network.forward_backward(
        {b.rows, b.len, b.ids, b.targets, b.positions, b.segments},
        {.remat = remat, .gradient_scale = 1.0f / static_cast<float>(std::max<std::int64_t>(1, b.loss_tokens))});
    adam.step(++t, 1e-4f, 1.0f, adam.gradient_norm());
    network.parameters_changed();
    last_loss = loss.sum / static_cast<double>(loss.tokens);
  };
  step(batches.front());
  std::int64_t tokens = 0;
  for (const data::Batch& b : batches) tokens += b.real_tokens;
  network.take_profile();
  const auto times = measure(o.seconds, [&] {
    const Stopwatch watch;
    std::for_each(batches.begin(), batches.end(), step);
    return watch.elapsed();
  });
  Json out = result(static_cast<double>(tokens), times, model->device);
  out["loss"] = last_loss;
  out["profile"] = profile(network, times.size());
  return out;
}

std::vector<int> random_ids(int count, int vocab, std::uint64_t seed) {
  Rng rng{seed};
  std::vector<int> ids(static_cast<size_t>(count));
  for (int& id : ids) id = 4 + static_cast<int>(rng.below(static_cast<std::uint64_t>(vocab - 4)));
  return ids;
}

// Measures a prompt up to the logits of its last token.
Json prefill(const Options& o) {
  const auto model = load(o, engine::NetworkUse::inference);
  const std::vector<int> prompt = random_ids(o.tokens, model->network.config().vocab, 1);
  engine::Sampler sampler(model->network);
  const auto once = [&] {
    const Stopwatch watch;
    sampler.generate(prompt, {.max_new_tokens = 1});
    return watch.elapsed();
  };
  once();
  model->network.take_profile();
  const std::vector<Elapsed> times = measure(o.seconds, once);
  Json out = result(o.tokens, times, model->device);
  out["profile"] = profile(model->network, times.size());
  return out;
}

// The rate at which `once` reads its bytes, relative to that of plain reads just before and after it: other load
// changes both within seconds.
template <class F>
double read_share(engine::Device& device, double bytes, F once) {
  constexpr int kRepeats = 3;
  constexpr double kSeconds = 0.3;
  std::vector<double> shares;
  double before = engine::measure_dram_read(device, kSeconds);
  for (int i = 0; i < kRepeats; ++i) {
    const double rate = bytes / once().wall, after = engine::measure_dram_read(device, kSeconds);
    shares.push_back(2 * rate / (before + after));
    before = after;
  }
  return median(std::move(shares));
}

// Measures greedy decoding from the first token of the last row until every row has `tokens` more.
Json decode(const Options& o) {
  const auto model = load(o, o.panels ? engine::NetworkUse::training : engine::NetworkUse::inference);
  std::vector<std::vector<int>> prompts;
  for (int row = 0; row < o.rows; ++row)
    prompts.push_back(random_ids(o.prompt, model->network.config().vocab, static_cast<std::uint64_t>(row) + 1));
  engine::Sampler sampler(model->network);
  const auto once = [&] {
    Stopwatch watch;
    int seen = 0;
    sampler.generate_batch(prompts, {.max_new_tokens = o.tokens + 1}, {}, [&](int, int) {
      if (++seen == o.rows) watch = {};
      return true;
    });
    return watch.elapsed();
  };
  once();
  const std::vector<Elapsed> times = measure(o.seconds, once);
  Json out = result(o.tokens * o.rows, times, model->device);
  // A step reads every weight once, the embedding as the head.
  const double bytes =
      static_cast<double>(model->device.arena.use().now[MemoryCategory::weights].value) * static_cast<double>(o.tokens);
  out["read_bytes_per_s"] = bytes / median(times, &Elapsed::wall);
  out["read_share"] = read_share(model->device, bytes, once);
  return out;
}

Json peak(const Options& o) {
  engine::Device device(Bytes(0), o.threads);
  const engine::MachinePeak p = engine::measure_machine_peak(device);
  return {{"f32_flops", p.f32_flops},
          {"bf16_flops", p.bf16_flops},
          {"cache_read_bytes_per_s", p.cache_bytes},
          {"dram_read_bytes_per_s", p.dram_bytes},
          {"threads_worth", p.threads_worth}};
}

int run(int argc, char** argv) {
  Options o;
  CLI::App app("One piece of work of scripts/peers.sh, done by Meshwright's engine");
  app.add_option("--work", o.work)->required()->check(CLI::IsMember({"lora", "prefill", "decode", "peak"}));
  app.add_option("--model", o.model, "HF folder");
  app.add_option("--batches", o.batches, "JSON file of the rows of every optimizer step");
  app.add_option("--dtype", o.dtype)->check(CLI::IsMember({"f32", "bf16", "int8"}));
  app.add_option("--remat", o.remat)->check(CLI::IsMember({"none", "block", "layer"}));
  app.add_option("--threads", o.threads);
  app.add_option("--prompt", o.prompt, "tokens before the decoded ones");
  app.add_option("--tokens", o.tokens, "tokens to prefill, or to decode per row");
  app.add_flag("--panels", o.panels, "decode from plain bf16 panels, as training holds them");
  app.add_option("--rows", o.rows, "sequences decoded at once")->check(CLI::PositiveNumber);
  app.add_option("--seconds", o.seconds, "measure at least this long");
  CLI11_PARSE(app, argc, argv);
  const Json out = o.work == "lora"      ? lora(o)
                   : o.work == "prefill" ? prefill(o)
                   : o.work == "decode"  ? decode(o)
                                         : peak(o);
  std::printf("%s\n", out.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace mw

int main(int argc, char** argv) {
  try {
    return mw::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
