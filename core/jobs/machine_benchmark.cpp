// SPDX-License-Identifier: Apache-2.0
#include "core/jobs/machine_benchmark.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/base/units.h"
#include "core/engine/generate/sampler.h"
#include "core/engine/kernels/kernel_choice.h"
#include "core/engine/transformer/optimizer.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/formats/results/bench_result.h"
#include "core/serve/scheduling/engine_executor.h"
#include "core/train/model.h"

namespace mw::jobs {
namespace {

Bytes memory_of(const MachineBenchmarkRequest& request) {
  return request.memory.value > 0 ? request.memory : train::machine_memory();
}

using BenchmarkClock = std::chrono::steady_clock;
constexpr double kRatesPercentile = 25;

double median_round(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return (seconds[(seconds.size() - 1) / 2] + seconds[seconds.size() / 2]) / 2;
}

std::vector<int> benchmark_ids(int count, int vocab, std::uint64_t seed) {
  Rng rng{seed};
  std::vector<int> ids(static_cast<size_t>(count));
  for (int& id : ids) id = static_cast<int>(rng.below(static_cast<std::uint64_t>(vocab)));
  return ids;
}

// Names the parts, reports progress and measures rounds.
class MachineBenchmarker {
 public:
  MachineBenchmarker(const MachineBenchmarkRequest& request,
                     const std::function<void(const BenchmarkProgress&)>& progress, const std::stop_token& stop)
      : request_(request), progress_(progress), stop_(stop) {
    out_.model = request.config.id;
    out_.processor = engine::processor_name();
    out_.instruction_set = to_string(engine::usable_cpu());
    out_.kernels = engine::describe_choice();
    out_.threads = train::thread_count(request.threads);
  }

  MachineBenchmark run() {
    measure_peak();
    measure_works();
    measured_model_ = {.config = plan::benchmark_model(plan::kSmallModel), .is_small = true};
    measure_works();
    finish();
    return std::move(out_);
  }

 private:
  static constexpr int kSmallRounds = 5;  // at least, because they are short
  struct MeasuredModel {
    model::Config config;
    bool is_small = false;  // random weights, and short rounds of long contexts
  };

  void measure_works() {
    using model::WeightType;
    if_it_fits("Prefill and decode, bf16", WeightType::bf16, [&] {
      Model bf16(*this, WeightType::bf16, engine::NetworkUse::inference);
      prefill(bf16, WeightType::bf16);
      for (const int rows : {1, 16}) decode(bf16, rows, WeightType::bf16);
    });
    if_it_fits("Decode, int8", WeightType::int8, [&] {
      Model int8(*this, WeightType::int8, engine::NetworkUse::inference);
      for (const int rows : {1, 16}) decode(int8, rows, WeightType::int8);
    });
    if_it_fits("LoRA step, bf16", WeightType::bf16, [&] { train_lora(WeightType::bf16); });
    if_it_fits("Prefill, f32", WeightType::f32, [&] {
      Model f32(*this, WeightType::f32, engine::NetworkUse::inference);
      prefill(f32, WeightType::f32);
    });
    if_it_fits(
        "LoRA step, f32", WeightType::f32, [&] { train_lora(WeightType::f32); }, besides_weights_);
  }

  struct Model {
    engine::Device device;
    engine::Network network;
    Model(const MachineBenchmarker& owner, model::WeightType type, engine::NetworkUse use)
        : device(Bytes(0), owner.out_.threads), network(owner.measured_model_.config, device, type, use) {
      owner.throw_if_stopped();
      if (owner.request_.weights.empty() || owner.measured_model_.is_small) {
        network.init_random(1);
        return;
      }
      const formats::HfWeights weights(owner.request_.weights, network.inventory());
      network.load({.f32 = [&](size_t i, std::int64_t first, std::span<float> out) { weights.read_f32(i, first, out); },
                    .bf16 = [&](size_t i, std::int64_t first,
                                std::span<std::uint16_t> out) { weights.read_bf16(i, first, out); }});
    }
    double weight_bytes() const { return static_cast<double>(device.arena.use().now[MemoryCategory::weights].value); }
    double attention_seconds = 0;  // up to the last take_flops(), since the one before
    double take_flops() {
      double sum = 0;
      attention_seconds = 0;
      for (const engine::KernelTime& kernel : network.take_profile()) {
        sum += kernel.flops;
        if (kernel.name == "attention") attention_seconds = kernel.seconds;
      }
      return sum;
    }
  };

