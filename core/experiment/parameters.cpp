// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/parameters.h"

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "core/base/units.h"
#include "core/options/stack_options.h"

namespace mw::experiment {

using enum ParamType;

const Parameter* find_parameter(std::string_view key) {
  for (const Parameter& p : parameters()) {
    if (p.key == key) return &p;
    if (!p.key.ends_with(".*")) continue;
    const std::string_view stem = std::string_view(p.key).substr(0, p.key.size() - 1);
    if (key.starts_with(stem) && key.size() > stem.size() && key.find('.', stem.size()) == std::string_view::npos)
      return &p;
  }
  return nullptr;
}

std::vector<std::string_view> PeerNames::all() const {
  std::vector<std::string_view> out;
  for (const std::string_view name : {trl, axolotl, llama_factory, torchtune, vllm})
    if (!name.empty() && std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  return out;
}

const Parameter* find_peer_name(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
  for (const Parameter& p : parameters())
    for (const std::string_view other : p.columns.names.all())
      if (other == name) return &p;
  return nullptr;
}

namespace {

// The setting whose name behind its section is `name`, as typed or with dashes; null if none or several have it.
const Parameter* find_last_part(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
  std::string last(name);
  std::replace(last.begin(), last.end(), '-', '_');
  const Parameter* found = nullptr;
  for (const Parameter& p : parameters()) {
    if (p.key.find('.') == std::string::npos || p.key.substr(p.key.rfind('.') + 1) != last) continue;
    if (found) return nullptr;
    found = &p;
  }
  return found;
}

}  // namespace

std::string nearest_key(std::string_view key) {
  static const auto kAll = [] {
    std::vector<std::string> keys, names;  // names: of the top level, sections and single keys
    for (const Parameter& p : parameters()) {
      keys.push_back(p.key);
      names.push_back(p.key.substr(0, p.key.find('.')));
    }
    return std::pair(keys, names);
  }();
  const std::string_view last = key.substr(key.rfind('.') + 1);
  if (const Parameter* known = find_peer_name(last)) return known->key;
  if (const Parameter* known = key == last ? find_last_part(key) : nullptr) return known->key;
  return nearest_names_text(key, key.find('.') == std::string_view::npos ? kAll.second : kAll.first, 1);
}

namespace {

std::string numbers_text(const Parameter& p) {
  return number_text(p.min.value_or(0), 16) + " to " + number_text(p.max.value_or(0), 16);
}

}  // namespace

std::string range_text(const Parameter& p) {
  switch (p.type) {
    case integer:
    case number:
      return numbers_text(p) + (p.unit.empty() ? "" : " " + p.unit);
    case choice:
      return "one of " + joined(p.choices);
    case list:
      return p.choices.empty() ? "a list" : "a list of " + joined(p.choices);
    case flag:
      return "true or false";
    case path:
      return "a path";
    case map:
      return p.unit == kFolders ? "an object of name to folder" : "an object of pattern to number";
    case text:
      return "text";
  }
  return {};
}

namespace {

bool type_fits(const Parameter& p, const Json& v) {
  switch (p.type) {
    case integer:
      return v.is_number_integer() || (v.is_number_float() && std::floor(v.get<double>()) == v.get<double>() &&
                                       std::abs(v.get<double>()) < 9e15);
    case number:
      return v.is_number();
    case flag:
      return v.is_boolean();
    case list:
      return v.is_array() &&
             std::all_of(v.begin(), v.end(), [](const Json& e) { return e.is_string() || e.is_number(); });
    case map:
      return v.is_object() && std::all_of(v.begin(), v.end(), [&](const Json& e) {
               return p.unit == kFolders ? e.is_string() : e.is_number();
             });
    case text:
    case path:
    case choice:
      return v.is_string();
  }
  return false;
}

std::string fix_text(const Parameter& p) {
  switch (p.type) {
    case integer:
      return "enter a whole number from " + numbers_text(p);
    case number:
      return "enter a number from " + numbers_text(p);
    case choice:
      return "choose one of " + joined(p.choices);
    default:
      return "enter " + range_text(p);
  }
}

bool choice_fits(const Parameter& p, const Json& v) {
  const auto known = [&](const Json& e) {
    return std::find(p.choices.begin(), p.choices.end(), e.get<std::string>()) != p.choices.end();
  };
  if (p.choices.empty()) return true;
  if (p.type == choice) return known(v);
  if (p.type == list) return std::all_of(v.begin(), v.end(), [&](const Json& e) { return e.is_string() && known(e); });
  return true;
}

}  // namespace

std::optional<Problem> check_value(const Parameter& p, std::string_view key, const Json& v) {
  const auto problem = [&](const char* id, const char* message) {
    return Problem{.id = id,
                   .message = message,
                   .place = std::string(key),
                   .found = json_excerpt(v),
                   .expected = range_text(p),
                   .fix = fix_text(p)};
  };
  if (!type_fits(p, v)) return problem("TYPE", "wrong type");
  if (v.is_number()) {
    const double x = v.get<double>();
    if (!std::isfinite(x) || (p.min && x < *p.min) || (p.max && x > *p.max)) return problem("RANGE", "out of range");
  }
  if (!choice_fits(p, v)) return problem("CHOICE", "not one of the choices");
  return std::nullopt;
}

namespace {

std::optional<model::Stack> named_stack(const Experiment& experiment, std::string_view key) {
  const Json* set = experiment.find(key);
  return set && set->is_string() ? parse<model::Stack>(set->get<std::string>()) : std::nullopt;
}

std::vector<std::string_view> not_offered(const Experiment& experiment, model::Stack stack) {
  const options::StackOptions offered = options::stack_options(stack);
  std::vector<std::string_view> out;
  for (const Parameter& p : parameters())
    if (p.columns.offered && p.key.starts_with("serve.") == model::serves(stack) && !p.columns.offered(offered) &&
        !experiment.find(p.key))
      out.push_back(p.key);
  return out;
}

bool equals(const Experiment& experiment, std::string_view key, std::string_view value) {
  const Json* set = experiment.find(key);
  return set && *set == Json(value);
}

}  // namespace

bool Relevance::concerns(const Parameter& parameter) const {
  if (std::find(not_offered.begin(), not_offered.end(), parameter.key) != not_offered.end()) return false;
  if (!adapters && kind == Kind::train && parameter.group == "LoRA") return false;
  const Readers& readers = *parameter.columns.readers;
  return ((planned ? readers.planned : readers.here) & kind_bit(kind)) != 0;
}

Relevance relevance(const Experiment& experiment, Kind kind, std::optional<model::Stack> stack) {
  const Json* target = experiment.find("target.id");
  Relevance out{.kind = kind,
                .planned = target && target->is_string() && *target != Json("cpu"),
                .adapters = !equals(experiment, "train.method", "full")};
  if (const auto named = named_stack(experiment, kind == Kind::serve ? "serve.stack" : "train.stack")) stack = named;
  if (out.planned && stack) out.not_offered = not_offered(experiment, *stack);
  return out;
}

}  // namespace mw::experiment
