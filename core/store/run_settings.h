// SPDX-License-Identifier: Apache-2.0
// The settings of runs as text, what differs between them, and names that tell runs apart. Thread-safe.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/store/store.h"

namespace mw::store {

using RunSettings = std::map<std::string, std::string>;  // text by key, such as "lora.rank"; the mesh is one key

// Returns every setting but name and note, with defaults.
RunSettings settings_of(const experiment::Experiment& experiment);

struct SettingChange {
  std::string key{}, label{}, before{}, after{};
};
// Returns the settings with different values, the most telling ones first.
std::vector<SettingChange> setting_changes(const RunSettings& before, const RunSettings& after);
// Returns a short text of a setting: "r16", "lr 0.0002", "fsdp 2 tp 4".
std::string brief_setting(const std::string& key, const std::string& value);

// The settings of many runs. Equal texts are kept once, so that a run takes a few hundred bytes. Not thread-safe.
class SettingsTable {
 public:
  using Index = std::uint32_t;
  Index add(const RunSettings& settings);
  const std::string& value(Index run, const std::string& key) const;  // empty: none
  std::vector<SettingChange> changes(Index before, Index after) const;
  struct Named {
    RunId id{};  // empty for a file
    std::string name{};
    Index settings{};
  };
  std::vector<std::string> distinct_names(const std::vector<Named>& runs) const;

 private:
  using Text = std::uint32_t;  // index in texts_; 0 is empty
  Text cell(Index run, size_t column) const;
  void tell_apart(const std::vector<Named>& runs, const std::vector<size_t>& equal,
                  std::vector<std::string>& names) const;
  std::deque<std::string> texts_{{}};
  std::unordered_map<std::string, Text> text_of_{{{}, 0}};
  std::map<std::string, size_t> columns_;             // by key
  std::vector<std::pair<std::string, size_t>> keys_;  // with their columns, the most telling ones first
  std::vector<std::vector<Text>> rows_;               // by column; a short row has no settings of later columns
};

struct NamedRun {
  RunId id{};  // empty for a file
  std::string name{};
  RunSettings settings{};
};
// Returns a name for each run that no other has: an equal name is followed by the settings that tell the runs apart
// ("tiny-lora r16"), or by the id where none does.
std::vector<std::string> distinct_names(const std::vector<NamedRun>& runs);
// The name of one run among all runs of the store. The id if the store does not have it.
std::string distinct_name(const Store& store, const RunId& run);

}  // namespace mw::store