  // Work per round, from which the shares follow.
  struct RoundWork {
    double flops = 0;
    std::optional<double> bytes = std::nullopt;
    double kv_seconds = 0;  // BenchmarkFigure::kv_seconds
  };

  // `more`: bytes besides the weights, as far as they are known. Work that does not fit is left out, with the reason.
  template <class F>
  void if_it_fits(const std::string& work, model::WeightType type, F measure_work, double more = 0) {
    const double needed = static_cast<double>(model::TensorInventory(measured_model_.config).parameters()) *
                              (type == model::WeightType::f32    ? 4
                               : type == model::WeightType::bf16 ? 2
                                                                 : 1) +
                          more;
    const Bytes present = memory_of(request_);
    if (needed > static_cast<double>(present.value)) {
      out_.skipped.push_back({work, "needs " + to_text(Bytes(static_cast<std::int64_t>(needed))) +
                                        " of this machine's " + to_text(present)});
      return;
    }
    try {
      measure_work();
    } catch (const engine::OutOfMemory& e) {
      out_.skipped.push_back({work, e.problem().message});
    }
  }

  void throw_if_stopped() const {
    if (stop_.stop_requested()) throw cancelled("the benchmark");
  }

  void begin_part(const std::string& part) {
    throw_if_stopped();
    constexpr int kParts = 18;
    BenchmarkProgress report{.part = part, .done = done_, .total = kParts};
    if (done_ > 0) report.seconds_left = seconds_since(start_) / done_ * (kParts - done_);
    if (progress_) progress_(report);
    ++done_;
  }

  void measure_peak() {
    begin_part("Peak rates");
    engine::Device device(Bytes(0), out_.threads);
    out_.peak = engine::measure_machine_peak(device, request_.peak_seconds);
  }

  // Peaks are measured again, because other programs may have disturbed the first measurement; the higher ones count.
  void finish() {
    const engine::MachinePeak first = out_.peak;
    measure_peak();
    engine::MachinePeak& peak = out_.peak;
    for (double engine::MachinePeak::*rate : {&engine::MachinePeak::f32_flops, &engine::MachinePeak::bf16_flops,
                                              &engine::MachinePeak::cache_bytes, &engine::MachinePeak::dram_bytes})
      peak.*rate = std::max(peak.*rate, first.*rate);
    peak.threads_worth = std::min(peak.threads_worth, first.threads_worth);  // tells of other programs
    for (Measured& m : measured_) {
      const double seconds = median_round(m.figure.seconds), flops = m.type == model::WeightType::f32
                                                                         ? peak.f32_flops
                                                                         : std::max(peak.f32_flops, peak.bf16_flops);
      if (flops > 0) m.figure.arithmetic_share = m.work.flops / seconds / flops;
      if (m.work.bytes) m.figure.memory_share = *m.work.bytes / seconds / peak.dram_bytes;
      out_.figures.push_back(std::move(m.figure));
    }
    begin_part("done");
  }

  // `rows` of a product with weights; `round` returns the seconds to count. The first call warms up and is not counted.
  template <class F>
  void measure(model::WeightType type, std::int64_t rows, BenchmarkFigure figure, F round,
               const std::function<RoundWork()>& work) {
    if (measured_model_.is_small)
      figure.id = "small_" + figure.id, figure.title += ", small", figure.model = plan::kSmallModel;
    begin_part(figure.title);
    const double most_seconds = measured_model_.is_small ? request_.seconds / 4 : request_.seconds;
    const int least_rounds = measured_model_.is_small ? kSmallRounds : request_.least_rounds;
    round();
    const auto begin = BenchmarkClock::now();
    while (static_cast<int>(figure.seconds.size()) < least_rounds || seconds_since(begin) < most_seconds) {
      throw_if_stopped();
      figure.seconds.push_back(round());
    }
    throw_if_stopped();  // a stop within the last round has cut it short
    figure.kernel = engine::product_instructions(engine::product_kind(type, rows), engine::best_arithmetic(type));
    const RoundWork done = work();
    figure.kv_seconds = done.kv_seconds;
    measured_.push_back({std::move(figure), type, done});
  }

