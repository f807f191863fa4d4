// SPDX-License-Identifier: Apache-2.0
#include "core/audit/accuracy.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "core/audit/calibrating.h"
#include "core/base/files.h"
#include "core/formats/results/bench_import.h"
#include "core/plan/document/plan_request.h"
#include "core/plan/document/simulated_rows.h"
#include "core/plan/document/simulated_server.h"
#include "core/serve/load/saturation.h"
#include "core/serve/load/sweep.h"

namespace mw::audit {
namespace {

namespace fs = std::filesystem;
using formats::BenchPoint;
using plan::FigureKind;
using plan::MeasuredQuantity;
using plan::MeasurementUse;

constexpr double kOff = 0.3;  // a prediction that is wrong by more is called off

ServedLoad load_of(const BenchPoint& point, bool at_once) {
  return !at_once && point.verdict == to_string(serve::Saturation::stable) ? ServedLoad::stable : ServedLoad::overload;
}

// The rows of a case measure other figures of one run: "2xh100-qwen3-32b-1024-c8" of "..., ms mean TPOT".
std::string case_of(const std::string& id) {
  return id.substr(0, id.rfind(", "));
}

struct Limits {
  plan::LimitFactors factors{};
  bool own = false;  // from rows of the same stack and chip, instead of the limits that the efficiencies give
};

void apply_limits(double& low, double& high, double predicted, const Limits& l) {
  const plan::LimitFactors& limits = l.factors;
  if (!limits.is_calibrated()) return;
  if (l.own) low = high = predicted;
  low = std::min(low, predicted / limits.below);
  high = std::max(high, predicted * limits.above);
}

// Output rates and times per token have the same intervals.
FigureKind intervals_of(FigureKind kind) {
  return kind == FigureKind::throughput ? FigureKind::tpot : kind;
}

// Memory has no factors.
bool is_never_fitted(const AccuracyRow& row) {
  return row.use == MeasurementUse::holdout || row.kind == FigureKind::memory;
}

class Predictor {
 public:
  Predictor(const AccuracyInput& input, const plan::PlanContext& context, const std::stop_token& stop)
      : input_(input), context_(context), stop_(stop), calibration_(plan::calibration_of(context)) {}

  AccuracyReport run() {
    const plan::Measurements measured =
        plan::read_measurements(input_.resources / "hardware" / "measurements.json", context_.catalogue);
    for (const plan::Measurement& m : measured.rows)
      if (is_needed(plan::kind_of(m.what))) add(m);
    const Json sets = read_json(input_.resources / "results" / "paper-2605.25645.json").at("sets");
    for (const Json& set : sets)  // the other sets are rows of measurements.json
      if (const formats::BenchSet cells = formats::bench_set(set); cells.source.ends_with("serving table"))
        add_cells(cells);
    const std::vector<plan::RowError> errors = errors_for_intervals(out_.rows);
    std::erase_if(out_.rows, [&](const AccuracyRow& row) { return !passes(row); });
    if (out_.rows.empty())
      throw Error("ACCURACY", "no published measurement passes the filter",
                  {.place = "--stack, --chip, --kind",
                   .found = input_.filter.stack + " " + input_.filter.chip,
                   .expected = "a stack and a chip of `meshwright accuracy` without a filter"});
    set_intervals(errors);
    out_.date = input_.date;
    out_.calibration = calibration_.factors.empty() ? "none" : to_text(calibration_.basis);
    out_.left_out = measured.left_out;
    summarise_rows();
    return std::move(out_);
  }

 private:
  bool passes(const AccuracyRow& row) const {
    const AccuracyFilter& f = input_.filter;
    return (f.stack.empty() || f.stack == row.stack) && (f.chip.empty() || f.chip == row.chip) &&
           (!f.kind || *f.kind == row.kind);
  }
  // Whether rows of the kind pass, or give the intervals of rows that do.
  bool is_needed(FigureKind kind) const {
    return !input_.filter.kind || intervals_of(kind) == intervals_of(*input_.filter.kind);
  }
  void check_stop() const {
    if (stop_.stop_requested()) throw cancelled("the predictions");
  }

