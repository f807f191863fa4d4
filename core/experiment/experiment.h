// SPDX-License-Identifier: Apache-2.0
// The one document. A JSON object, schema-versioned, unknown keys kept; typed reads go through the parameter table.
// A value type: copy it to freeze it. Any thread.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"

namespace mw::experiment {

inline constexpr int kSchema = 1;

class Experiment {
 public:
  Experiment();  // empty document of the current schema
  // Refuses a newer schema and anything that is no object; unknown keys stay. Relative paths in the document are
  // relative to the file's folder; folder() remembers it.
  static Experiment load(const std::filesystem::path& file);
  static Experiment from_json(Json document, const std::filesystem::path& folder = {});
  void save(const std::filesystem::path& file) const;  // atomic

  const Json& json() const { return document_; }
  std::string text() const;  // two-space indented, as saved
  const std::filesystem::path& folder() const { return folder_; }
  bool operator==(const Experiment& other) const { return document_ == other.document_; }

  // The value in force: the document's, else the table's default. Throws Error for an unknown key or wrong type.
  long long integer(std::string_view key) const;
  double number(std::string_view key) const;
  std::string string(std::string_view key) const;
  bool flag(std::string_view key) const;
  std::vector<std::string> list(std::string_view key) const;  // of strings or numbers as text
  Json value(std::string_view key) const;
  bool has(std::string_view key) const;                         // set in the document itself
  std::filesystem::path path(std::string_view key) const;       // resolved against folder(); empty stays empty
  std::vector<std::pair<std::string, long long>> mesh() const;  // axes in document order

  // set("lora.rank", "32") converts by the table's type (JSON for lists and maps) and checks the range; throws Error
  // naming the key, what was found, what is allowed. Paths given here are relative to the working folder.
  void set(std::string_view key, const std::string& text);
  void set_value(std::string_view key, Json value);  // unchecked; validate() will tell
  void erase(std::string_view key);                  // back to the default

  // Everything wrong with the document by itself: types, ranges, choices, unknown keys (warning with nearest key).
  std::vector<Problem> validate() const;

 private:
  Json document_;
  std::filesystem::path folder_;
};

// Applies "key=value" strings; throws Error("SET") naming the bad one. train.steps among them clears the document's
// train.epochs, which would keep it from being read; with train.epochs above 0 beside it, train.epochs counts, as in a
// document that has both. Returns what to tell about that, a line each.
std::vector<std::string> apply_sets(Experiment& experiment, const std::vector<std::string>& sets);

}  // namespace mw::experiment
