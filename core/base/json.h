// SPDX-License-Identifier: Apache-2.0
// JSON parsing that keeps key order, rejects duplicate keys and deep nesting, and reports file, line and column.
// Thread-safe.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace mw {

using Json = nlohmann::ordered_json;

// Throws JSON (bad_input), naming `source`, line and column. Nesting is limited to 200 levels.
Json parse_json(std::string_view text, const std::string& source);
Json read_json(const std::filesystem::path& file);

// The same checks for objects with many keys (safetensors headers, weight maps). Json finds a key by linear search,
// which would make reading them quadratic.
using SortedJson = nlohmann::json;
SortedJson parse_sorted_json(std::string_view text, const std::string& source);

// Replaces each byte outside a valid UTF-8 sequence by U+FFFD; generated text may end within a character.
std::string valid_utf8(std::string_view text);

// Required members. Throw JSON, naming file and key, if the member is missing or has another type.
const Json& member(const Json& object, const std::string& key, const std::string& file);
long long int_member(const Json& object, const std::string& key, const std::string& file);
double number_member(const Json& object, const std::string& key, const std::string& file);
const Json& list_member(const Json& object, const std::string& key, const std::string& file);
std::string string_member(const Json& object, const std::string& key, const std::string& file);

}  // namespace mw
