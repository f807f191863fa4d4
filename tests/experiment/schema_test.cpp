// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/experiment/schema.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "core/base/files.h"
#include "core/experiment/parameters.h"

namespace mw::experiment {
namespace {
namespace fs = std::filesystem;

// The schema of a dotted key; null if there is none.
Json schema_of(const Json& schema, const std::string& key) {
  Json found = schema;
  std::istringstream names(key);
  for (std::string name; std::getline(names, name, '.');) {
    if (found.contains("properties") && found["properties"].contains(name))
      found = Json(found["properties"][name]);
    else if (found.contains("additionalProperties"))
      found = Json(found["additionalProperties"]);
    else
      return {};
  }
  return found;
}

TEST(ExperimentSchema, DescribesEveryParameter) {
  const Json schema = experiment_schema();
  for (const Parameter& p : parameters()) {
    const Json found = schema_of(schema, p.key.ends_with(".*") ? p.key.substr(0, p.key.size() - 1) + "fsdp" : p.key);
    ASSERT_TRUE(found.is_object()) << p.key;
    EXPECT_EQ(found["description"], p.help) << p.key;
    EXPECT_EQ(found.contains("minimum"), p.min.has_value()) << p.key;
    if (p.type == ParamType::choice) {
      EXPECT_EQ(found["enum"], Json(p.choices)) << p.key;
    }
    if (p.type == ParamType::integer) {
      EXPECT_EQ(found["type"], "integer") << p.key;
    }
    if (p.max && found.contains("default")) {
      EXPECT_LE(found["default"].get<double>(), *p.max) << p.key;
    }
  }
  EXPECT_EQ(schema_of(schema, "train.no_such_key"), Json());
}

void expect_described(const Json& schema, const Json& node, const std::string& key) {
  const Json found = key.empty() ? schema : schema_of(schema, key);
  ASSERT_TRUE(found.is_object()) << key;
  if (!node.is_object()) return;
  for (const auto& [name, value] : node.items()) expect_described(schema, value, key.empty() ? name : key + "." + name);
}

TEST(ExperimentSchema, DescribesTheShippedExamples) {
  const Json schema = experiment_schema();
  int experiments = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(MW_RESOURCES) / "examples")) {
    const Json document = read_json(entry.path());
    if (!document.contains("schema")) continue;  // a list of lengths
    ++experiments;
    expect_described(schema, document, "");
  }
  EXPECT_GT(experiments, 5);
}

}  // namespace
}  // namespace mw::experiment
