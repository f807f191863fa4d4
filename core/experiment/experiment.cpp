// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/experiment.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <mutex>

#include "core/base/files.h"
#include "core/base/units.h"
#include "core/experiment/bound_experiment.h"
#include "core/experiment/parameters.h"

namespace mw::experiment {
namespace fs = std::filesystem;
namespace {

std::vector<std::string> split(std::string_view key) {
  std::vector<std::string> parts;
  for (size_t start = 0; start <= key.size();) {
    const size_t dot = std::min(key.find('.', start), key.size());
    parts.emplace_back(key.substr(start, dot - start));
    start = dot + 1;
  }
  return parts;
}

const Json* lookup(const Json& document, std::string_view key) {
  const Json* at = &document;
  for (const auto& part : split(key)) {
    if (!at->is_object() || !at->contains(part)) return nullptr;
    at = &at->at(part);
  }
  return at;
}

Problem problem(std::string id, std::string_view key, std::string message, std::string found, std::string expected,
                std::string fix = {}) {
  return {.id = std::move(id),
          .message = std::move(message),
          .place = std::string(key),
          .found = std::move(found),
          .expected = std::move(expected),
          .fix = std::move(fix)};
}

const Parameter& require(std::string_view key) {
  if (const Parameter* p = find_parameter(key)) return *p;
  const std::string near = nearest_key(key);
  throw Error(problem("KEY", key, "unknown experiment key", std::string(key), "a key of the parameter table",
                      "did you mean " + near + "?"));
}

template <class T>
bool parse_number(const std::string& text, T& out) {
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), out);
  return ec == std::errc{} && end == text.data() + text.size();
}

// Ignores commas within parentheses, which are part of an element: "q_einsum = (tp, fsdp, -)".
size_t next_comma(const std::string& text, size_t from) {
  int depth = 0;
  for (size_t i = from; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') depth = std::max(0, depth - 1);
    if (text[i] == ',' && depth == 0) return i;
  }
  return text.size();
}

Json convert(const Parameter& p, std::string_view key, const std::string& text) {
  const auto fail = [&] { return Error(problem("SET", key, "invalid value for this key", text, range_text(p))); };
  switch (p.type) {
    case ParamType::integer: {
      long long i = 0;
      double d = 0;
      if (parse_number(text, i)) return i;
      if (parse_number(text, d) && std::floor(d) == d && std::abs(d) < 9e15) return static_cast<long long>(d);
      throw fail();
    }
    case ParamType::number: {
      double d = 0;
      if (!parse_number(text, d)) throw fail();
      if (!std::isfinite(d))
        throw Error(problem("SET", key, "got '" + text + "'; expected a number from " + range_text(p), "", ""));
      return d;
    }
    case ParamType::flag:
      if (text == "true" || text == "1" || text == "yes" || text == "on") return true;
      if (text == "false" || text == "0" || text == "no" || text == "off") return false;
      throw fail();
    case ParamType::list: {
      if (text.starts_with("[")) return parse_json(text, std::string(key));
      Json all = Json::array();
      for (size_t start = 0; start < text.size();) {
        const size_t comma = next_comma(text, start);
        all.push_back(text.substr(start, comma - start));
        start = comma + 1;
      }
      return all;
    }
    case ParamType::map:
      return parse_json(text, std::string(key));
    case ParamType::path:
      return text.empty() ? text : fs::absolute(text).lexically_normal().string();
    case ParamType::text:
    case ParamType::choice:
      return text;
  }
  return text;
}

// Reports every leaf of the document that is neither a parameter nor a section of parameters.
void unknown_keys(const Json& node, const std::string& prefix, std::vector<Problem>& out) {
  for (const auto& [name, value] : node.items()) {
    const std::string key = prefix.empty() ? name : prefix + "." + name;
    if (key == "schema" || find_parameter(key)) continue;
    const std::string stem = key + ".";
    const bool container = std::any_of(parameters().begin(), parameters().end(),
                                       [&](const Parameter& p) { return p.key.starts_with(stem); });
    if (container && value.is_object()) {
      unknown_keys(value, key, out);
      continue;
    }
    Problem p =
        problem("KEY", key, container ? "this section is not an object" : "unknown key; it is kept but has no effect",
                json_excerpt(value), container ? "an object" : "a key of the parameter table",
                container ? "" : "did you mean " + nearest_key(key) + "?");
    p.severity = container ? Severity::error : Severity::warning;
    out.push_back(std::move(p));
  }
}

