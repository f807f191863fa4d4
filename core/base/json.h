// SPDX-License-Identifier: Apache-2.0
// JSON as everywhere in Meshwright: key order is kept, duplicate keys and depth bombs are refused,
// errors name file, line and column. Any thread.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace mw {

using Json = nlohmann::ordered_json;

// Throws Error("JSON", bad_input) naming `source` and line:column. Refuses duplicate keys and nesting deeper than 200.
Json parse_json(std::string_view text, const std::string& source);
Json read_json(const std::filesystem::path& file);

// The same checks for objects with very many keys (safetensors headers, weight maps): Json keeps their order but finds
// a key by scanning, which would make reading them quadratic.
using SortedJson = nlohmann::json;
SortedJson parse_sorted_json(std::string_view text, const std::string& source);

// JSON text is UTF-8: each byte that does not belong to a valid sequence becomes U+FFFD (a model may well generate half
// a character).
std::string valid_utf8(std::string_view text);

// Members that must exist with that type; otherwise Error naming file and key.
const Json& member(const Json& object, const std::string& key, const std::string& file);
long long int_member(const Json& object, const std::string& key, const std::string& file);
double number_member(const Json& object, const std::string& key, const std::string& file);
const Json& list_member(const Json& object, const std::string& key, const std::string& file);
std::string string_member(const Json& object, const std::string& key, const std::string& file);

}  // namespace mw
