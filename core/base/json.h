// SPDX-License-Identifier: Apache-2.0
// JSON parsing that keeps key order, rejects duplicate keys and deep nesting, and reports file, line and column;
// preprocessing of JSON text, and excerpts of it for error messages. Thread-safe.
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

// Offset after the closing quote of the string that begins at `at`; the size of `text` if it is not closed.
size_t end_of_string(std::string_view text, size_t at);

// Replacements for the literals NaN, Infinity and -Infinity of Python's json.dumps.
struct PythonNumbers {
  std::string_view nan = "null", minus_infinity = "null", infinity = "null";
};
// Replaces these literals outside strings.
std::string without_python_numbers(std::string_view text, const PythonNumbers& replacements = {});

// Excerpts of input for error messages: at most 60 bytes, valid UTF-8.
std::string text_excerpt(const std::string& text);
std::string json_excerpt(const Json& value);

// Replaces each byte outside a valid UTF-8 sequence by U+FFFD; generated text may end within a character.
std::string valid_utf8(std::string_view text);

// The member, or null if it is missing or null, or if `object` is not an object.
const Json* find_member(const Json& object, const std::string& key);

// Required members. Throw JSON, naming file and key, if the member is missing or has another type.
const Json& member(const Json& object, const std::string& key, const std::string& file);
long long int_member(const Json& object, const std::string& key, const std::string& file);
double number_member(const Json& object, const std::string& key, const std::string& file);
const Json& list_member(const Json& object, const std::string& key, const std::string& file);
std::string string_member(const Json& object, const std::string& key, const std::string& file);

}  // namespace mw
