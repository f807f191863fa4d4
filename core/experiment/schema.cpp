// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/schema.h"

#include "core/experiment/experiment.h"
#include "core/experiment/parameters.h"

namespace mw::experiment {
namespace {

Json number_schema(const Parameter& p, const char* type) {
  Json schema{{"type", type}};
  if (p.min) schema["minimum"] = p.type == ParamType::integer ? Json(static_cast<std::int64_t>(*p.min)) : Json(*p.min);
  if (p.max) schema["maximum"] = p.type == ParamType::integer ? Json(static_cast<std::int64_t>(*p.max)) : Json(*p.max);
  return schema;
}

Json type_schema(const Parameter& p) {
  switch (p.type) {
    case ParamType::integer:
      return number_schema(p, "integer");
    case ParamType::number:
      return number_schema(p, "number");
    case ParamType::text:
    case ParamType::path:
      return {{"type", "string"}};
    case ParamType::choice:
      return {{"enum", p.choices}};
    case ParamType::flag:
      return {{"type", "boolean"}};
    case ParamType::list:
      return {{"type", "array"},
              {"items", p.choices.empty() ? Json{{"type", {"string", "number"}}} : Json{{"enum", p.choices}}}};
    case ParamType::map:
      return {{"type", "object"}, {"additionalProperties", {{"type", p.unit == kFolders ? "string" : "number"}}}};
  }
  return {};
}

Json value_schema(const Parameter& p) {
  Json schema = type_schema(p);
  schema["title"] = p.label + (p.unit.empty() || p.unit == kFolders ? "" : " (" + p.unit + ")");
  schema["description"] = p.help;
  if (!p.key.ends_with(".*")) schema["default"] = p.fallback;
  return schema;
}

// The object that holds the last name of a dotted key, made where it is missing.
Json& section_of(Json& schema, const std::string& key, std::string& name) {
  Json* section = &schema;
  size_t from = 0;
  for (size_t dot; (dot = key.find('.', from)) != std::string::npos; from = dot + 1) {
    Json& inner = (*section)["properties"][key.substr(from, dot - from)];
    if (inner.is_null()) inner = {{"type", "object"}};
    section = &inner;
  }
  name = key.substr(from);
  return *section;
}

}  // namespace

Json experiment_schema() {
  Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
              {"title", "Meshwright experiment"},
              {"type", "object"},
              {"properties", {{"schema", {{"const", kSchema}, {"description", "Version of the format"}}}}}};
  for (const Parameter& p : parameters()) {
    std::string name;
    Json& section = section_of(schema, p.key, name);
    if (name == "*")
      section["additionalProperties"] = value_schema(p);
    else
      section["properties"][name] = value_schema(p);
  }
  return schema;
}

}  // namespace mw::experiment