  void set_prediction(AccuracyRow& row, const plan::Measurement& m, const plan::RowPrediction& compared, double low,
                      double high) const {
    if (!(compared.predicted > 0) || !std::isfinite(compared.predicted))
      throw Error("ACCURACY", "the prediction is not a positive number", {.place = m.id});
    row.predicted = compared.predicted;
    row.error = compared.error;
    row.low = compared.predicted * low;
    row.high = compared.predicted * high;
  }

  // Bounds relative to the predicted value, from an estimate of time or bytes.
  void predict_step(AccuracyRow& row, const plan::Measurement& m, const plan::Request& request) const {
    const plan::Plan plan = plan::predict(request);
    const plan::Estimate& e = row.kind == FigureKind::training ? plan.step.seconds : plan.memory.total;
    row.bounded = m.what != MeasuredQuantity::kv_tokens;
    const bool known = e.value > 0 && e.low > 0 && row.bounded;
    const double low = known ? e.low / e.value : 1, high = known ? e.high / e.value : 1;
    const bool inverse = plan::more_is_faster(m.what);
    set_prediction(row, m, plan::compare(m, plan), inverse ? 1 / high : low, inverse ? 1 / low : high);
  }

  void predict_server(AccuracyRow& row, const plan::Measurement& m, const plan::Request& request) {
    plan::Measurement calibrated = m;
    calibrated.request = request;
    const BenchPoint& point = simulator_.point(calibrated);
    row.load = load_of(point, m.load.concurrency == 0 && std::isinf(m.load.request_rate));
    set_prediction(row, m, plan::compare(m, plan::figure_of(point, m.what)), 1, 1);
  }

  void add(const plan::Measurement& m) {
    check_stop();
    AccuracyRow row{.id = m.id,
                    .use = m.purpose,
                    .kind = plan::kind_of(m.what),
                    .stack = std::string(model::to_string(m.request.stack)),
                    .chip = m.request.target.chip.id,
                    .target = m.request.target.id,
                    .model = m.request.model.id,
                    .unit = m.unit,
                    .vendor = m.request.target.chip.vendor,
                    .measured = m.value,
                    .counted = m.counted(),
                    .is_rate = plan::more_is_faster(m.what),
                    .source = m.source,
                    .size = plan::work_size(m.request, m.load.concurrency)};
    try {
      plan::Request request = m.request;
      plan::apply(calibration_, request);
      if (plan::is_serving(m.what))
        predict_server(row, m, request);
      else
        predict_step(row, m, request);
    } catch (const Error& e) {
      row.refused = to_text(e.problem());
    }
    out_.rows.push_back(std::move(row));
  }

  // The best of the rates that the example sweeps, where the cell states none.
  BenchPoint simulated_cell(const experiment::Experiment& e, const std::vector<double>& rates,
                            const BenchPoint& cell) const {
    BenchPoint best;
    best.output_throughput = 0;
    for (const double rate : rates) {
      if (!std::isnan(cell.request_rate) && rate != cell.request_rate) continue;
      if (std::isnan(cell.request_rate) && !std::isinf(rate)) continue;
      const BenchPoint p =
          plan::simulated_point(e, {rate, cell.input_len}, context_, plan::Queueing::as_offered, stop_);
      if (p.output_throughput > best.output_throughput) best = p;
    }
    if (best.output_throughput == 0)
      throw Error("ACCURACY", "the example does not sweep the request rate of the published cell",
                  {.place = "sweep.request_rates", .found = number_text(cell.request_rate)});
    return best;
  }

