// SPDX-License-Identifier: Apache-2.0
// Each row is a point. Rows with the same text columns form a set.
#include "core/formats/results/bench_fields.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/base/text.h"

namespace mw::formats::bench {
namespace {

// A cell as JSON for bench_point.
Json value_of(const std::string& cell) {
  if (cell.empty()) return nullptr;
  if (cell == "inf" || cell == "Infinity") return "inf";
  const auto value = parse_number<double>(cell);
  return value ? Json(*value) : Json(cell);
}

// The field of each column. A mapped field takes precedence over a column with the name of the field.
std::vector<std::string> fields_of(const CsvTable& table, const CsvMapping& mapping) {
  std::vector<std::string> fields = table.header;
  for (const auto& [field, column] : mapping.columns) {
    for (size_t i = 0; i < fields.size(); ++i)
      if (table.header[i] == field) fields[i] = "column " + field;
    const auto found = std::find(table.header.begin(), table.header.end(), column);
    if (found == table.header.end())
      throw Error("BENCH", "the mapping uses a column that does not exist",
                  {.place = "line 1",
                   .found = column,
                   .expected = "one of " + nearest_names_text(column, table.header, table.header.size())});
    fields[static_cast<size_t>(found - table.header.begin())] = field;
  }
  return fields;
}

BenchSet facts_of(const Json& row) {
  BenchSet facts{.tool = text(row, "tool"), .model = text(row, "model"), .target = text(row, "target")};
  if (facts.tool.empty()) facts.tool = "CSV";
  if (facts.model.empty()) facts.model = text(row, "model_id");
  facts.name = text(row, "name");
  facts.chips = static_cast<int>(count(row, "chips", 1 << 24));
  facts.usd_per_hour = number(row, "usd_per_hour");
  return facts;
}

}  // namespace

std::vector<BenchSet> from_csv(const CsvTable& table, const CsvMapping& mapping) {
  static const std::set<std::string> kFacts{"tool", "model", "model_id", "target", "name", "chips", "usd_per_hour"};
  static const std::set<std::string> kTexts{"tool", "model", "model_id", "target", "name", "note", "verdict"};
  const std::vector<std::string> fields = fields_of(table, mapping);
  std::vector<BenchSet> sets;
  for (const CsvTable::Row& row : table.rows)
    inside("line " + std::to_string(row.line), [&] {
      Json json = Json::object();
      for (size_t i = 0; i < fields.size(); ++i)
        json[fields[i]] = kTexts.contains(fields[i]) ? Json(row.cells[i]) : value_of(row.cells[i]);
      BenchSet facts = facts_of(json);
      for (const std::string& key : kFacts) json.erase(key);
      BenchPoint point = bench_point(json);
      for (const auto& [key, value] : point.rest.items())
        if (value.is_string() && key != "date") facts.conditions[key] = value.get<std::string>();
      for (const auto& [key, value] : facts.conditions) point.rest.erase(key);
      find_or_add_set(sets, facts).points.push_back(std::move(point));
    });
  return sets;
}

}  // namespace mw::formats::bench
