// SPDX-License-Identifier: Apache-2.0
#include "core/plan/experiment/serving_search.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <future>
#include <numeric>

#include "core/plan/document/diagnostics.h"
#include "core/plan/document/simulated_server.h"
#include "core/plan/experiment/search_experiment.h"
#include "core/serve/load/sweep.h"

namespace mw::plan {
namespace {

experiment::Experiment edited(experiment::Experiment e, const std::vector<lint::Edit>& edits) {
  apply(e, {.label = "", .cost = "", .edits = edits});
  e.set_value("sweep.backend", "model");
  return e;
}

// Empty: the server starts.
std::string refusal_of(const experiment::Experiment& e, const PlanContext& context) {
  try {
    const Plan plan = predict(plan_request(e, context));
    if (plan.refusals.empty() && !plan.fits())
      return "does not fit: " + to_text(plan.memory.at_peak.total()) + " of " + to_text(plan.memory.capacity);
    simulated_server(e, context);
    return {};
  } catch (const Error& error) {
    return error.problem().message;
  }
}

// Notes the highest rate within the SLO at every length; 0: none.
void add_rate(const serve::SweepSettings& sweep, const std::vector<formats::BenchPoint>& points, SweepFigures& out) {
  out.rate = std::numeric_limits<double>::infinity();
  for (const int input_len : sweep.input_lens) {
    std::vector<formats::BenchPoint> of_length;
    std::copy_if(points.begin(), points.end(), std::back_inserter(of_length),
                 [&](const formats::BenchPoint& p) { return p.input_len == input_len; });
    const serve::Capacity capacity = serve::find_capacity(of_length, sweep.slo);
    out.rate = std::min(out.rate, std::isnan(capacity.at_slo) ? 0 : capacity.at_slo);
    out.too_short = out.too_short || !capacity.too_short.empty();
  }
}

}  // namespace

std::vector<Request> other_replicas(const experiment::Experiment& e, const Request& own, const PlanContext& context) {
  std::vector<Request> out;
  const int devices = own.target.devices() * own.serve.replicas;
  for (int replicas = 1; replicas <= devices; ++replicas) {
    if (devices % replicas != 0 || replicas == own.serve.replicas) continue;
    const std::vector<std::string> ids = context.catalogue.target_ids();
    const auto id = std::find_if(ids.begin(), ids.end(), [&](const std::string& t) {
      const hardware::Target target = context.catalogue.target(t);
      return target.chip.id == own.target.chip.id && target.devices() * replicas == devices;
    });
    if (id == ids.end()) continue;
    try {
      experiment::Experiment other = e;
      retarget(other, *id, context);
      other.set_value("sweep.replicas", replicas);
      out.push_back(plan_request(other, context));
      out.back().mesh = own.mesh;
    } catch (const Error&) {
      continue;  // that target cannot be planned with the document's settings
    }
  }
  return out;
}

std::vector<ServingCell> serving_meshes(const experiment::Experiment& e, const PlanContext& context) {
  std::vector<Request> requests{plan_request(e, context)};
  for (Request& r : other_replicas(e, requests.front(), context)) requests.push_back(std::move(r));
  const ExperimentSearch searched = choices_of(e, requests);
  const PlanChoice own = choice_of(requests.front());
  std::vector<ServingCell> out;
  for (const Request& request : requests)
    for (const mesh::Mesh& mesh : legal_meshes(request)) {
      PlanChoice choice = choice_of(request);
      if (!(choice == own) || !(mesh == own.mesh)) choice.places.clear();
      choice.mesh = mesh;
      std::vector<lint::Edit> edits = edits_to(searched, own, choice);
      std::string refusal = refusal_of(edited(e, edits), context);
      out.push_back({.choice = std::move(choice), .edits = std::move(edits), .refusal = std::move(refusal)});
    }
  return out;
}

void simulate(std::vector<ServingCell>& cells, const experiment::Experiment& e, const PlanContext& context,
              const SearchOptions& options, const std::stop_token& stop) {
  std::vector<ServingCell*> open;
  for (ServingCell& cell : cells)
    if (cell.refusal.empty()) open.push_back(&cell);
  const long each = serve::sweep_settings(e.config()).requests(), total = each * static_cast<long>(open.size());
  std::atomic<size_t> next = 0;
  std::vector<std::atomic<long>> done(open.size());
  const auto work = [&] {
    for (size_t i = next++; i < open.size(); i = next++) {
      try {
        open[i]->points = simulated_sweep(
            edited(e, open[i]->edits), context, [&](long n) { done[i] = n; }, stop);
      } catch (const Error& error) {
        if (error.kind() == Error::Kind::cancelled) throw;
        open[i]->refusal = error.problem().message;
      }
      done[i] = each;
    }
  };
  std::vector<std::future<void>> threads;
  for (size_t i = 0; i < std::min(open.size(), static_cast<size_t>(std::max(1, options.threads))); ++i)
    threads.push_back(std::async(std::launch::async, work));
  for (std::future<void>& thread : threads)
    while (thread.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready)
      if (options.progress) options.progress(std::accumulate(done.begin(), done.end(), 0L), total);
  for (std::future<void>& thread : threads) thread.get();
}

SweepFigures sweep_figures(const ServingCell& cell, const serve::SweepSettings& sweep, const Candidate& candidate) {
  SweepFigures out;
  double seconds = 0, tokens = 0;
  for (const formats::BenchPoint& p : cell.points) {
    out.seconds += p.intended_e2el.mean / 1e3 / static_cast<double>(cell.points.size());
    seconds += p.duration_s;
    tokens += static_cast<double>(p.total_output_tokens);
  }
  if (std::isnan(out.seconds))
    out.seconds = std::numeric_limits<double>::infinity();  // a load without completed requests
  const bool has_rates =
      sweep.load.arrival != options::Arrival::closed && sweep.load.arrival != options::Arrival::burst;
  if (sweep.slo.any() && has_rates) add_rate(sweep, cell.points, out);
  const double usd_per_second = candidate.usd * candidate.tokens_per_second * candidate.choice.replicas / 1e6;
  out.usd = usd_per_second > 0 ? 1e6 * usd_per_second * seconds / tokens : 0;
  return out;
}

}  // namespace mw::plan
