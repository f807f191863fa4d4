// SPDX-License-Identifier: Apache-2.0
// Predictions of every published measurement beside the measured values: training and memory by plan::predict, servers
// by the simulator that sweeps use. Thread-safe.
#pragma once
#include <optional>
#include <stop_token>

#include "core/base/json.h"
#include "core/plan/calibration/calibration_file.h"
#include "core/plan/calibration/intervals.h"
#include "core/plan/calibration/plan_context.h"

namespace mw::audit {

struct AccuracyFilter {  // empty or unset: all
  std::string stack{}, chip{};
  std::optional<plan::FigureKind> kind{};
};

// The load that a simulated server was under; none: the row measures no server.
enum class ServedLoad { none, stable, overload };  // overload: all requests at once, or more than it can serve

struct AccuracyRow {
  std::string id;
  plan::MeasurementUse use = plan::MeasurementUse::holdout;
  plan::FigureKind kind = plan::FigureKind::training;
  std::string stack, chip, target, model, unit;
  hardware::Vendor vendor = hardware::Vendor::tpu;  // of the chip
  double measured = 0;                              // in `unit`
  double predicted = 0;                             // in `unit`; 0 if refused
  // The 90 % interval of the prediction, from rows of other runs; equal: it has none.
  double low = 0, high = 0;
  double low_apart = 0, high_apart = 0;  // the same from other publications only
  double error = 1;                      // of time or bytes, +0.1: 10 % too slow or too large; 1 if refused
  std::string refused{};                 // why there is no prediction; empty: there is one
  bool bounded = true;                   // false: a figure of a kind without intervals (tokens of KV cache)
  bool counted = true;                   // false: an alternative assumption about another row
  bool is_rate = false;                  // more is faster: tokens/s
  ServedLoad load = ServedLoad::none;
  std::string source{};
  plan::WorkSize size{};
  bool has_interval() const { return low < high; }
  bool is_inside() const { return refused.empty() && low <= measured && measured <= high; }
  bool is_inside_apart() const { return refused.empty() && low_apart <= measured && measured <= high_apart; }
};

// Counted rows with one use of one kind, stack and chip; empty stack and chip: of all.
struct AccuracyGroup {
  plan::FigureKind kind = plan::FigureKind::training;
  plan::MeasurementUse use = plan::MeasurementUse::holdout;
  std::string stack{}, chip{};
  std::optional<hardware::Vendor> vendor{};  // of the chips; training only
  bool stable_only = false;                  // rows of a server that keeps up with its load
  int rows = 0, refused = 0;
  int off = 0;                             // refused, or wrong by more than 30 %
  double mean = 0, median = 0, worst = 0;  // of absolute errors; a refused row counts as 100 %
  std::string worst_row{};
  int with_interval = 0, inside = 0;  // rows whose prediction has an interval; measured values inside it
  double median_width = 0;            // (high - low) / predicted, of the rows with an interval
  int inside_apart = 0;               // the same two of the intervals from other publications
  double median_width_apart = 0;
  double coverage() const { return with_interval > 0 ? static_cast<double>(inside) / with_interval : 0; }
};

// The 90 % intervals of counted held-out rows of all kinds together, and of those whose chip has rows for calibration.
struct IntervalSummary {
  struct Part {
    int rows = 0, inside = 0;
    double median_width = 0;  // (high - low) / predicted
  };
  Part all, calibrated_chips;
};

struct AccuracyReport {
  std::string date;                   // "2026-11-25"
  std::string calibration;            // basis of the calibration in force
  std::vector<AccuracyRow> rows;      // as in the file, then the serving table
  std::vector<AccuracyGroup> totals;  // by kind and use; training also by vendor of the chips
  std::vector<AccuracyGroup> groups;  // by kind, stack, chip and use
  IntervalSummary intervals;
  std::vector<plan::Measurements::LeftOut> left_out;  // published, but not comparable with a plan
};

struct AccuracyInput {
  std::filesystem::path resources;  // has hardware/measurements.json, results and examples
  std::string date;
  AccuracyFilter filter{};
};
// Uses the calibration in force of the catalogue. A row whose prediction throws is refused. Throws Error MEASUREMENT
// for an invalid file, ACCURACY if no row passes the filter, and cancelled() when stopped.
AccuracyReport accuracy(const AccuracyInput& input, const plan::PlanContext& context, const std::stop_token& stop = {});

// Errors of the counted rows that are predicted and have intervals. Memory has no factors: all its rows are held out.
std::vector<plan::RowError> errors_for_intervals(const std::vector<AccuracyRow>& rows);

Json to_json(const AccuracyReport& report);
std::string to_text(const AccuracyReport& report);      // totals, groups, rows
std::string to_markdown(const AccuracyReport& report);  // the tables of resources/hardware/accuracy.md
std::string interval_text(const AccuracyRow& row);      // "5.1 to 6.8"; "-" without interval
std::string error_text(const AccuracyRow& row);         // "+4.1 %", "refused"
std::string totals_text(const AccuracyReport& report);
std::string vendor_text(hardware::Vendor vendor);  // "TPU", "GPU"

}  // namespace mw::audit

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::audit::ServedLoad>{"", "stable", "overload"};