  void prefill(Model& model, model::WeightType type) {
    const std::string form(to_string(type));
    const int tokens = request_.prefill_tokens;
    const std::vector<int> prompt = benchmark_ids(tokens, measured_model_.config.vocab, 1);
    engine::Sampler sampler(model.network);
    double flops = 0;
    measure(
        type, tokens,
        {.id = "prefill_" + form,
         .title = "Prefill " + std::to_string(tokens) + ", " + form,
         .tokens = 1.0 * tokens,
         .weights = type,
         .len = tokens},
        [&] {
          model.take_flops();
          const auto start = BenchmarkClock::now();
          sampler.generate(prompt, {.max_new_tokens = 1}, stop_);
          const double seconds = seconds_since(start);
          flops = model.take_flops();
          return seconds;
        },
        [&] {
          return RoundWork{flops, model.weight_bytes()};
        });
  }

  // Counts from the first token of the last row.
  void decode(Model& model, int rows, model::WeightType type) {
    if (measured_model_.is_small) return serve(model, rows, type);
    constexpr int kPrompt = 16;
    const std::vector<std::vector<int>> prompts = prompts_of(rows, kPrompt);
    engine::Sampler sampler(model.network);
    double flops = 0;
    measure(
        type, rows, decode_figure(rows, type, kPrompt, request_.decode_tokens),
        [&] {
          BenchmarkClock::time_point start = BenchmarkClock::now();
          int seen = 0;
          sampler.generate_batch(prompts, {.max_new_tokens = request_.decode_tokens + 1}, stop_, [&](int, int) {
            if (++seen == rows) {
              model.take_flops();
              start = BenchmarkClock::now();
            }
            return true;
          });
          const double seconds = seconds_since(start);
          flops = model.take_flops();
          return seconds;
        },
        [&] {
          return RoundWork{flops, model.weight_bytes() * request_.decode_tokens};
        });
  }

  // Measures decoding with long contexts in the steps of a server, whose sequences share the blocks of one cache.
  void serve(Model& model, int rows, model::WeightType type) {
    constexpr int kPrompt = 256;
    const int steps = 4 * request_.decode_tokens, longest = kPrompt + steps + rows + 1;
    const std::vector<std::vector<int>> prompts = prompts_of(rows, kPrompt);
    const serve::SchedulerSettings settings = serve::lay_out_engine_kv(measured_model_.config,
                                                                       {.max_num_seqs = rows,
                                                                        .max_num_batched_tokens = 2 * kPrompt,
                                                                        .max_model_len = longest,
                                                                        .prefix_cache = serve::PrefixCache::off,
                                                                        .kv = {}},
                                                                       Bytes(0));
    serve::EngineExecutor executor(model.network, settings);
    double flops = 0;
    std::vector<double> attention;  // seconds of a step in each round
    measure(
        type, rows, decode_figure(rows, type, kPrompt, steps),
        [&] {
          serve::Scheduler scheduler(settings);
          for (int r = 0; r < rows; ++r) {
            executor.begin(serve::RequestId{r}, {.prompt_ids = prompts[static_cast<size_t>(r)]});
            scheduler.add({.id = serve::RequestId{r}, .prompt_len = kPrompt, .max_new_tokens = longest - kPrompt});
          }
          BenchmarkClock::time_point start = BenchmarkClock::now();
          for (int decoded = 0; decoded < steps;) {
            const serve::Step step = scheduler.next();
            const bool decodes = step.tokens() == rows;
            if (decodes && decoded == 0) model.take_flops(), start = BenchmarkClock::now();
            executor.run(step, scheduler);
            scheduler.advance(step);
            scheduler.finish({});
            decoded += decodes;
          }
          const double seconds = seconds_since(start);
          flops = model.take_flops();
          attention.push_back(model.attention_seconds / steps);
          for (int r = 0; r < rows; ++r) executor.end(serve::RequestId{r});
          return seconds;
        },
        [&] {
          return RoundWork{flops, model.weight_bytes() * steps, formats::percentile_of(attention, kRatesPercentile)};
        });
  }

  std::vector<std::vector<int>> prompts_of(int rows, int tokens) const {
    std::vector<std::vector<int>> prompts;
    for (int row = 0; row < rows; ++row)
      prompts.push_back(benchmark_ids(tokens, measured_model_.config.vocab, static_cast<std::uint64_t>(row) + 1));
    return prompts;
  }
  static BenchmarkFigure decode_figure(int rows, model::WeightType type, int prompt, int steps) {
    const std::string form(to_string(type)), count = std::to_string(rows);
    return {.id = "decode_" + count + "_" + form,
            .title = "Decode " + counted(rows, "row") + ", " + form,
            .tokens = 1.0 * rows * steps,
            .weights = type,
            .rows = rows,
            .len = prompt + steps / 2};
  }

