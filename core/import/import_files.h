// SPDX-License-Identifier: Apache-2.0
// Imports files of other programs as finished runs of the store: results of serving benchmarks, training logs, event
// lines and bundles (bundle.h), distinguished by content. Thread-safe.
#pragma once
#include <filesystem>
#include <vector>

#include "core/formats/logs/run_log.h"
#include "core/formats/results/bench_import.h"
#include "core/store/store.h"

namespace mw::importing {

// Imports results of other tools as finished runs of the store, with the events of a sweep (core/jobs/sweep_run.h) and
// source "imported". Use on the store's thread.

// Returns a document with what is known of the set: kind serve, model, target, rates and lengths.
experiment::Experiment experiment_of(const formats::BenchSet& set);
// Records a set as a finished run of the store with `document` as its experiment. `summary`: of the Finished event.
store::RunId record_set(store::Store& store, const experiment::Experiment& document, formats::BenchSet set,
                        std::string_view source, Json summary = {});
// Calls Store::finish() for an imported run; throws STORE-GONE if the store was rescued.
void finish_recorded(store::Store& store, const store::RunId& run, double time_s, event::Finished finished);
// Imports one run per set, in order. Measured sets get source "imported", predicted sets keep "predicted".
std::vector<store::RunId> import_sets(store::Store& store, std::vector<formats::BenchSet> sets);

// Imports a file of event lines, printed by a recipe or by `run --json`, as a finished run of the store with source
// "imported". Use on the store's thread.

// Returns whether the first line of the file is a Started event; false for an unreadable file.
bool is_event_lines(const std::filesystem::path& file);

// The run that a file contains. Other lines become log events; a file without a Finished event gives a failed run.
struct EventRecord {
  std::string name, software;
  experiment::Experiment document;  // from the Started event, if it has one
  std::vector<Event> events;
  size_t values = 0;  // number of metric values
};
// Throws EVENTS for a file without metrics or with more than one run.
EventRecord read_event_lines(const std::filesystem::path& file);
store::RunId import_events(store::Store& store, const EventRecord& record);

// Imports a training log of another program (formats/logs) as a finished run of the store with source "imported". Use
// on the store's thread.

// Records the metrics in order of steps, with the times of the log if it has any.
store::RunId import_log(store::Store& store, const formats::RunLog& log);

struct ImportResult {
  store::RunId run;
  std::string name, tool;
  size_t points = 0, values = 0, events = 0;  // points of a benchmark; scalar values of a log; events of a bundle
};

// Reads all files before it opens the store, so an Error in one file imports none of them.
std::vector<ImportResult> import_files(const std::filesystem::path& runs_folder,
                                       const std::vector<std::filesystem::path>& files,
                                       const formats::CsvMapping& mapping = {});

}  // namespace mw::importing
