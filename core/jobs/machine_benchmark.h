// SPDX-License-Identifier: Apache-2.0
// Measures the engine on this machine: peak rates, then prefill, decoding and LoRA steps of one model, each with its
// share of those peaks, and the same of a small one whose weights stay in the processor's caches.
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/engine/kernels/machine_peak.h"
#include "core/model/config.h"
#include "core/model/types.h"
#include "core/plan/calibration/machine_rates.h"

namespace mw::jobs {

inline constexpr int kBenchmarkAlpha = 2 * plan::kBenchmarkRank;  // of the LoRA step, with adapters on all products
inline constexpr const char* kNoisyBenchmark =
    "The rounds differ by more than 15 % or other programs use the processor: repeat on an idle machine.";

struct MachineBenchmarkRequest {
  model::Config config{};
  std::filesystem::path weights{};      // HF folder; empty: random weights
  int threads = 0;                      // 0: all of the machine
  Bytes memory{0};                      // that work may take; 0: all of the machine
  double peak_seconds = 0.8;            // of each peak rate
  double seconds = 5;                   // of each figure: rounds start until then
  int least_rounds = 3;                 // of each figure, however long they take
  int prefill_tokens = 512;             // of one prompt
  int decode_tokens = 16;               // per sequence and round
  int train_rows = 4, train_len = 512;  // of a LoRA step
};

enum class BenchmarkLimit { arithmetic, memory, neither };

struct BenchmarkFigure {
  std::string id;        // "decode_16_int8"
  std::string title;     // "Decode 16 rows, int8"
  std::string kernel{};  // instructions of its products with weights
  double tokens = 0;     // of a round
  model::WeightType weights{};
  int rows = 1, len = 0;          // rows of a round; tokens of a row, of decoding in the cache in the mean
  std::vector<double> seconds{};  // of every round
  std::string model{};            // plan::kSmallModel; empty: the benchmark's
  double kv_seconds = 0;          // of the median decode step, in attention to cached tokens; 0: not measured
  // FLOP/s of the median round / highest measured FLOP/s, of f32 work in f32; absent: no peak was measured.
  std::optional<double> arithmetic_share = std::nullopt;
  std::optional<double> memory_share = std::nullopt;  // weight bytes read per second / read bandwidth; absent: training
  double rates_seconds() const;      // of a round, for the rates of a machine: other programs only lengthen rounds
  double tokens_per_second() const;  // of the median round
  double spread() const;             // (slowest - fastest round) / median
  // The larger share's resource; neither if both shares are under one half: time goes elsewhere.
  BenchmarkLimit limit() const;
};

inline constexpr const char* kLoraStepFigure = "lora_step_bf16";  // the one that is saved

struct SkippedWork {  // work that does not fit into this machine's memory
  std::string work, reason;
};

struct MachineBenchmark {
  std::string model, processor{}, instruction_set;
  std::vector<std::string> kernels{};  // engine::describe_choice()
  int threads = 0;
  engine::MachinePeak peak{};
  std::vector<BenchmarkFigure> figures{};
  std::vector<SkippedWork> skipped{};
  double spread() const;  // plan::spread_of() the rounds of the model's figures, the largest, or what other load took
  bool is_noisy() const { return spread() > 0.15; }
  const BenchmarkFigure* saved_step() const;  // kLoraStepFigure; null if it did not fit
};

struct BenchmarkProgress {
  std::string part;  // is measured now
  int done = 0, total = 0;
  std::optional<double> seconds_left = std::nullopt;  // absent before the first part has ended
};

// Runs on the calling thread; a stop ends it after the current round. Throws cancelled(), BENCH-MEMORY for weights that
// exceed the machine's memory, and the errors of loading.
MachineBenchmark measure_machine(const MachineBenchmarkRequest& request,
                                 const std::function<void(const BenchmarkProgress&)>& progress,
                                 const std::stop_token& stop);

Json to_json(const MachineBenchmark& benchmark);
std::string to_text(const MachineBenchmark& benchmark);  // a table

}  // namespace mw::jobs

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::jobs::BenchmarkLimit>{"arithmetic", "memory", "neither"};