  void train_lora(model::WeightType type) {
    const std::string form(to_string(type));
    Model model(*this, type, engine::NetworkUse::training);
    model.network.add_lora({.rank = plan::kBenchmarkRank,
                            .alpha = kBenchmarkAlpha,
                            .targets = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}},
                           1);
    model.network.set_trainable(model::TrainMethod::lora);
    engine::AdamW adam(model.device, model.network.parameters(), {});
    const int rows = request_.train_rows, len = request_.train_len, tokens = rows * len;
    const std::vector<int> ids = benchmark_ids(tokens, measured_model_.config.vocab, 1);
    const std::vector<int> targets = benchmark_ids(tokens, measured_model_.config.vocab, 2);
    const std::vector<int> segments(ids.size(), 0);
    std::vector<int> positions(ids.size());
    for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int>(i) % len;
    std::int64_t t = 0;
    double flops = 0;
    measure(
        type, tokens,
        {.id = "lora_step_" + form,
         .title = "LoRA step " + std::to_string(rows) + " x " + std::to_string(len) + ", " + form,
         .tokens = 1.0 * tokens,
         .weights = type,
         .rows = rows,
         .len = len},
        [&] {
          model.take_flops();
          const auto start = BenchmarkClock::now();
          model.network.zero_gradients();
          model.network.forward_backward({rows, len, ids, targets, positions, segments},
                                         {.gradient_scale = 1.0f / static_cast<float>(tokens)});
          adam.step(++t, 1e-4f, 1.0f, adam.gradient_norm());
          model.network.parameters_changed();
          const double seconds = seconds_since(start);
          flops = model.take_flops();
          return seconds;
        },
        [&] { return RoundWork{flops}; });
    besides_weights_ = static_cast<double>(model.device.arena.use().at_peak.total().value) - model.weight_bytes();
  }

  struct Measured {
    BenchmarkFigure figure;
    model::WeightType type;
    RoundWork work;
  };

  const MachineBenchmarkRequest& request_;
  const std::function<void(const BenchmarkProgress&)>& progress_;
  const std::stop_token& stop_;
  MeasuredModel measured_model_{.config = request_.config};
  const BenchmarkClock::time_point start_ = BenchmarkClock::now();
  int done_ = 0;
  double besides_weights_ = 0;  // bytes of the last LoRA step, which do not depend on the type
  std::vector<Measured> measured_;
  MachineBenchmark out_;
};

std::string percent_or_dash(const std::optional<double>& share) {
  if (!share) return "-";
  char text[16];
  std::snprintf(text, sizeof text, "%.0f %%", 100 * *share);
  return text;
}

}  // namespace

double BenchmarkFigure::rates_seconds() const {
  return formats::percentile_of(seconds, kRatesPercentile);
}

double BenchmarkFigure::tokens_per_second() const {
  return tokens / median_round(seconds);
}

double BenchmarkFigure::spread() const {
  const auto [fastest, slowest] = std::minmax_element(seconds.begin(), seconds.end());
  return (*slowest - *fastest) / median_round(seconds);
}

BenchmarkLimit BenchmarkFigure::limit() const {
  const double memory = memory_share.value_or(0), arithmetic = arithmetic_share.value_or(0);
  if (std::max(arithmetic, memory) < 0.5) return BenchmarkLimit::neither;
  return arithmetic >= memory ? BenchmarkLimit::arithmetic : BenchmarkLimit::memory;
}

const BenchmarkFigure* MachineBenchmark::saved_step() const {
  const auto found = std::ranges::find(figures, kLoraStepFigure, &BenchmarkFigure::id);
  return found == figures.end() ? nullptr : &*found;
}

double MachineBenchmark::spread() const {
  const bool is_busy = peak.threads_worth > 0 && peak.threads_worth < 0.8 * threads;
  double largest = is_busy ? threads / peak.threads_worth - 1 : 0;
  for (const BenchmarkFigure& f : figures) {
    if (!f.model.empty()) continue;  // rounds of the small model are short
    std::vector<std::pair<double, double>> rounds;
    for (const double seconds : f.seconds) rounds.emplace_back(seconds, 1);
    largest = std::max(largest, plan::spread_of(std::move(rounds), f.rates_seconds()));
  }
  return largest;
}

