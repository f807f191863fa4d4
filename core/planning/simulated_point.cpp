// SPDX-License-Identifier: Apache-2.0
#include "core/planning/simulated_point.h"

#include "core/planning/diagnostics.h"
#include "core/planning/plan_request.h"
#include "core/serve/load/simulated_backend.h"
#include "core/serve/load/sweep_settings.h"

namespace mw::planning {
namespace {

void check_stop(const std::stop_token& stop) {
  if (stop.stop_requested()) throw cancelled("the simulation");
}

// Simulates the point with one user; replayed prompts first run once to fill the cache.
formats::BenchPoint alone(const serve::SweepSettings& sweep, const LoadPoint& point, serve::LoadBackend& backend,
                          const std::stop_token& stop) {
  options::LoadSettings settings = sweep.load;
  settings.arrival = options::Arrival::closed;
  settings.concurrency = 1;
  settings.input_len = point.input_len;
  settings.num_prompts = sweep.num_prompts(point.input_len);
  const serve::Load load = serve::make_load(settings);
  if (settings.prompts == options::PromptMode::replayed) backend.run(load, {}, stop);
  const serve::LoadResult played = backend.run(load, {}, stop);
  check_stop(stop);
  return serve::summarise(load, played, sweep.slo);
}

}  // namespace

formats::BenchPoint simulated_point(const experiment::Experiment& e, const LoadPoint& point,
                                    const plan::PlanContext& context, Queueing queueing, const std::stop_token& stop) {
  check_stop(stop);
  const experiment::ExperimentConfig& config = e.config();
  serve::SweepSettings sweep = serve::sweep_settings(config);
  const plan::Request request = plan_request(e, context);
  require_runnable(e, context, request, plan::predict(request));
  const auto backend = serve::make_cost_model_backend(request, serve::scheduler_settings(config.serve));
  if (queueing == Queueing::none) return alone(sweep, point, *backend, stop);
  std::erase_if(sweep.request_rates, [&](double rate) { return rate >= point.request_rate; });
  sweep.request_rates.push_back(point.request_rate);
  sweep.input_lens = {point.input_len};
  sweep.repeats = 1;
  formats::BenchPoint last;
  serve::run_sweep(sweep, *backend, {}, {.point = [&](const formats::BenchPoint& p) { last = p; }}, stop);
  check_stop(stop);
  return last;
}

}  // namespace mw::planning
