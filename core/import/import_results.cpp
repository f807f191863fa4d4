// SPDX-License-Identifier: Apache-2.0
#include "core/import/import_results.h"

#include <cmath>
#include <set>

#include "core/model/config.h"
#include "core/store/sweep_points.h"

namespace mw::importing {
namespace {

Json rates_of(const formats::BenchSet& set) {
  std::set<double> rates;
  for (const auto& p : set.points)
    if (!std::isnan(p.request_rate)) rates.insert(p.request_rate);
  Json all = Json::array();
  for (const double rate : rates) all.push_back(std::isinf(rate) ? Json("inf") : Json(rate));
  return all;
}

store::RunId import_set(store::Store& store, formats::BenchSet set) {
  if (set.provenance == formats::Provenance::measured) {
    set.notes.push_back("measured by " + (set.tool.empty() ? "another tool" : set.tool) + ", imported from a file");
    set.provenance = formats::Provenance::imported;
  }
  const experiment::Experiment document = experiment_of(set);
  return record_set(store, document, std::move(set), "imported");
}

}  // namespace

store::RunId record_set(store::Store& store, const experiment::Experiment& document, formats::BenchSet set,
                        std::string_view source, Json summary) {
  store::RunId run = store.create(document, set.name);
  const auto lock = store.lock(run);
  std::vector<formats::BenchPoint> points;
  points.swap(set.points);
  const auto n = static_cast<long>(points.size());
  store.append(run, {0, event::Started{{{"kind", "sweep"},
                                        {"source", source},
                                        {"name", set.name},
                                        {"steps", n},
                                        {"set", formats::to_json(set, formats::Detail::summary)}}}});
  for (const std::string& note : set.notes) store.append(run, {0, event::Log{"info", note}});
  event::Finished finished;
  finished.steps = n;
  finished.summary = std::move(summary);
  for (long i = 0; i < n; ++i) {
    formats::BenchPoint& p = points[static_cast<size_t>(i)];
    finished.tokens += p.total_output_tokens;
    if (p.duration_s > 0) finished.seconds += p.duration_s;
    const double time_s = finished.seconds;
    store.append(run, {time_s, event::Point{i + 1, "sweep",
                                            to_json(store::as_recorded(std::move(p)), formats::Detail::requests)}});
  }
  finish_recorded(store, run, finished.seconds, finished);
  return run;
}

void finish_recorded(store::Store& store, const store::RunId& run, double time_s, event::Finished finished) {
  store.finish(run, time_s, std::move(finished));
  if (store.rescue()) throw Error(*store.rescue(), Error::Kind::failed);
}

experiment::Experiment experiment_of(const formats::BenchSet& set) {
  experiment::Experiment e;
  e.set_value("kind", "serve");
  e.set_value("name", set.name);
  if (!set.model.empty()) e.set_value("model.id", set.model);
  if (!set.target.empty()) e.set_value("target.id", set.target);
  if (const Json rates = rates_of(set); !rates.empty()) e.set_value("sweep.request_rates", rates);
  std::set<int> lengths;
  for (const auto& p : set.points)
    if (p.input_len > 0) lengths.insert(p.input_len);
  if (!lengths.empty()) e.set_value("sweep.input_lens", Json(std::vector<int>(lengths.begin(), lengths.end())));
  return e;
}

std::vector<store::RunId> import_sets(store::Store& store, std::vector<formats::BenchSet> sets) {
  std::vector<store::RunId> runs;
  for (formats::BenchSet& set : sets) runs.push_back(import_set(store, std::move(set)));
  return runs;
}

}  // namespace mw::importing
