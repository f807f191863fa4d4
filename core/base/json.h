// SPDX-License-Identifier: Apache-2.0
// JSON parsing that keeps key order, rejects duplicate keys and deep nesting, and reports file, line and column;
// preprocessing of JSON text, and excerpts of it for error messages. Thread-safe.
#pragma once
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/enum_names.h"
#include "core/base/text.h"

namespace mw {

using Json = nlohmann::ordered_json;

// Throws JSON (bad_input), naming `source`, line and column. Nesting is limited to 200 levels.
Json parse_json(std::string_view text, const std::string& source);
Json read_json(const std::filesystem::path& file);

// Like parse_json(), for objects with many keys (safetensors headers, weight maps): Json finds a key by linear search,
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

// JSON in one line or indented; bytes that are not UTF-8 become U+FFFD.
std::string dump_utf8(const Json& json, int indent = -1);
std::string value_text(const Json& value);  // a string as it is, other values as dump_utf8()

// Null for NaN and infinities, which JSON does not have, and for no value.
inline Json or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}
template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// Replaces each byte outside a valid UTF-8 sequence by U+FFFD; generated text may end within a character.
std::string valid_utf8(std::string_view text);

void remove_url_secrets(Json& value);  // without_url_secrets() of all strings in `value`

// The member, or null if it is missing or null, or if `object` is not an object.
const Json* find_member(const Json& object, const std::string& key);

// Required members. Throw JSON, naming file and key, if the member is missing or has another type.
const Json& member(const Json& object, const std::string& key, const std::string& file);
long long int_member(const Json& object, const std::string& key, const std::string& file);
double number_member(const Json& object, const std::string& key, const std::string& file);
const Json& list_member(const Json& object, const std::string& key, const std::string& file);
std::string string_member(const Json& object, const std::string& key, const std::string& file);

// Reads one object of a data file (a row of a catalogue): typed members, unknown keys rejected, errors that name file,
// row and key. Use each object on one thread.

// Abbreviations of sources ("GC") and their full text. A "source" member is an abbreviation, a text, or a list of both.
using Sources = std::map<std::string, std::string>;
Sources read_sources(const Json& document, const std::string& file);

struct RowLocation {
  const Sources& sources;
  std::string file, row;  // row: "chips[3]" until its id is known, then "chips.v5p"
  std::string id;         // id of the errors: "HARDWARE-ROW"
};

class JsonRow {
 public:
  JsonRow(const Json& json, RowLocation at);

  [[noreturn]] void bad(const std::string& key, const std::string& message, const std::string& found,
                        const std::string& expected) const;
  const RowLocation& at() const { return at_; }
  RowLocation inside(const std::string& key) const;  // location of a member that is a row itself
  void rename(const std::string& row) { at_.row = row; }
  void finish() const;  // throws if a member was never read: its key is unknown

  const Json* optional(const std::string& key);  // null if missing
  const Json& required(const std::string& key);
  const Json& list(const std::string& key);  // not empty
  std::string text(const std::string& key) { return as_text(required(key), key); }
  std::string text_or(const std::string& key, const std::string& otherwise);
  double number(const std::string& key) { return as_number(required(key), key); }
  double number_or(const std::string& key, double otherwise);
  bool flag(const std::string& key, bool otherwise);
  std::string source();  // the required member "source", abbreviations expanded
  template <class T = int>
  T whole(const std::string& key, T otherwise, long long low, long long high) {
    const Json* value = optional(key);
    return value ? as_whole<T>(*value, key, low, high) : otherwise;
  }

  // Convert `value`; errors name `key`. Numbers must be positive, texts not empty; their control characters are
  // escaped.
  std::string as_text(const Json& value, const std::string& key) const;
  double as_number(const Json& value, const std::string& key) const;
  std::string as_source(const Json& value, const std::string& key) const;
  template <class T = int>
  T as_whole(const Json& value, const std::string& key, long long low, long long high) const {
    if (!value.is_number_integer() || value < low || value > high)
      bad(key, "the value is not a whole number in range", json_excerpt(value),
          "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
    return value.get<T>();
  }
  template <NamedEnum Enum>
  Enum choice(const std::string& key, const std::string& value) const {
    if (const auto known = parse<Enum>(value)) return *known;
    const auto& all = kEnumNames<Enum>;
    bad(key, "unknown value", value, "one of " + nearest_names_text(value, {all.begin(), all.end()}, all.size()));
  }
  template <class Names>  // pairs of name and value
  auto choice(const std::string& key, const std::string& value, const Names& names) const {
    std::vector<std::string> all;
    for (const auto& [name, choice] : names) {
      if (value == name) return choice;
      all.emplace_back(name);
    }
    bad(key, "unknown value", value, "one of " + nearest_names_text(value, all, all.size()));
  }

 private:
  const Json& json_;
  RowLocation at_;
  std::set<std::string> read_;
};

}  // namespace mw
