// SPDX-License-Identifier: Apache-2.0
// Reads files with several JSON values and with Python's non-finite numbers. Thread-safe.
#pragma once
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"

namespace mw::formats::bench {

// Keys of the first top-level object, or of the first object in a top-level list; the text may be cut off.
std::set<std::string> first_keys(std::string_view text);

// Consecutive values of a file (vLLM's --append-result, JSONL). NaN becomes null, Infinity becomes "inf". Throws JSON
// with line and column in the file.
std::vector<Json> read_values(std::string_view text, const std::string& file);

}  // namespace mw::formats::bench