  // The cells of a published serving table, on the server and load of the example that reproduces it.
  void add_cells(const formats::BenchSet& cells) {
    const fs::path file = input_.resources / "examples" / ("paper-serve-" + cells.target + ".json");
    const experiment::Experiment shipped = experiment::Experiment::load(file);
    const std::vector<double> rates = serve::sweep_settings(shipped.config()).request_rates;
    plan::WorkSize size = plan::work_size(plan::plan_request(shipped, context_));
    for (const BenchPoint& cell : cells.points) {
      check_stop();
      std::optional<BenchPoint> simulated;
      std::string refused;
      size.tokens = cell.input_len, size.answer = cell.output_len;
      const auto at = [&](const char* unit, FigureKind kind, double measured, double BenchPoint::*rate,
                          formats::LatencyStats BenchPoint::*latency) {
        if (std::isnan(measured) || !is_needed(kind)) return;
        AccuracyRow row{.id = "arXiv 2605.25645 " + cells.target + ", " + std::to_string(cell.input_len) + "/" +
                              std::to_string(cell.output_len) +
                              (std::isnan(cell.request_rate) ? "" : " at " + number_text(cell.request_rate) + "/s") +
                              ", " + unit,
                        .kind = kind,
                        .stack = cells.condition("stack"),
                        .chip = context_.catalogue.target(cells.target).chip.id,
                        .target = cells.target,
                        .model = cells.model,
                        .unit = unit,
                        .vendor = context_.catalogue.target(cells.target).chip.vendor,
                        .measured = measured,
                        .is_rate = rate != nullptr,
                        .source = cells.source,
                        .size = size};
        if (!simulated && refused.empty()) try {
            experiment::Experiment e = shipped;
            e.set_value("sweep.output_len", cell.output_len);
            simulated = simulated_cell(e, rates, cell);
          } catch (const Error& e) {
            refused = to_text(e.problem());
          }
        row.refused = refused;
        if (simulated) {
          row.load = load_of(*simulated, std::isinf(simulated->request_rate));
          row.predicted = row.low = row.high = rate ? (*simulated).*rate : ((*simulated).*latency).median;
          row.error = rate ? row.measured / row.predicted - 1 : row.predicted / row.measured - 1;
        }
        out_.rows.push_back(std::move(row));
      };
      at("output tokens/s", FigureKind::throughput, cell.output_throughput, &BenchPoint::output_throughput, nullptr);
      at("ms median TPOT", FigureKind::tpot, cell.tpot.median, nullptr, &BenchPoint::tpot);
      at("ms median TTFT", FigureKind::ttft, cell.ttft.median, nullptr, &BenchPoint::ttft);
    }
  }

  void set_intervals(const std::vector<plan::RowError>& all) {
    Calibrations without_run, without_publication;
    for (AccuracyRow& row : out_.rows) {
      if (!row.refused.empty() || !row.bounded) continue;
      const std::string run = case_of(row.id);
      const std::string publication = is_never_fitted(row) ? plan::publication_of(row.source) : "";
      const Limits wide = limits_of(row, without_publication, publication, all, [&](const plan::RowError& e) {
        return !publication.empty() && plan::publication_of(e.source) == publication;
      });
      const Limits limits =
          limits_of(row, without_run, run, all, [&](const plan::RowError& e) { return e.run == run; });
      row.low_apart = row.low, row.high_apart = row.high;
      apply_limits(row.low_apart, row.high_apart, row.predicted, wide);
      apply_limits(row.low, row.high, row.predicted, limits);
    }
  }

  using Calibrations = std::map<std::pair<std::string, FigureKind>, plan::Calibration>;
  // `known` keeps the calibrations by what is left out of their intervals and by kind.
  template <class IsLeftOut>
  Limits limits_of(const AccuracyRow& row, Calibrations& known, const std::string& left_out,
                   const std::vector<plan::RowError>& all, IsLeftOut is_left_out) const {
    const FigureKind kind = intervals_of(row.kind);
    const auto [found, added] = known.try_emplace({left_out, kind}, calibration_);
    if (added) {
      check_stop();
      std::vector<plan::RowError> others;
      for (const plan::RowError& e : all)
        if (intervals_of(e.kind) == kind && !is_left_out(e)) others.push_back(e);
      plan::calibrate_intervals(found->second, others);
    }
    const plan::IntervalFactors factors =
        plan::interval_factors(found->second, plan::parse_stack(row.stack), row.chip, row.size);
    // Those of training are limits of its step time.
    const bool inverse = row.is_rate && row.kind == FigureKind::training;
    return {inverse ? factors.of(row.kind).inverse() : factors.of(row.kind), factors.is_own(row.kind)};
  }

