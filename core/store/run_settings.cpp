// SPDX-License-Identifier: Apache-2.0
#include "core/store/run_settings.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "core/base/units.h"
#include "core/experiment/bound_experiment.h"
#include "core/experiment/parameters.h"
#include "core/mesh/layout/mesh.h"

namespace mw::store {
namespace {

constexpr size_t kMostKeys = 3;        // of a name
constexpr size_t kMostCompared = 100;  // runs whose experiments are read to name one of them

// The row of a key of RunSettings, in which "mesh" stands for all axes.
const experiment::Parameter* row_of(std::string_view key) {
  return experiment::find_parameter(key == "mesh" ? "mesh.*" : key);
}

// The most telling first; those that do not tell runs apart last.
int rank_of(std::string_view key) {
  const experiment::Parameter* row = row_of(key);
  return row && row->columns.telling > 0 ? row->columns.telling : std::numeric_limits<int>::max();
}

std::string label_of(const std::string& key) {
  const experiment::Parameter* parameter = experiment::find_parameter(key);
  return key == "mesh" ? "Mesh" : parameter ? parameter->label : key;
}

// Adds the id, or the number in the list, to names that are still equal.
void number_equal_names(const std::vector<SettingsTable::Named>& runs, const std::vector<size_t>& equal,
                        std::vector<std::string>& names) {
  std::unordered_map<std::string, size_t> count;
  for (const size_t i : equal) ++count[names[i]];
  for (const size_t i : equal)
    if (const auto at = count.find(names[i]); at != count.end() && at->second > 1)
      names[i] += " (" + (runs[i].id.empty() ? std::to_string(i + 1) : runs[i].id) + ")";
}

}  // namespace

RunSettings settings_of(const experiment::Experiment& experiment) {
  RunSettings out;
  for (const experiment::Parameter& p : experiment::parameters()) {
    if (p.key.find('*') != std::string::npos || p.key == "name" || p.key == "note") continue;
    std::string& text = out[p.key];
    try {
      const Json value = experiment.value(p.key);
      text = value.is_string()         ? value.get<std::string>()
             : value.is_number_float() ? number_text(value.get<double>(), 12)  // 16.0 is 16
                                       : value.dump();
    } catch (const Error&) {  // from another version
      text = "not readable";
    }
  }
  mesh::Mesh mesh = experiment.valid_values().mesh;
  std::erase_if(mesh.axes, [](const mesh::MeshAxis& axis) { return axis.size == 1; });  // changes nothing
  out["mesh"] = mesh.axes.empty() ? "one device" : mesh::to_text(mesh);
  return out;
}

SettingsTable::Index SettingsTable::add(const RunSettings& settings) {
  std::vector<Text>& row = rows_.emplace_back(columns_.size(), 0);
  for (const auto& [key, value] : settings) {
    const auto [column, is_new] = columns_.try_emplace(key, columns_.size());
    if (is_new) {
      const auto less = [](const auto& a, const auto& b) {
        return std::pair(rank_of(a.first), a.first) < std::pair(rank_of(b.first), b.first);
      };
      const std::pair<std::string, size_t> named(key, column->second);
      keys_.insert(std::upper_bound(keys_.begin(), keys_.end(), named, less), named);
      row.push_back(0);
    }
    const auto [text, is_unknown] = text_of_.try_emplace(value, static_cast<Text>(texts_.size()));
    if (is_unknown) texts_.push_back(value);
    row[column->second] = text->second;
  }
  return static_cast<Index>(rows_.size() - 1);
}

SettingsTable::Text SettingsTable::cell(Index run, size_t column) const {
  const std::vector<Text>& row = rows_[run];
  return column < row.size() ? row[column] : 0;
}

const std::string& SettingsTable::value(Index run, const std::string& key) const {
  const auto column = columns_.find(key);
  return texts_[column == columns_.end() ? 0 : cell(run, column->second)];
}

std::vector<SettingChange> SettingsTable::changes(Index before, Index after) const {
  std::vector<SettingChange> out;
  for (const auto& [key, column] : keys_)
    if (const Text was = cell(before, column), now = cell(after, column); was != now)
      out.push_back({key, label_of(key), texts_[was], texts_[now]});
  return out;
}

// Names the runs of one name by the settings of which each divides them further.
void SettingsTable::tell_apart(const std::vector<Named>& runs, const std::vector<size_t>& equal,
                               std::vector<std::string>& names) const {
  std::vector<std::uint64_t> part(equal.size(), 0);  // equal for runs whose names are equal so far
  size_t parts = 1, used = 0;
  for (const auto& [key, column] : keys_) {
    if (parts == equal.size() || used == kMostKeys) break;
    const auto text_at = [&, at = column](size_t i) { return cell(runs[equal[i]].settings, at); };
    std::unordered_map<std::uint64_t, std::uint64_t> finer;  // by part and text
    std::vector<std::uint64_t> next(equal.size());
    for (size_t i = 0; i < equal.size(); ++i)
      next[i] = finer.try_emplace(part[i] << 32 | text_at(i), finer.size()).first->second;
    if (finer.size() <= parts) continue;
    parts = finer.size();
    part = std::move(next);
    for (size_t i = 0; i < equal.size(); ++i)
      if (const std::string text = brief_setting(key, texts_[text_at(i)]); !text.empty())
        names[equal[i]] += (used > 0 ? ", " : " ") + text;
    ++used;
  }
  number_equal_names(runs, equal, names);
}

std::vector<std::string> SettingsTable::distinct_names(const std::vector<Named>& runs) const {
  std::vector<std::string> names;
  std::unordered_map<std::string, std::vector<size_t>> by_name;
  for (size_t i = 0; i < runs.size(); ++i) {
    names.push_back(runs[i].name.empty() ? runs[i].id : runs[i].name);
    by_name[names.back()].push_back(i);
  }
  for (const auto& [name, equal] : by_name)
    if (equal.size() > 1) tell_apart(runs, equal, names);
  return names;
}

std::vector<SettingChange> setting_changes(const RunSettings& before, const RunSettings& after) {
  SettingsTable table;
  const SettingsTable::Index was = table.add(before);
  return table.changes(was, table.add(after));
}

std::string brief_setting(const std::string& key, const std::string& value) {
  if (value.empty()) return {};
  if (const experiment::Parameter* row = row_of(key); row && row->columns.telling > 0)
    return std::string(row->columns.short_name) + value;
  const std::string last = key.substr(key.rfind('.') + 1);
  return value == "true" ? last : value == "false" ? "no " + last : last + " " + value;
}

std::vector<std::string> distinct_names(const std::vector<NamedRun>& runs) {
  SettingsTable table;
  std::vector<SettingsTable::Named> named;
  for (const NamedRun& run : runs) named.push_back({run.id, run.name, table.add(run.settings)});
  return table.distinct_names(named);
}

std::string distinct_name(const Store& store, const RunId& run) {
  const auto row = store.find(run);
  if (!row) return run;
  std::vector<NamedRun> equal;
  for (const RunRow& other : store.list())
    if (other.name == row->name && other.id != run) equal.push_back({.id = other.id, .name = other.name});
  if (equal.empty()) return row->name;
  equal.push_back({.id = run, .name = row->name});
  if (equal.size() <= kMostCompared)  // else by the id
    for (NamedRun& one : equal) one.settings = settings_of(store.experiment(one.id));
  return distinct_names(equal).back();
}

}  // namespace mw::store
