// SPDX-License-Identifier: Apache-2.0
#include "core/jobs/sweep_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/base/elapsed.h"
#include "core/jobs/sweep_backends.h"
#include "core/serve/load/confidence.h"
#include "core/serve/load/sweep_settings.h"
#include "core/serve/simulation/simulated_server.h"
#include "core/store/sweep_points.h"

namespace mw::jobs {
namespace {

using Clock = std::chrono::steady_clock;

Json slo_json(const options::Slo& slo) {
  return {{"ttft_ms", slo.ttft_ms}, {"tpot_ms", slo.tpot_ms}, {"e2e_ms", slo.e2e_ms}};
}

}  // namespace

event::Finished run_sweep(const SweepRequest& request, const EventSink& sink, std::stop_token stop,
                          train::PauseGate& gate) {
  const auto start_time = Clock::now();
  const auto emit = [&](auto body) { sink({seconds_since(start_time), std::move(body)}); };
  emit(event::StateChanged{RunState::running});
  const experiment::Experiment& e = request.experiment;
  const experiment::ExperimentConfig config = e.config();
  const serve::SweepSettings settings = serve::sweep_settings(config);
  const plan::PlanContextPtr loaded = request.context();
  const plan::PlanContext& context = *loaded;
  formats::BenchSet facts = serve::sweep_facts(config, context.catalogue);
  BackendParts parts = make_backend(e, context, [&](auto body) { std::visit(emit, std::move(body)); });
  for (const auto& [key, value] : parts.conditions) facts.conditions[key] = value;
  parts.notes.push_back(serve::percentile_text(99, settings.fewest_prompts()));
  Json info = request.info;
  info.update({{"kind", "sweep"},
               {"backend", to_string(serve::sweep_backend(config))},
               {"source", facts.provenance == formats::Provenance::predicted ? "predicted" : "measured"},
               {"steps", settings.points()},
               {"slo", slo_json(settings.slo)},
               {"set", formats::to_json(facts, formats::Detail::summary)}});
  if (!request.done.empty()) info["resumed_from"] = request.done.size();
  emit(event::Started{std::move(info)});
  for (const std::string& note : parts.notes) emit(event::Log{"info", note});

  event::Finished finished;
  finished.steps = static_cast<long>(request.done.size());
  for (const formats::BenchPoint& p : request.done) finished.tokens += p.total_output_tokens;
  const serve::SweepCallbacks callbacks{
      .point =
          [&](const formats::BenchPoint& p) {
            finished.tokens += p.total_output_tokens;
            if (!p.note.empty()) emit(event::Log{"warning", p.note});
            emit(event::Point{
                ++finished.steps, "sweep",
                formats::to_json(serve::with_limits(store::as_recorded(p),
                                                    parts.intervals ? parts.intervals(p) : plan::IntervalFactors{}),
                                 formats::Detail::requests)});
          },
      .progress =
          [&](const std::string& phase, long done, long total) {
            emit(event::Progress{phase, done, total});
          },
      .before_point = [&] { gate.wait(stop, [&](RunState state) { emit(event::StateChanged{state}); }); }};
  const bool complete = serve::run_sweep(settings, *parts.backend, request.done, callbacks, stop);
  finished.state = complete ? RunState::done : RunState::cancelled;
  finished.seconds = seconds_since(start_time);
  return finished;
}

}  // namespace mw::jobs
