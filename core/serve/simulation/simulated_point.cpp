// SPDX-License-Identifier: Apache-2.0
#include "core/serve/simulation/simulated_point.h"

#include <algorithm>

#include "core/serve/load/sweep_settings.h"
#include "core/serve/simulation/simulated_server.h"

namespace mw::serve {
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

formats::BenchPoint simulated_point(const experiment::Experiment& e, const LoadPoint& point,
                                    const plan::PlanContext& context, Queueing queueing, const std::stop_token& stop) {
  check_stop(stop);
  const SimulatedServer server = simulated_server(e, context);
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

}  // namespace mw::serve
