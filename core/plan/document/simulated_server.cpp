// SPDX-License-Identifier: Apache-2.0
#include "core/plan/document/simulated_server.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/plan/document/diagnostics.h"
#include "core/plan/document/engine_request.h"
#include "core/plan/document/plan_request.h"
#include "core/serve/load/simulated_backend.h"

namespace mw::plan {

void check_stop(const std::stop_token& stop) {
  if (stop.stop_requested()) throw cancelled("the simulation");
}

namespace {

// On this machine the times of a sweep are as uncertain as the rates that its plan has.
IntervalFactors factors_of_rates(const Request& request) {
  const Efficiency& e = request.efficiencies.matmul;
  IntervalFactors out{.source = "step times: " + e.source};
  for (const FigureKind kind : {FigureKind::tpot, FigureKind::ttft}) out.of(kind) = {e.high / e.value, e.value / e.low};
  out.of(FigureKind::throughput) = out.of(FigureKind::tpot).inverse();
  return out;
}

}  // namespace

ExperimentServer simulated_server(const experiment::Experiment& e, const PlanContext& context) {
  const experiment::BoundExperiment config = e.config();
  ExperimentServer server{.request = plan_request(e, context)};
  const Request& request = server.request;
  require_runnable(e, context, request, predict(request));
  server.backend = serve::make_cost_model_backend(
      request, runs_here(request) ? engine_server(config, request.model) : serve::scheduler_settings(config.serve),
      {.count = config.sweep.replicas, .routing = config.sweep.routing});
  if (runs_here(request)) {
    const IntervalFactors factors = factors_of_rates(request);
    server.interval_source = factors.source;
    server.intervals = [factors](const formats::BenchPoint&) { return factors; };
    return server;
  }
  const WorkSize size = work_size(request);
  const Calibration& calibration = calibration_of(context);
  server.interval_source = interval_factors(calibration, request.stack, request.target.chip.id, size).source;
  server.intervals = [calibration, size, chip = request.target.chip.id,
                      stack = request.stack](const formats::BenchPoint& point) {
    WorkSize of_point = size;
    of_point.tokens = point.input_len, of_point.answer = point.output_len;
    if (point.max_concurrency > 0) of_point.users = point.max_concurrency;
    return interval_factors(calibration, stack, chip, of_point);
  };
  return server;
}

formats::BenchPoint with_limits(formats::BenchPoint point, const IntervalFactors& factors) {
  const auto add = [&](const std::string& field, double value, const LimitFactors& limits) {
    if (!limits.is_calibrated() || !std::isfinite(value)) return;
    point.rest[field + "_low"] = value / limits.below;
    point.rest[field + "_high"] = value * limits.above;
  };
  add("output_throughput", point.output_throughput, factors.of(FigureKind::throughput));
  add("median_tpot_ms", point.tpot.median, factors.of(FigureKind::tpot));
  add("median_ttft_ms", point.ttft.median, factors.of(FigureKind::ttft));
  return point;
}

std::vector<formats::BenchPoint> simulated_sweep(const experiment::Experiment& e, const PlanContext& context,
                                                 const std::function<void(long)>& progress,
                                                 const std::stop_token& stop) {
  const ExperimentServer server = simulated_server(e, context);
  std::vector<formats::BenchPoint> points;
  const serve::SweepCallbacks callbacks{.point =
                                            [&](formats::BenchPoint point) {
                                              point.requests.clear();
                                              point.timeline.clear();
                                              point.steps.clear();
                                              const IntervalFactors factors = server.intervals(point);
                                              points.push_back(with_limits(std::move(point), factors));
                                            },
                                        .progress = [&](const std::string&, long done, long) { progress(done); }};
  if (!serve::run_sweep(serve::sweep_settings(e.config()), *server.backend, {}, callbacks, stop))
    throw cancelled("the simulation");
  return points;
}

namespace {

// Simulates the point with one user; replayed prompts first run once to fill the cache.
formats::BenchPoint alone(const serve::SweepSettings& sweep, const LoadPoint& point, serve::LoadBackend& backend,
                          const std::stop_token& stop) {
  options::LoadSettings settings = sweep.load;
  settings.arrival = options::Arrival::closed;
  settings.concurrency = 1;
  settings.input_len = point.input_len;
  settings.num_prompts = sweep.num_prompts(point.input_len);
  const serve::Load load = serve::make_load(settings);
  if (sweep.keeps_cache()) backend.run(load, {}, stop);
  const serve::LoadResult played = backend.run(load, {}, stop);
  check_stop(stop);
  return serve::summarise(load, played, sweep.slo);
}

// The first repeat of its length, up to the point. A server that starts anew before every point does not depend on
// those before. A rate that the document does not have comes after the lower ones.
void end_with(const LoadPoint& point, serve::SweepSettings& sweep) {
  sweep.repeats = 1, sweep.input_lens = {point.input_len};
  if (!sweep.keeps_cache()) sweep.request_rates.clear();
  auto& rates = sweep.request_rates;
  if (std::find(rates.begin(), rates.end(), point.request_rate) == rates.end()) {
    std::erase_if(rates, [&](double rate) { return rate > point.request_rate; });
    rates.push_back(point.request_rate);
  }
}

}  // namespace

formats::BenchPoint simulated_point(const experiment::Experiment& e, const LoadPoint& point, const PlanContext& context,
                                    Queueing queueing, const std::stop_token& stop) {
  check_stop(stop);
  const ExperimentServer server = simulated_server(e, context);
  serve::SweepSettings sweep = serve::sweep_settings(e.config());
  if (queueing == Queueing::none) return alone(sweep, point, *server.backend, stop);
  end_with(point, sweep);
  formats::BenchPoint wanted;
  std::stop_source done;
  const std::stop_callback stopped(stop, [&] { done.request_stop(); });
  const auto take = [&](const formats::BenchPoint& p) {
    wanted = p;
    if (p.request_rate == point.request_rate) done.request_stop();
  };
  serve::run_sweep(sweep, *server.backend, {}, {.point = take}, done.get_token());
  check_stop(stop);
  return wanted;
}

}  // namespace mw::plan
