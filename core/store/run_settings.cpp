// SPDX-License-Identifier: Apache-2.0
#include "core/store/run_settings.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "core/base/units.h"
#include "core/experiment/bind.h"
#include "core/experiment/parameters.h"

namespace mw::store {
namespace {

// The settings that usually tell runs apart, the most telling first, and what precedes their short text.
constexpr std::pair<std::string_view, std::string_view> kTelling[]{
    {"target.id", ""},
    {"mesh", ""},
    {"model.id", ""},
    {"train.method", ""},
    {"lora.rank", "r"},
    {"lora.alpha", "a"},
    {"train.learning_rate", "lr "},
    {"train.steps", "steps "},
    {"train.dtype", ""},
    {"train.seed", "seed "},
    {"data.max_len", "len "},
    {"serve.kv_dtype", "KV "},
};
constexpr size_t kMostKeys = 3;  // of a name

size_t rank_of(std::string_view key) {
  const auto* const at =
      std::find_if(std::begin(kTelling), std::end(kTelling), [&](const auto& t) { return t.first == key; });
  return static_cast<size_t>(at - std::begin(kTelling));
}

std::string label_of(const std::string& key) {
  const experiment::Parameter* parameter = experiment::find_parameter(key);
  return key == "mesh" ? "Mesh" : parameter ? parameter->label : key;
}

const std::string& value_of(const RunSettings& settings, const std::string& key) {
  static const std::string kNone;
  const auto at = settings.find(key);
  return at == settings.end() ? kNone : at->second;
}

std::vector<std::string> keys_of(const std::vector<const NamedRun*>& runs) {
  std::set<std::string> all;
  for (const NamedRun* run : runs)
    for (const auto& [key, value] : run->settings) all.insert(key);
  std::vector<std::string> keys(all.begin(), all.end());
  std::stable_sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return rank_of(a) < rank_of(b); });
  return keys;
}

// Names the runs of one name by the settings of which each divides them further.
void tell_apart(const std::vector<NamedRun>& runs, const std::vector<size_t>& equal, std::vector<std::string>& names) {
  std::vector<const NamedRun*> group;
  for (const size_t i : equal) group.push_back(&runs[i]);
  size_t distinct = 1, used = 0;
  for (const std::string& key : keys_of(group)) {
    if (distinct == equal.size() || used == kMostKeys) break;
    std::vector<std::string> longer;
    for (const size_t i : equal) {
      const std::string text = brief_setting(key, value_of(runs[i].settings, key));
      longer.push_back(names[i] + (text.empty() ? "" : (used > 0 ? ", " : " ") + text));
    }
    const size_t now = std::set<std::string>(longer.begin(), longer.end()).size();
    if (now <= distinct) continue;
    distinct = now, ++used;
    for (size_t g = 0; g < equal.size(); ++g) names[equal[g]] = longer[g];
  }
  if (distinct == equal.size()) return;
  const std::vector<std::string> before = names;
  for (const size_t i : equal)
    if (std::count_if(equal.begin(), equal.end(), [&](size_t j) { return before[j] == before[i]; }) > 1)
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
  mesh::Mesh mesh = experiment::bind_valid(experiment).mesh;
  std::erase_if(mesh.axes, [](const mesh::MeshAxis& axis) { return axis.size == 1; });  // changes nothing
  out["mesh"] = mesh.axes.empty() ? "one device" : mesh::to_text(mesh);
  return out;
}

std::vector<SettingChange> setting_changes(const RunSettings& before, const RunSettings& after) {
  const NamedRun a{.settings = before}, b{.settings = after};
  std::vector<SettingChange> out;
  for (const std::string& key : keys_of({&a, &b}))
    if (const std::string& was = value_of(before, key), &now = value_of(after, key); was != now)
      out.push_back({key, label_of(key), was, now});
  return out;
}

std::string brief_setting(const std::string& key, const std::string& value) {
  if (value.empty()) return {};
  const size_t rank = rank_of(key);
  if (rank < std::size(kTelling)) return std::string(kTelling[rank].second) + value;
  const std::string last = key.substr(key.rfind('.') + 1);
  return value == "true" ? last : value == "false" ? "no " + last : last + " " + value;
}

std::vector<std::string> distinct_names(const std::vector<NamedRun>& runs) {
  std::vector<std::string> names;
  std::map<std::string, std::vector<size_t>> by_name;
  for (size_t i = 0; i < runs.size(); ++i) {
    names.push_back(runs[i].name.empty() ? runs[i].id : runs[i].name);
    by_name[names.back()].push_back(i);
  }
  for (const auto& [name, equal] : by_name)
    if (equal.size() > 1) tell_apart(runs, equal, names);
  return names;
}

std::string distinct_name(const Store& store, const RunId& run) {
  std::vector<NamedRun> equal;
  const auto row = store.find(run);
  if (!row) return run;
  for (const RunRow& other : store.list())
    if (other.name == row->name && other.id != run)
      equal.push_back({other.id, other.name, settings_of(store.experiment(other.id))});
  if (equal.empty()) return row->name;
  equal.push_back({run, row->name, settings_of(store.experiment(run))});
  return distinct_names(equal).back();
}

}  // namespace mw::store
