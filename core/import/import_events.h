// SPDX-License-Identifier: Apache-2.0
// Imports a file of event lines, printed by a recipe or by `run --json`, as a finished run of the store with source
// "imported". Use on the store's thread.
#pragma once
#include <filesystem>

#include "core/store/store.h"

namespace mw::importing {

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

}  // namespace mw::importing
