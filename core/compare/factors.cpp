// SPDX-License-Identifier: Apache-2.0
#include "core/compare/factors.h"

#include <utility>

#include "core/experiment/bind.h"
#include "core/experiment/parameters.h"

namespace mw::compare {
namespace {

struct Factor {
  std::string_view name;
  std::vector<std::string> keys;  // "mesh" and "sweep" include all keys below them
};
// The settings with a factor in the parameter table, in its order of factors, then the rest of the load.
const std::vector<Factor>& factors() {
  static const std::vector<Factor> kFactors = [] {
    std::vector<Factor> out;
    for (const std::string_view name : {"chips and software", "model", "KV type", "window caches", "replicas",
                                        "prefix cache", "chunked prefill", "server limits"}) {
      Factor& factor = out.emplace_back(Factor{name, {}});
      for (const experiment::Parameter& p : experiment::parameters())
        if (p.columns.factor == name) factor.keys.push_back(p.key == "mesh.*" ? "mesh" : p.key);
    }
    out.push_back({kLoadFactor, {"sweep"}});
    return out;
  }();
  return kFactors;
}

std::string text_of(const experiment::Experiment& e, std::string_view key) {
  if (key == "mesh") {
    std::string text;
    for (const mesh::MeshAxis& axis : e.valid_values().mesh.axes)
      text += (text.empty() ? "" : " x ") + axis.name + " " + std::to_string(axis.size);
    return text;
  }
  if (key.find('.') == std::string_view::npos) {
    const Json* part = e.find(key);
    return part ? part->dump() : "";
  }
  const Json value = e.value(key);
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// Copies the keys of a factor from the other document, including missing keys.
experiment::Experiment switched(experiment::Experiment e, const experiment::Experiment& other, const Factor& factor) {
  for (const std::string& key : factor.keys) {
    e.erase(key);
    if (const Json* value = other.find(key)) e.set_value(key, *value);
  }
  return e;
}

std::string changes(const experiment::Experiment& before, const experiment::Experiment& after, const Factor& factor) {
  std::string text;
  for (const std::string& key : factor.keys) {
    const std::string a = text_of(before, key), b = text_of(after, key);
    if (a == b) continue;
    const bool is_long = a.size() + b.size() > 80;
    text += (text.empty() ? "" : ", ") + key + (is_long ? "" : ": " + a + " -> " + b);
  }
  return text;
}

}  // namespace

std::vector<FactorChange> factor_changes(const experiment::Experiment& baseline, const experiment::Experiment& other) {
  std::vector<FactorChange> out;
  experiment::Experiment now = baseline;
  for (const Factor& factor : factors()) {
    experiment::Experiment next = switched(now, other, factor);
    if (next == now) continue;
    if (const std::string text = changes(now, next, factor); !text.empty())
      out.push_back({std::string(factor.name), text, next});
    now = std::move(next);
  }
  return out;
}

}  // namespace mw::compare
