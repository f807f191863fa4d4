// SPDX-License-Identifier: Apache-2.0
// Event lines that a program printed somewhere else, kept in a file: a recipe's, or `run --json`, as a
// finished run of the store, source "imported". The store's thread.
#pragma once
#include <filesystem>

#include "core/store/store.h"

namespace mw::importing {

// Whether the first line of the file is a run's first event. A file that cannot be read is none.
bool is_event_lines(const std::filesystem::path& file);

// One run of a file: {its id, the number of its metrics' values}. Lines that are no events are log lines; a record that
// breaks off is a failed run. Throws Error EVENTS for one without metrics, before the store is touched.
struct EventRecord {
  std::string name, software;
  experiment::Experiment document;  // the recipe's own, where it says it
  std::vector<Event> events;
  size_t values = 0;
};
EventRecord read_event_lines(const std::filesystem::path& file);
store::RunId import_events(store::Store& store, const EventRecord& record);

}  // namespace mw::importing
