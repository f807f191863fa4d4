// SPDX-License-Identifier: Apache-2.0
// Published (or the user's) measurements, each with the configuration it was made with, so that it can be predicted:
// resources/hardware/measurements.json. Plain values; any thread.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/hardware/catalogue.h"
#include "core/plan/time/predict.h"
#include "core/plan/time/serve_step.h"

namespace mw::plan {

enum class MeasurementUse { calibration, holdout };  // fitted to, or only ever predicted

// What the value of a row counts.
enum class MeasuredQuantity {
  step_seconds,             // "s/step": per optimizer step
  tokens_per_second,        // "tokens/s/device": computed tokens, padding included
  real_tokens_per_second,   // "real tokens/s": padding not counted, of all devices together
  samples_per_second,       // "samples/s": rows, of all devices together
  mfu,                      // "MFU %": MaxText's formula, maxtext_flops()
  active_bytes,             // "GiB active": live buffers of PyTorch's allocator
  reserved_bytes,           // "GiB reserved": the same with the allocator's holes
  device_bytes,             // "GB device": everything on the device
  state_bytes,              // "GiB states": weights, adapters, gradients, optimizer
  activation_bytes,         // "GiB activations": of layers, for their backward
  weight_bytes,             // "bytes weights"
  kv_tokens,                // "KV tokens": that a server has room for
  mean_ttft,                // "ms mean TTFT", of a server under a load
  median_ttft,              // "ms median TTFT"
  mean_tpot,                // "ms mean TPOT"
  median_tpot,              // "ms median TPOT"
  median_itl,               // "ms median ITL": a step without prompts, where most are
  output_tokens_per_second  // "output tokens/s", of all devices together
};
bool is_time(MeasuredQuantity what);     // of a step
bool is_serving(MeasuredQuantity what);  // of a server under a load
bool is_speed(MeasuredQuantity what);    // either, without times to the first token: what factors may be fitted to
bool is_memory(MeasuredQuantity what);

// Load that a server was measured under, beside the lengths in Request::serve: closed loop, or open.
struct OfferedLoad {
  int concurrency = 0;      // users; 0: open loop
  double request_rate = 0;  // requests/s, Poisson; infinity: all at once
  int requests = 0;         // 0: ten for each user
  int warmups = 0;          // before those that count
  double spread = 0;        // of uniform lengths: 0.5 is half up and down
};

struct Measurement {
  std::string id;
  MeasurementUse purpose = MeasurementUse::holdout;
  MeasuredQuantity what = MeasuredQuantity::step_seconds;
  std::string unit;
  double value = 0;  // in that unit
  Request request;   // with the defaults of its stack and target
  OfferedLoad load;  // of serving
  std::string source;
  std::vector<std::string> assumed;  // what the source leaves out and this row takes
  std::string alternative_of;        // the row that is counted in means, where this one differs in an assumption only
  bool counted() const { return alternative_of.empty(); }
};

struct Measurements {
  std::vector<Measurement> rows;
  struct LeftOut {
    std::string row, why;
  };
  std::vector<LeftOut> left_out;
  std::vector<Problem> problems;  // of rows that are not usable and were left out
};

enum class BadRows { thrown, collected };

// Throws Error MEASUREMENT naming file, row and key for a row that is not usable, or collects one problem for each; a
// file that holds no rows at all is thrown either way.
Measurements read_measurements(const std::filesystem::path& file, const hardware::Catalogue& catalogue,
                               BadRows bad = BadRows::thrown);

// Rows that are the same measurement as one of `published` that is held out (whatever their id and use) are held out,
// too; their ids.
std::vector<std::string> keep_held_out(std::vector<Measurement>& rows, const std::vector<Measurement>& published);

// Predicted against measured, in the row's unit. error: of time or bytes, so that +0.1 is 10 % too slow or too large.
struct Comparison {
  double predicted = 0, measured = 0, error = 0;
};
Comparison compare(const Measurement& row, const Plan& plan);
Comparison compare(const Measurement& row, double predicted);  // in its unit
// The row's request, or the same with other efficiencies, planned; a server's load in the mean (closed_loop.h).
Comparison predicted(const Measurement& row, const Request& request);
Comparison predicted(const Measurement& row, const ServeStepModel& model);  // of serving

struct ErrorSummary {
  int rows = 0;
  double mean = 0, worst = 0;  // of absolute errors
  std::string worst_row;
};
// Over counted rows of this purpose whose kind satisfies `of`; `predictions` in the order of `rows`.
ErrorSummary summarise(const std::vector<Measurement>& rows, const std::vector<Comparison>& predictions,
                       MeasurementUse purpose, bool (*of)(MeasuredQuantity));

}  // namespace mw::plan
