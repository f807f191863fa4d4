// SPDX-License-Identifier: Apache-2.0
// The schema of experiment files, and the completion of their text while it is typed. Pure functions; any thread.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"

namespace mw::experiment {

// JSON Schema (draft 2020-12) of an experiment file, made from the parameter table: types, ranges, choices, defaults
// and help of every key. Keys that are not in the table are allowed, as they are in a file.
Json experiment_schema();

struct JsonSuggestion {
  std::string text;  // JSON: "rank" with quotes, true, 16
  std::string help;
};
struct JsonCompletion {
  size_t begin = 0, end = 0;  // of the key or value at the cursor, in bytes; equal: nothing is typed
  bool is_key = false;
  bool has_colon = false;                     // behind the key
  std::vector<JsonSuggestion> suggestions{};  // those that begin with what is typed come first

  std::string replacement(size_t suggestion) const;  // of the text from begin to end
};
// Completes from a schema. The text may be incomplete. `cursor` is an offset in bytes, `schema` that of
// experiment_schema().
JsonCompletion complete_json(const Json& schema, std::string_view text, size_t cursor);

}  // namespace mw::experiment
