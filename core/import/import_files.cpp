// SPDX-License-Identifier: Apache-2.0
#include "core/import/import_files.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/import/bundle.h"
#include "core/import/follow.h"
#include "core/model/config.h"
#include "core/store/store_rows.h"

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
  if (set.provenance == formats::ResultProvenance::measured) {
    set.notes.push_back("measured by " + (set.tool.empty() ? "another tool" : set.tool) + ", imported from a file");
    set.provenance = formats::ResultProvenance::imported;
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
    store.append(run,
                 {time_s, event::ResultPoint{i + 1, "sweep",
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

namespace fs = std::filesystem;
namespace {

constexpr size_t kMostLine = 16 << 20, kMostEvents = 20'000'000;
constexpr std::uint64_t kMostBytes = 1ull << 30;

[[noreturn]] void refuse(const fs::path& file, const std::string& message, const std::string& place,
                         const std::string& found, const std::string& expected) {
  throw Error("EVENTS", message, {.file = file.string(), .place = place, .found = found, .expected = expected});
}

// Reads the next line, truncated to `most` bytes; empty at the end of the file.
std::optional<std::string> next_line(std::istream& in, size_t most) {
  std::string line;
  for (int c = in.get(); c != std::istream::traits_type::eof(); c = in.get()) {
    if (c == '\n' || line.size() == most) return line;
    line += static_cast<char>(c);
  }
  return line.empty() ? std::nullopt : std::optional(line);
}

std::string text_in(const Json& info, const char* key) {
  return info.contains(key) && info[key].is_string() ? valid_utf8(info[key].get<std::string>()) : std::string();
}

// Sets name, software and document of the record from its Started event.
void take_started(event::Started& started, EventRecord& record) {
  if (!started.info.is_object()) started.info = Json::object();
  Json& info = started.info;
  info["source"] = "imported";
  info.erase("run");  // the id belongs to another store
  if (!record.name.empty()) return;
  record.name = text_in(info, "name");
  record.software = text_in(info, "software");
  if (!record.name.empty() && !record.software.empty() && record.software != "Meshwright")
    record.name += ", " + record.software;  // tells it from a local run of the same experiment
  if (!info.contains("experiment") || !info["experiment"].is_object()) return;
  try {
    record.document = experiment::Experiment::from_json(info["experiment"]);
  } catch (const Error&) {  // from a newer program; the events are still usable
  }
}

}  // namespace

bool is_event_lines(const fs::path& file) {
  std::string beginning = read_beginning(file, kMostLine);
  if (beginning.starts_with("\xEF\xBB\xBF")) beginning.erase(0, 3);
  std::istringstream in(std::move(beginning));
  const auto first = next_line(in, kMostLine);
  const auto event = first ? event_of_line(*first) : std::nullopt;
  return event && std::holds_alternative<event::Started>(event->body);
}

EventRecord read_event_lines(const fs::path& file) {
  std::istringstream in(read_text(file, kMostBytes));
  EventRecord record;
  double last = 0;
  long steps = 0;
  bool ended = false;
  for (auto line = next_line(in, kMostLine); line; line = next_line(in, kMostLine)) {
    if (record.events.size() == kMostEvents)
      refuse(file, "the file has too many events", "", "more than " + std::to_string(kMostEvents),
             "a record of one run");
    auto event = event_of_line(*line);
    if (!event) {
      if (!line->empty()) record.events.push_back({last, event::Log{"info", valid_utf8(shortened_line(*line))}});
      continue;
    }
    if (ended) refuse(file, "the file has events after the end of the run", "", "another run", "one run per file");
    last = event->time_s = std::max(last, event->time_s);  // event times never decrease
    if (auto* started = std::get_if<event::Started>(&event->body)) take_started(*started, record);
    if (const auto* metric = std::get_if<event::Metric>(&event->body))
      ++record.values, steps = std::max(steps, metric->step);
    ended = std::holds_alternative<event::Finished>(event->body);
    record.events.push_back(std::move(*event));
  }
  if (record.values == 0)
    refuse(file, "the file has no measured values", "", "no metric event",
           "what `meshwright run --json` or a recipe's train.py prints");
  if (!ended) {
    event::Finished cut;
    cut.state = RunState::failed;
    cut.steps = steps;
    cut.seconds = last;
    cut.error = "the file ends before the run does";
    record.events.push_back({last, cut});
  }
  if (record.name.empty()) record.name = valid_utf8(file.stem().string());
  if (record.software.empty()) record.software = "event lines";
  return record;
}

store::RunId import_events(store::Store& store, const EventRecord& record) {
  experiment::Experiment document = record.document;
  if (!document.has("name")) document.set_value("name", record.name);
  store::RunId run = store.create(document, record.name);
  const auto lock = store.lock(run);
  for (const Event& event : record.events)
    if (const auto* finished = std::get_if<event::Finished>(&event.body))
      finish_recorded(store, run, event.time_s, *finished);
    else
      store.append(run, event);
  return run;
}

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

namespace {

formats::RunLog read_log_with_scalars(const std::filesystem::path& file) {
  formats::RunLog log = formats::read_log(file);
  if (!log.scalars.empty()) return log;
  throw Error("LOG-EMPTY", "the log has no scalar values",
              {.file = file.string(),
               .found = log.contents.empty() ? "no values" : joined(log.contents),
               .expected = "at least one scalar, such as a loss",
               .fix = "log scalars per step, or import the file that contains them"});
}

}  // namespace

std::vector<ImportResult> import_files(const std::filesystem::path& runs_folder,
                                       const std::vector<std::filesystem::path>& files,
                                       const formats::CsvMapping& mapping) {
  std::vector<formats::BenchSet> sets;
  std::vector<formats::RunLog> logs;
  std::vector<EventRecord> records;
  std::vector<std::filesystem::path> bundles;
  for (const auto& file : files) {
    if (is_bundle(file)) {
      check_bundle(file);
      bundles.push_back(file);
      continue;
    }
    if (is_event_lines(file)) {
      records.push_back(read_event_lines(file));
      continue;
    }
    if (formats::log_kind(file) != formats::LogKind::none) {
      logs.push_back(read_log_with_scalars(file));
      continue;
    }
    auto more = formats::read_bench(file, mapping);
    std::move(more.begin(), more.end(), std::back_inserter(sets));
  }
  store::Store store(runs_folder);
  std::vector<ImportResult> imported;
  const std::vector<store::RunId> of_sets = import_sets(store, sets);
  for (size_t i = 0; i < sets.size(); ++i)
    imported.push_back({of_sets[i], sets[i].name, sets[i].tool, sets[i].points.size(), 0});
  for (const formats::RunLog& log : logs)
    imported.push_back({import_log(store, log), log.name, log.tool, 0, log.scalars.size()});
  for (const EventRecord& r : records) imported.push_back({import_events(store, r), r.name, r.software, 0, r.values});
  for (const std::filesystem::path& file : bundles) {
    const BundleContents contents = import_bundle(store, file);
    for (size_t i = 0; i < contents.runs.size(); ++i)
      imported.push_back({contents.runs[i], contents.names[i], "a bundle", 0, 0, contents.events_of[i]});
  }
  return imported;
}

}  // namespace mw::importing
