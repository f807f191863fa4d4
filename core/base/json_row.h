// SPDX-License-Identifier: Apache-2.0
// Reads one object of a data file (a row of a catalogue): typed members, unknown keys rejected, errors that name file,
// row and key. Use each object on one thread.
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"
#include "core/base/nearest_names.h"

namespace mw {

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
  std::string text(const std::string& key);
  std::string text_or(const std::string& key, const std::string& otherwise);
  double number(const std::string& key);
  double number_or(const std::string& key, double otherwise);
  bool flag(const std::string& key, bool otherwise);
  std::string source();  // the required member "source", abbreviations expanded
  template <class T = int>
  T whole(const std::string& key, T otherwise, long long low, long long high) {
    const Json* value = optional(key);
    return value ? as_whole<T>(*value, key, low, high) : otherwise;
  }

  // Convert `value`; errors name `key`. Numbers must be positive, texts not empty.
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