MachineBenchmark measure_machine(const MachineBenchmarkRequest& request,
                                 const std::function<void(const BenchmarkProgress&)>& progress,
                                 const std::stop_token& stop) {
  const Bytes needed(2 * model::TensorInventory(request.config).parameters()), present = memory_of(request);
  if (needed > present)
    throw Error("BENCH-MEMORY", "the weights do not fit into this machine's memory",
                {.place = request.config.id,
                 .found = std::to_string(needed.value) + " bytes of bf16 weights",
                 .expected = "at most " + std::to_string(present.value) + " bytes",
                 .fix = "choose a smaller model, such as gemma3-270m"});
  return MachineBenchmarker(request, progress, stop).run();
}

Json to_json(const MachineBenchmark& benchmark) {
  Json figures = Json::array();
  for (const BenchmarkFigure& f : benchmark.figures) {
    const auto [fastest, slowest] = std::minmax_element(f.seconds.begin(), f.seconds.end());
    figures.push_back({{"id", f.id},
                       {"title", f.title},
                       {"tokens", f.tokens},
                       {"rounds", f.seconds.size()},
                       {"seconds", median_round(f.seconds)},
                       {"seconds_fastest", *fastest},
                       {"seconds_slowest", *slowest},
                       {"tokens_per_second", f.tokens_per_second()},
                       {"spread", f.spread()},
                       {"arithmetic_share", f.arithmetic_share ? Json(*f.arithmetic_share) : Json()},
                       {"memory_share", f.memory_share ? Json(*f.memory_share) : Json()},
                       {"limit", to_string(f.limit())},
                       {"kv_seconds", f.kv_seconds > 0 ? Json(f.kv_seconds) : Json()},
                       {"kernel", f.kernel}});
  }
  Json skipped = Json::array();
  for (const SkippedWork& l : benchmark.skipped) skipped.push_back({{"work", l.work}, {"reason", l.reason}});
  const engine::MachinePeak& peak = benchmark.peak;
  const auto rate = [](double value) { return value > 0 ? Json(value) : Json(); };
  return {{"model", benchmark.model},
          {"processor", benchmark.processor},
          {"cpu", benchmark.instruction_set},
          {"threads", benchmark.threads},
          {"kernels", benchmark.kernels},
          {"peak",
           {{"f32_flops", rate(peak.f32_flops)},
            {"bf16_flops", rate(peak.bf16_flops)},
            {"cache_bytes_per_second", peak.cache_bytes},
            {"memory_bytes_per_second", peak.dram_bytes},
            {"threads_worth", rate(peak.threads_worth)}}},
          {"noisy", benchmark.is_noisy()},
          {"spread", benchmark.spread()},
          {"figures", figures},
          {"skipped", skipped}};
}

std::string to_text(const MachineBenchmark& benchmark) {
  char line[256];
  const engine::MachinePeak& peak = benchmark.peak;
  std::string out = benchmark.model + " on " + benchmark.processor + ", up to " + benchmark.instruction_set + ", " +
                    std::to_string(benchmark.threads) + " threads\n";
  const auto flops = [](double value) {
    return value > 0 ? std::to_string(std::lround(value / 1e9)) : std::string("-");
  };
  std::snprintf(
      line, sizeof line, "peak: f32 %s GFLOP/s, bf16 %s GFLOP/s, reads %.1f GB/s from cache, %.1f GB/s from memory\n",
      flops(peak.f32_flops).c_str(), flops(peak.bf16_flops).c_str(), peak.cache_bytes / 1e9, peak.dram_bytes / 1e9);
  out += line;
  out += "kernels\n";
  for (const std::string& kernel : benchmark.kernels) out += "  " + kernel + "\n";
  std::snprintf(line, sizeof line, "\n%-31s %10s %7s %7s %11s %7s  %-10s  %s\n", "work", "tokens/s", "rounds", "spread",
                "arithmetic", "memory", "limit", "kernel");
  out += line;
  for (const BenchmarkFigure& f : benchmark.figures) {
    std::snprintf(line, sizeof line, "%-31s %10.1f %7zu %7s %11s %7s  %-10s  %s\n", f.title.c_str(),
                  f.tokens_per_second(), f.seconds.size(), percent_or_dash(f.spread()).c_str(),
                  percent_or_dash(f.arithmetic_share).c_str(), percent_or_dash(f.memory_share).c_str(),
                  std::string(to_string(f.limit())).c_str(), f.kernel.c_str());
    out += line;
  }
  for (const SkippedWork& l : benchmark.skipped) out += "\nNot measured: " + l.work + ": " + l.reason + "\n";
  if (benchmark.is_noisy()) out += "\n" + std::string(kNoisyBenchmark) + "\n";
  return out;
}

}  // namespace mw::jobs
