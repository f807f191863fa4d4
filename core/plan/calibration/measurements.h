// SPDX-License-Identifier: Apache-2.0
// Published or user-supplied measurements, each with the configuration that is needed to predict it. File format:
// resources/hardware/measurements.json. Plain values; any thread.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/hardware/catalogue.h"
#include "core/plan/prediction/predict.h"
#include "core/plan/prediction/serve_step.h"

namespace mw::plan {

enum class MeasurementUse { calibration, holdout };  // fitted, or only predicted

// The quantity that a row measures, with its unit in files.
enum class MeasuredQuantity {
  step_seconds,             // "s/step": per optimizer step
  tokens_per_second,        // "tokens/s/device": computed tokens, padding included
  real_tokens_per_second,   // "tokens/s without padding": of all devices together
  samples_per_second,       // "samples/s": rows, of all devices together
  run_hours,                // "h/run": of the whole run, with the compilation before its first step
  mfu,                      // "MFU %": with MaxText's formula
  active_bytes,             // "GiB active": live buffers of PyTorch's allocator
  reserved_bytes,           // "GiB reserved": with the allocator's fragmentation
  device_bytes,             // "GB device": all memory in use on the device
  state_bytes,              // "GiB states": weights, adapters, gradients, optimizer
  activation_bytes,         // "GiB activations": of layers, for their backward
  weight_bytes,             // "bytes weights"
  kv_tokens,                // "KV tokens": capacity of a server's KV cache
  mean_ttft,                // "ms mean TTFT", of a server under a load
  median_ttft,              // "ms median TTFT"
  mean_tpot,                // "ms mean TPOT"
  median_tpot,              // "ms median TPOT"
  median_itl,               // "ms median ITL"
  output_tokens_per_second  // "output tokens/s", of all devices together
};
bool is_time(MeasuredQuantity what);     // of a step
bool is_serving(MeasuredQuantity what);  // of a server under a load
bool is_speed(MeasuredQuantity what);  // either, except times to first token: quantities that factors can be fitted to
bool is_memory(MeasuredQuantity what);
bool more_is_faster(MeasuredQuantity what);  // rates: the larger value is the shorter time

// The subject of a figure; accuracy and intervals are kept by kind.
enum class FigureKind { training, memory, throughput, tpot, ttft };  // throughput: output tokens/s of a server
FigureKind kind_of(MeasuredQuantity what);

// A load of the same client before the measured one, with the same arrivals.
struct EarlierLoad {
  int input_len = 0, output_len = 0, requests = 0;
  auto operator<=>(const EarlierLoad&) const = default;
};

// The load of a measured server, closed-loop or open-loop. Its lengths are in Request::serve.
struct OfferedLoad {
  int concurrency = 0;      // users; 0: open loop
  double request_rate = 0;  // requests/s, Poisson; infinity: all at once
  int requests = 0;         // 0: ten for each user
  int warmups = 0;          // requests before those that count
  double spread = 0;        // of uniformly distributed lengths: 0.5 is +-50 %
  // Since the server started, with its prefix cache. The n-th prompts of all loads begin with the same tokens, as those
  // that `vllm bench serve` draws at random (vllm/benchmarks/datasets.py, RandomDataset). Empty: no prefix cache.
  std::vector<EarlierLoad> earlier{};
};

struct Measurement {
  std::string id;
  MeasurementUse purpose = MeasurementUse::holdout;
  MeasuredQuantity what = MeasuredQuantity::step_seconds;
  std::string unit;
  double value = 0;  // in `unit`
  Request request;   // with the defaults of its stack and target
  OfferedLoad load;  // of serving
  std::string source;
  std::vector<std::string> assumed;  // assumptions where the source gives no value
  std::string alternative_of;  // id of the row counted in means, if this row differs from it only in an assumption
  bool counted() const { return alternative_of.empty(); }
};

struct Measurements {
  std::vector<Measurement> rows;
  struct LeftOut {
    std::string row, why;
  };
  std::vector<LeftOut> left_out;
  std::vector<Problem> problems;  // rows that cannot be used
};

enum class BadRows { thrown, collected };

// Throws Error MEASUREMENT with file, row and key for an invalid row, or collects one problem per invalid row. Always
// throws for a file without rows.
Measurements read_measurements(const std::filesystem::path& file, const hardware::Catalogue& catalogue,
                               BadRows bad = BadRows::thrown);

// Marks rows as held out that repeat a held-out measurement of `published` under any id, and returns their ids.
std::vector<std::string> keep_held_out(std::vector<Measurement>& rows, const std::vector<Measurement>& published);

// Predicted and measured value in the row's unit. error: relative error of time or bytes; +0.1: predicted 10 % too slow
// or too large.
struct RowPrediction {
  double predicted = 0, measured = 0, error = 0;
};
RowPrediction compare(const Measurement& row, const Plan& plan);
RowPrediction compare(const Measurement& row, double predicted);  // in its unit
// Predicts a row with `request`, which may have other efficiencies than the row's; servers by steady_state().
RowPrediction predicted(const Measurement& row, const Request& request);
RowPrediction predicted(const Measurement& row, const ServeStepModel& model);  // of serving

struct ErrorSummary {
  int rows = 0;
  double mean = 0, worst = 0;  // of absolute errors
  std::string worst_row;
};
// Summarises counted rows with this use whose quantity satisfies `of`; `predictions` are in the order of `rows`.
ErrorSummary summarise(const std::vector<Measurement>& rows, const std::vector<RowPrediction>& predictions,
                       MeasurementUse purpose, bool (*of)(MeasuredQuantity));

}  // namespace mw::plan

template <>
inline constexpr mw::EnumNames<5> mw::kEnumNames<mw::plan::FigureKind>{"training", "memory", "throughput", "tpot",
                                                                       "ttft"};
