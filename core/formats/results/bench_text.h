// SPDX-License-Identifier: Apache-2.0
// Result files as other tools' programs leave them: several JSON values in one file, numbers that JSON does not have.
// Any thread.
#pragma once
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"

namespace mw::formats::bench {

// Keys of the first object at the top, or of the first in a list at the top, as far as the text goes.
std::set<std::string> first_keys(std::string_view text);

// The values of a file that holds one after the other (vLLM's --append-result, JSONL). Python's NaN becomes null and
// its Infinity "inf". Throws Error JSON with line and column in the file.
std::vector<Json> read_values(std::string_view text, const std::string& file);

}  // namespace mw::formats::bench
