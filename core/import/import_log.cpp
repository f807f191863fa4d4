// SPDX-License-Identifier: Apache-2.0
#include "core/import/import_log.h"

#include <algorithm>

#include "core/base/units.h"
#include "core/import/import_results.h"

namespace mw::importing {
namespace {

// Copies known facts of the log to their keys in the document.
experiment::Experiment experiment_of_log(const formats::RunLog& log) {
  experiment::Experiment e;
  e.set_value("kind", "train");
  e.set_value("name", log.name);
  const auto take = [&](const char* section, const char* theirs, const char* key) {
    const auto at = log.facts.find(section);
    if (at == log.facts.end() || !at->is_object() || !at->contains(theirs) || !at->at(theirs).is_number()) return;
    e.set_value(key, at->at(theirs));
  };
  take("config", "batch_size", "train.batch");
  take("config", "max_seq_len", "data.max_len");
  take("config", "learning_rate", "train.learning_rate");
  take("config", "lora_rank", "lora.rank");
  take("config", "lora_alpha", "lora.alpha");
  return e;
}

}  // namespace

store::RunId import_log(store::Store& store, const formats::RunLog& log) {
  std::vector<formats::Scalar> scalars = log.scalars;
  std::stable_sort(scalars.begin(), scalars.end(),
                   [](const formats::Scalar& a, const formats::Scalar& b) { return a.step < b.step; });
  long last = log.steps_total, logged = 0;
  double first_wall_s = 0;
  for (const formats::Scalar& s : scalars) {
    last = std::max(last, s.step);
    logged = std::max(logged, s.step);
    if (s.wall_s > 0) first_wall_s = first_wall_s == 0 ? s.wall_s : std::min(first_wall_s, s.wall_s);
  }
  store::RunId run = store.create(experiment_of_log(log), log.name);
  const auto lock = store.lock(run);
  store.append(run, {0, event::Started{{{"kind", "train"},
                                        {"source", "imported"},
                                        {"name", log.name},
                                        {"tool", log.tool},
                                        {"steps", last},
                                        {"facts", log.facts}}}});
  for (const std::string& note : log.notes) store.append(run, {0, event::Log{"warning", note}});
  if (first_wall_s == 0 && log.seconds > 0)
    store.append(run, {0, event::Log{"info", "the file has no times for its steps; they are spread evenly over its " +
                                                 to_text(Seconds(log.seconds))}});
  double seconds = log.seconds, at = 0;
  for (const formats::Scalar& s : scalars) {
    // If the log has no times, its steps are spread evenly over its duration.
    const double own = s.wall_s > 0 ? s.wall_s - first_wall_s
                       : last > 0   ? seconds * static_cast<double>(s.step) / static_cast<double>(last)
                                    : 0;
    at = std::max(at, own);  // event times never decrease
    store.append(run, {at, event::Metric{s.name, s.step, s.value}});
  }
  event::Finished finished;
  finished.steps = log.finished ? last : logged;
  finished.seconds = std::max(seconds, at);
  finish_recorded(store, run, finished.seconds, finished);
  return run;
}

}  // namespace mw::importing
