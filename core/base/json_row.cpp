// SPDX-License-Identifier: Apache-2.0
#include "core/base/json_row.h"

#include <cmath>

#include "core/base/error.h"

namespace mw {

Sources read_sources(const Json& document, const std::string& file) {
  Sources sources;
  if (!document.is_object() || !document.contains("sources")) return sources;
  const Json& list = document.at("sources");
  const JsonRow row(list, {sources, file, "sources", "SOURCES"});
  for (const auto& [key, value] : list.items()) sources[key] = row.as_text(value, key);
  return sources;
}

JsonRow::JsonRow(const Json& json, RowLocation at) : json_(json), at_(std::move(at)) {
  if (!json.is_object()) bad("", "the row is not an object", json_excerpt(json), "{\"id\": ...}");
}

void JsonRow::bad(const std::string& key, const std::string& message, const std::string& found,
                  const std::string& expected) const {
  throw Error({.id = at_.id,
               .message = message,
               .file = at_.file,
               .place = at_.row + (key.empty() ? "" : "." + key),
               .found = found,
               .expected = expected,
               .fix = "correct the row or remove it"});
}

RowLocation JsonRow::inside(const std::string& key) const {
  return {at_.sources, at_.file, at_.row + "." + key, at_.id};
}

void JsonRow::finish() const {
  for (const auto& [key, value] : json_.items())
    if (!read_.contains(key)) bad(key, "unknown key", key, nearest_names_text(key, {read_.begin(), read_.end()}));
}

const Json* JsonRow::optional(const std::string& key) {
  read_.insert(key);
  return json_.contains(key) ? &json_.at(key) : nullptr;
}

const Json& JsonRow::required(const std::string& key) {
  const Json* value = optional(key);
  if (!value) bad(key, "a required key is missing", "", "\"" + key + "\"");
  return *value;
}

const Json& JsonRow::list(const std::string& key) {
  const Json& value = required(key);
  if (!value.is_array() || value.empty()) bad(key, "wrong type", json_excerpt(value), "a non-empty list");
  return value;
}

std::string JsonRow::text(const std::string& key) {
  return as_text(required(key), key);
}
std::string JsonRow::text_or(const std::string& key, const std::string& otherwise) {
  const Json* value = optional(key);
  return value ? as_text(*value, key) : otherwise;
}
double JsonRow::number(const std::string& key) {
  return as_number(required(key), key);
}
double JsonRow::number_or(const std::string& key, double otherwise) {
  const Json* value = optional(key);
  return value ? as_number(*value, key) : otherwise;
}
bool JsonRow::flag(const std::string& key, bool otherwise) {
  const Json* value = optional(key);
  if (value && !value->is_boolean()) bad(key, "wrong type", json_excerpt(*value), "true or false");
  return value ? value->get<bool>() : otherwise;
}
std::string JsonRow::source() {
  return as_source(required("source"), "source");
}

std::string JsonRow::as_text(const Json& value, const std::string& key) const {
  if (!value.is_string() || value.get_ref<const std::string&>().empty())
    bad(key, "wrong type", json_excerpt(value), "a non-empty string");
  return value.get<std::string>();
}

double JsonRow::as_number(const Json& value, const std::string& key) const {
  if (!value.is_number() || !std::isfinite(value.get<double>()) || value <= 0)
    bad(key, "wrong type", json_excerpt(value), "a positive number");
  return value.get<double>();
}

std::string JsonRow::as_source(const Json& value, const std::string& key) const {
  std::string joined;
  for (const Json& part : value.is_array() ? value : Json::array({value})) {
    const std::string name = as_text(part, key);
    const auto known = at_.sources.find(name);
    joined += (joined.empty() ? "" : "; ") + (known == at_.sources.end() ? name : known->second);
  }
  if (joined.empty()) bad(key, "the source is missing", json_excerpt(value), "where the figures come from");
  return joined;
}

}  // namespace mw