// Warns if the document sets both train.steps and train.epochs: a run uses only train.epochs.
void unread_steps(const Json& document, std::vector<Problem>& out) {
  const Json *steps = lookup(document, "train.steps"), *epochs = lookup(document, "train.epochs");
  if (!steps || !epochs || !epochs->is_number() || epochs->get<double>() <= 0) return;
  Problem p = problem("EPOCHS", "train.steps", "train.steps is ignored because train.epochs is set",
                      json_excerpt(*steps), "only one of them", "remove train.steps, or set train.epochs to 0");
  p.severity = Severity::warning;
  out.push_back(std::move(p));
}

void check_schema(const Json& document, const std::string& file) {
  if (!document.is_object())
    throw Error("EXPERIMENT", "the experiment is not a JSON object",
                {.file = file, .found = json_excerpt(document), .expected = "{...}"});
  if (!document.contains("schema")) return;
  const Json& schema = document.at("schema");
  if (!schema.is_number_integer())
    throw Error("EXPERIMENT", "the schema version is not an integer",
                {.file = file, .place = "schema", .found = json_excerpt(schema), .expected = std::to_string(kSchema)});
  if (schema.get<long long>() > kSchema || schema.get<long long>() < 1)
    throw Error("EXPERIMENT-VERSION", "the experiment was written by a newer Meshwright",
                {.file = file,
                 .place = "schema",
                 .found = json_excerpt(schema),
                 .expected = "1 to " + std::to_string(kSchema),
                 .fix = "update Meshwright, or save the experiment with this version"});
}

}  // namespace

// Copies share it, so that one of them reads for all.
struct Experiment::Bound {
  std::once_flag once;
  std::vector<Problem> problems;
  BoundExperiment values;
};

Experiment::Experiment() : document_(Json{{"schema", kSchema}}), bound_(std::make_shared<Bound>()) {}

Experiment Experiment::load(const fs::path& file) {
  Json document = read_json(file);
  check_schema(document, file.string());
  return from_json(std::move(document), fs::absolute(file).parent_path());
}

Experiment Experiment::from_json(Json document, const fs::path& folder) {
  check_schema(document, "experiment");
  Experiment e;
  if (!document.contains("schema")) {
    Json with_schema = Json{{"schema", kSchema}};
    with_schema.update(document);
    document = std::move(with_schema);
  }
  e.document_ = std::move(document);
  e.folder_ = folder;
  return e;
}

std::string Experiment::text() const {
  return dump_utf8(document_, 2) + "\n";
}

void Experiment::save(const fs::path& file) const {
  write_file_atomically(file, text());
}

bool Experiment::has(std::string_view key) const {
  return find(key) != nullptr;
}

const Json* Experiment::find(std::string_view key) const {
  return lookup(document_, key);
}

Json Experiment::value(std::string_view key) const {
  const Parameter& p = require(key);
  const Json* v = lookup(document_, key);
  if (!v) return p.fallback;
  if (const auto wrong = check_value(p, key, *v); wrong && wrong->id == "TYPE") throw Error(*wrong);
  return *v;
}

fs::path Experiment::path(std::string_view key) const {
  fs::path p = value(key).get<std::string>();
  if (p.empty() || p.is_absolute()) return p;
  return (folder_ / p).lexically_normal();
}

void Experiment::set(std::string_view key, const std::string& text) {
  const Parameter& p = require(key);
  Json v = convert(p, key, text);
  if (const auto wrong = check_value(p, key, v)) throw Error(*wrong);
  set_value(key, std::move(v));
}

void Experiment::set_value(std::string_view key, Json value) {
  bound_ = std::make_shared<Bound>();
  Json* at = &document_;
  for (const auto& part : split(key)) {
    if (!at->is_object()) *at = Json::object();
    at = &(*at)[part];
  }
  *at = std::move(value);
}

void Experiment::erase(std::string_view key) {
  bound_ = std::make_shared<Bound>();
  std::vector<std::pair<Json*, std::string>> trail;
  Json* at = &document_;
  for (const auto& part : split(key)) {
    if (!at->is_object() || !at->contains(part)) return;
    trail.emplace_back(at, part);
    at = &(*at)[part];
  }
  for (auto it = trail.rbegin(); it != trail.rend(); ++it) {  // also erases sections that become empty
    it->first->erase(it->second);
    if (!it->first->empty()) break;
  }
}