  void summarise_rows() {
    std::set<std::tuple<std::string, std::string>> parts;
    for (const AccuracyRow& r : out_.rows) parts.insert({r.stack, r.chip});
    for (const FigureKind kind : all_values<FigureKind>())
      for (const MeasurementUse use : {MeasurementUse::calibration, MeasurementUse::holdout}) {
        add_group(out_.totals, {.kind = kind, .use = use});
        if (kind == FigureKind::training)
          for (const hardware::Vendor vendor : {hardware::Vendor::tpu, hardware::Vendor::gpu})
            add_group(out_.totals, {.kind = kind, .use = use, .vendor = vendor});
        if (kind == FigureKind::ttft) add_group(out_.totals, {.kind = kind, .use = use, .stable_only = true});
        for (const auto& [stack, chip] : parts)
          add_group(out_.groups, {.kind = kind, .use = use, .stack = stack, .chip = chip});
      }
    std::set<std::string> chips;
    for (const AccuracyRow& r : out_.rows)
      if (r.use == MeasurementUse::calibration) chips.insert(r.chip);
    out_.intervals.all = intervals_where([](const AccuracyRow&) { return true; });
    out_.intervals.calibrated_chips = intervals_where([&](const AccuracyRow& r) { return chips.contains(r.chip); });
  }

  template <class Condition>
  IntervalSummary::Part intervals_where(const Condition& is_included) const {
    IntervalSummary::Part part;
    std::vector<double> widths;
    for (const AccuracyRow& r : out_.rows) {
      if (r.use != MeasurementUse::holdout || !r.counted || !r.refused.empty() || !r.has_interval()) continue;
      if (!is_included(r)) continue;
      widths.push_back((r.high - r.low) / r.predicted);
      part.inside += r.is_inside() ? 1 : 0;
    }
    part.rows = static_cast<int>(widths.size());
    if (!widths.empty()) part.median_width = formats::percentile_of(std::move(widths), 50);
    return part;
  }

  void add_group(std::vector<AccuracyGroup>& groups, AccuracyGroup g) const {
    std::vector<double> errors, widths, widths_apart;
    for (const AccuracyRow& r : out_.rows) {
      if (r.kind != g.kind || r.use != g.use || !r.counted) continue;
      if (!g.stack.empty() && (r.stack != g.stack || r.chip != g.chip)) continue;
      if (g.vendor && r.vendor != *g.vendor) continue;
      if (g.stable_only && r.load != ServedLoad::stable) continue;
      const double error = std::abs(r.error);
      errors.push_back(error);
      g.mean += error;
      g.refused += r.refused.empty() ? 0 : 1;
      g.off += error > kOff ? 1 : 0;
      if (error >= g.worst) g.worst = error, g.worst_row = r.id;
      if (!r.refused.empty() || !r.has_interval()) continue;
      widths.push_back((r.high - r.low) / r.predicted);
      g.inside += r.is_inside() ? 1 : 0;
      widths_apart.push_back((r.high_apart - r.low_apart) / r.predicted);
      g.inside_apart += r.is_inside_apart() ? 1 : 0;
    }
    if (errors.empty()) return;
    g.rows = static_cast<int>(errors.size());
    g.with_interval = static_cast<int>(widths.size());
    g.mean /= g.rows;
    g.median = formats::percentile_of(std::move(errors), 50);
    if (!widths.empty()) g.median_width = formats::percentile_of(std::move(widths), 50);
    if (!widths_apart.empty()) g.median_width_apart = formats::percentile_of(std::move(widths_apart), 50);
    groups.push_back(std::move(g));
  }

  const AccuracyInput& input_;
  const plan::PlanContext& context_;
  const std::stop_token& stop_;
  plan::Calibration calibration_;
  plan::RowSimulator simulator_;
  AccuracyReport out_;
};

}  // namespace

std::vector<plan::RowError> errors_for_intervals(const std::vector<AccuracyRow>& rows) {
  std::vector<plan::RowError> out;
  for (const AccuracyRow& row : rows)
    if (row.counted && row.bounded && row.refused.empty())
      out.push_back({.kind = row.kind,
                     .stack = plan::parse_stack(row.stack),
                     .chip = row.chip,
                     .source = row.source,
                     .log_ratio = -std::log1p(row.error),
                     .size = row.size,
                     .run = case_of(row.id),
                     .use = is_never_fitted(row) ? MeasurementUse::holdout : MeasurementUse::calibration});
  return out;
}

AccuracyReport accuracy(const AccuracyInput& input, const plan::PlanContext& context, const std::stop_token& stop) {
  return Predictor(input, context, stop).run();
}

}  // namespace mw::audit
