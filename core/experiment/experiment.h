// SPDX-License-Identifier: Apache-2.0
// The experiment document: a JSON object with a schema version, and the values that it sets. Unknown keys are kept;
// typed reads use the parameter table. A value type: copy it to keep a snapshot.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"

namespace mw::experiment {

inline constexpr int kSchema = 1;

struct BoundExperiment;

class Experiment {
 public:
  Experiment();  // an empty document with the current schema
  // Throw EXPERIMENT unless the document is a JSON object, EXPERIMENT-VERSION for a newer schema. Relative paths in
  // the document resolve against the file's folder, which folder() returns.
  static Experiment load(const std::filesystem::path& file);
  static Experiment from_json(Json document, const std::filesystem::path& folder = {});
  void save(const std::filesystem::path& file) const;  // replaces the file atomically

  const Json& json() const { return document_; }
  std::string text() const;  // the JSON text as saved, indented by two spaces
  const std::filesystem::path& folder() const { return folder_; }
  bool operator==(const Experiment& other) const { return document_ == other.document_; }

  // The typed values, with defaults for what the document leaves out. Read once, at the first call, and shared by
  // copies; a reference holds until the document is edited. Any thread.
  const BoundExperiment& config() const&;        // throws the first error of validate()
  const BoundExperiment& valid_values() const&;  // invalid values count as not set: for display, and newer documents
  // Throws the first error of validate() on a key that reading and batching the data depends on: data.*, train.batch
  // and train.seed. Other invalid values count as not set.
  const BoundExperiment& data_config() const&;
  BoundExperiment config() &&;
  BoundExperiment valid_values() &&;
  BoundExperiment data_config() &&;

  // Generic access by key, for forms, tables and edits. Return the document's value, or the default of the parameter
  // table. Throw KEY for an unknown key, TYPE for a value of the wrong type.
  Json value(std::string_view key) const;
  std::filesystem::path path(std::string_view key) const;  // resolved against folder(); an empty path stays empty
  const Json* find(std::string_view key) const;            // the document's own value, unchecked; null if it has none
  bool has(std::string_view key) const;                    // whether the document itself sets the key

  // Parses the text by the key's type (comma-separated or JSON for lists, JSON for maps) and checks the range. Throws
  // Error with the key, the value found and the allowed values. Relative paths resolve against the working folder.
  void set(std::string_view key, const std::string& text);
  void set_value(std::string_view key, Json value);  // unchecked; validate() reports errors
  void erase(std::string_view key);                  // resets the key to its default

  // Checks types, ranges and choices of all keys; unknown keys are warnings that suggest the nearest key. Does not
  // check that files exist.
  const std::vector<Problem>& validate() const&;
  std::vector<Problem> validate() &&;

 private:
  struct Bound;  // what config() and validate() return
  const Bound& bound() const;

  Json document_;
  std::filesystem::path folder_;
  std::shared_ptr<Bound> bound_;  // a new one after each edit
};

// Applies "key=value" strings; throws SET for an invalid one. Setting train.steps clears train.epochs in the document,
// because train.steps is ignored while train.epochs is above 0; if `sets` contains both, train.epochs wins. A change of
// what was measured clears measured.*, unless `sets` contains it. Returns one message per such conflict.
std::vector<std::string> apply_sets(Experiment& experiment, const std::vector<std::string>& sets);

}  // namespace mw::experiment