namespace {

std::vector<Problem> problems_of(const Json& document) {
  std::vector<Problem> problems;
  unknown_keys(document, "", problems);
  const auto check_at = [&](const Parameter& p, const std::string& key) {
    const Json* v = lookup(document, key);
    if (!v) return;
    if (auto wrong = check_value(p, key, *v)) problems.push_back(std::move(*wrong));
  };
  for (const Parameter& p : parameters()) {
    if (!p.key.ends_with(".*")) {
      check_at(p, p.key);
      continue;
    }
    const std::string stem = p.key.substr(0, p.key.size() - 2);
    if (const Json* section = lookup(document, stem); section && section->is_object())
      for (const auto& [axis, size] : section->items()) check_at(p, stem + "." + axis);
  }
  unread_steps(document, problems);
  return problems;
}

template <class Concerns>
void throw_first_error(const std::vector<Problem>& problems, Concerns concerns) {
  for (const Problem& p : problems)
    if (p.severity == Severity::error && concerns(p)) throw Error(p);
}

}  // namespace

const Experiment::Bound& Experiment::bound() const {
  std::call_once(bound_->once, [&] {
    bound_->problems = problems_of(document_);
    bound_->values = bind(*this);
  });
  return *bound_;
}

const std::vector<Problem>& Experiment::validate() const& {
  return bound().problems;
}

const BoundExperiment& Experiment::valid_values() const& {
  return bound().values;
}

const BoundExperiment& Experiment::config() const& {
  throw_first_error(validate(), [](const Problem&) { return true; });
  return bound().values;
}

const BoundExperiment& Experiment::data_config() const& {
  throw_first_error(validate(), [](const Problem& p) {
    return p.place.starts_with("data.") || p.place == "train.batch" || p.place == "train.seed";
  });
  return bound().values;
}

// The overloads for a temporary return copies, because its values end with it.
std::vector<Problem> Experiment::validate() && {
  return std::as_const(*this).validate();
}
BoundExperiment Experiment::config() && {
  return std::as_const(*this).config();
}
BoundExperiment Experiment::valid_values() && {
  return std::as_const(*this).valid_values();
}
BoundExperiment Experiment::data_config() && {
  return std::as_const(*this).data_config();
}

namespace {

// train.steps and train.epochs both set the length of a run; the one set last wins.
std::vector<std::string> resolve_run_length(Experiment& experiment, bool steps_given, bool epochs_given) {
  const double value = experiment.value("train.epochs").get<double>();
  if (!steps_given || value <= 0) return {};
  const std::string epochs = number_text(value);
  if (epochs_given) return {"train.epochs=" + epochs + " is used; train.steps is ignored"};
  experiment.erase("train.epochs");
  return {"train.steps is set; train.epochs=" + epochs + " of the experiment is cleared"};
}

// A measurement is of the model, the data, the training and the machine that the document had.
std::vector<std::string> drop_measurement(const Experiment& before, Experiment& experiment,
                                          const std::vector<std::string>& set_keys) {
  constexpr std::array<const char*, 7> kMeasured{"model.", "target.", "mesh.", "sharding.", "lora.", "data.", "train."};
  const auto changed = std::find_if(set_keys.begin(), set_keys.end(), [&](const std::string& key) {
    const auto is_of = [&](const char* section) { return key.starts_with(section); };
    return std::any_of(kMeasured.begin(), kMeasured.end(), is_of) && before.value(key) != experiment.value(key);
  });
  if (changed == set_keys.end()) return {};
  std::string dropped;
  for (const std::string key :
       {"measured.seconds_per_step", "measured.hours", "measured.max_lens", "measured.source"}) {
    if (!before.has(key) || std::find(set_keys.begin(), set_keys.end(), key) != set_keys.end()) continue;
    experiment.erase(key);
    dropped += (dropped.empty() ? "" : ", ") + key;
  }
  if (dropped.empty()) return {};
  return {dropped + " of the experiment: cleared, because " + *changed + " differs from what was measured"};
}

}  // namespace

std::vector<std::string> apply_sets(Experiment& experiment, const std::vector<std::string>& sets) {
  const Experiment before = experiment;
  std::vector<std::string> keys;
  for (const std::string& s : sets) {
    const size_t equals = s.find('=');
    if (equals == std::string::npos || equals == 0)
      throw Error(problem("SET", s, "--set is not of the form key=value", s, "for example train.steps=20"));
    keys.push_back(s.substr(0, equals));
    experiment.set(keys.back(), s.substr(equals + 1));
  }
  const auto is_set = [&](const char* key) { return std::find(keys.begin(), keys.end(), key) != keys.end(); };
  std::vector<std::string> notes = resolve_run_length(experiment, is_set("train.steps"), is_set("train.epochs"));
  for (std::string& note : drop_measurement(before, experiment, keys)) notes.push_back(std::move(note));
  return notes;
}

}  // namespace mw::experiment
