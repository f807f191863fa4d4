// SPDX-License-Identifier: Apache-2.0
#include "core/plan/experiment/carried_assumptions.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/experiment/parameters.h"
#include "core/plan/prediction/predict.h"

namespace mw::plan {
namespace {

std::vector<std::string> keys_of(experiment::Kind kind) {
  std::vector<std::string> keys;
  for (const experiment::Parameter& p : experiment::parameters())
    if ((p.columns.carried & experiment::kind_bit(kind)) != 0) keys.push_back(p.key);
  return keys;
}

std::vector<ChangedValue> differences(const std::vector<std::string>& keys, const experiment::Experiment& a,
                                      const experiment::Experiment& b) {
  std::vector<ChangedValue> out;
  for (const std::string& key : keys)
    if (const Json before = a.value(key), after = b.value(key); before != after) out.push_back({key, before, after});
  return out;
}

// The keys of `document` that the move set or reset.
std::vector<ChangedValue> changes(const experiment::Experiment& document, const experiment::Experiment& moved) {
  std::vector<ChangedValue> out;
  for (const experiment::Parameter& p : experiment::parameters()) {
    if (p.key.ends_with(".*") || p.key == "target.id" || !document.has(p.key)) continue;
    const Json before = document.value(p.key), after = moved.value(p.key);
    if (before != after) out.push_back({p.key, before, after});
  }
  return out;
}

std::optional<CarriedAssumptions::Other> other_experiment(const experiment::Experiment& moved,
                                                          const PlanContext& context) {
  constexpr int kMostFiles = 64;
  const experiment::BoundExperiment& config = moved.valid_values();
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(moved.folder(), error))
    if (entry.path().extension() == ".json" && files.size() < kMostFiles) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) {
    try {
      const experiment::Experiment e = experiment::Experiment::load(file);
      const experiment::BoundExperiment& there = e.config();
      if (there.kind != config.kind || there.target.id != config.target.id || there.model.id != config.model.id ||
          there.model.path != config.model.path)
        continue;
      return CarriedAssumptions::Other{.file = file,
                                       .seconds = predict(plan_request(e, context)).step.seconds.value,
                                       .differs = differences(keys_of(config.kind), moved, e)};
    } catch (const Error&) {
      continue;  // not an experiment, or one that cannot be planned
    }
  }
  return std::nullopt;
}

std::string setting_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string changed_text(const std::vector<ChangedValue>& all) {
  return joined(all, ", ", [](const ChangedValue& c) {
    return c.key + " " + setting_text(c.before) + " to " + setting_text(c.after);
  });
}

Json changed_json(const std::vector<ChangedValue>& all) {
  Json out = Json::array();
  for (const ChangedValue& c : all) out.push_back({{"key", c.key}, {"before", c.before}, {"after", c.after}});
  return out;
}

}  // namespace

CarriedAssumptions carried_assumptions(const experiment::Experiment& document, const experiment::Experiment& moved,
                                       const PlanContext& context) {
  const experiment::BoundExperiment& config = moved.valid_values();
  CarriedAssumptions out{.from = document.valid_values().target.id,
                         .to = config.target.id,
                         .kept = {},
                         .changed = changes(document, moved),
                         .other = {}};
  for (const std::string& key : keys_of(config.kind)) {
    const Json value = moved.value(key);
    if (document.has(key) && document.value(key) == value) out.kept.push_back({key, value});
  }
  if (!moved.folder().empty()) out.other = other_experiment(moved, context);
  return out;
}

Json to_json(const CarriedAssumptions& c) {
  Json kept = Json::object(), other = nullptr;
  for (const CarriedValue& v : c.kept) kept[v.key] = v.value;
  if (c.other)
    other = {{"file", c.other->file.string()},
             {"seconds_per_step", c.other->seconds},
             {"differs", changed_json(c.other->differs)}};
  return {{"from", c.from}, {"to", c.to}, {"kept", kept}, {"changed", changed_json(c.changed)}, {"other", other}};
}

std::string to_text(const CarriedAssumptions& c) {
  const auto value = [](const CarriedValue& v) { return v.key + " " + setting_text(v.value); };
  std::string out = "assumptions that come along from " + c.from + ": " +
                    (c.kept.empty() ? std::string("none") : joined(c.kept, ", ", value)) + "\n";
  if (!c.changed.empty()) out += "  changed for " + c.to + ": " + changed_text(c.changed) + "\n";
  if (!c.other) return out;
  out += "  " + c.other->file.filename().string() + " is written for " + c.to + ": " +
         number_text(c.other->seconds, 3) + " s a step";
  if (!c.other->differs.empty()) out += " with " + changed_text(c.other->differs);
  return out + " (meshwright plan " + c.other->file.string() + ")\n";
}

}  // namespace mw::plan
