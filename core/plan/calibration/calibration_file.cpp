// SPDX-License-Identifier: Apache-2.0
#include "core/plan/calibration/calibration_file.h"

#include <array>
#include <cmath>

#include "core/base/files.h"
#include "core/base/json_row.h"

namespace mw::plan {
namespace {

using hardware::Vendor;
constexpr std::array<std::pair<std::string_view, Vendor>, 3> kVendors{
    {{"tpu", Vendor::tpu}, {"gpu", Vendor::gpu}, {"cpu", Vendor::cpu}}};

constexpr std::array<std::pair<std::string_view, CalibrationAuthor>, 2> kAuthors{
    {{"program", CalibrationAuthor::program}, {"you", CalibrationAuthor::user}}};

Json to_json(const CalibrationFactor& factor) {
  Json row;
  row["stack"] = to_string(factor.stack);
  for (const auto& [name, vendor] : kVendors)
    if (vendor == factor.vendor) row["vendor"] = name;
  if (!factor.chip.empty()) row["chip"] = factor.chip;
  row["name"] = factor.name;
  row["factor"] = rounded(factor.value);
  row["low"] = rounded(factor.low);
  row["high"] = rounded(factor.high);
  row["rows"] = factor.rows;
  if (factor.basis) {
    row["date"] = factor.basis->date;
    row["source"] = factor.basis->source;
    row["by"] = kAuthors[static_cast<size_t>(factor.basis->by)].first;
  }
  return row;
}

CalibrationFactor read_factor(const Json& json, RowLocation at) {
  JsonRow row(json, std::move(at));
  CalibrationFactor f;
  f.stack = parse_stack(row.text("stack"));
  f.vendor = row.choice("vendor", row.text("vendor"), kVendors);
  f.chip = row.text_or("chip", "");
  f.name = row.text("name");
  f.value = row.number("factor");
  f.low = row.number("low");
  f.high = row.number("high");
  if (f.low > f.value || f.high < f.value || f.value > 100)
    row.bad("factor", "factor is outside its own range", std::to_string(f.value), "low <= factor <= high <= 100");
  for (const Json& id : row.list("rows")) f.rows.push_back(row.as_text(id, "rows"));
  if (row.optional("date") || row.optional("source") || row.optional("by"))
    f.basis = CalibrationBasis{row.text("date"), row.text("source"), row.choice("by", row.text("by"), kAuthors)};
  row.finish();
  return f;
}

}  // namespace

Calibration read_calibration(const std::filesystem::path& file) {
  const Json document = read_json(file);
  const std::string name = file.string();
  Calibration c{
      {string_member(document, "date", name), string_member(document, "source", name), CalibrationAuthor::program}, {}};
  if (document.contains("by") && document.at("by") == "you") c.basis.by = CalibrationAuthor::user;
  const Json& factors = list_member(document, "factors", name);
  const Sources none;
  for (size_t i = 0; i < factors.size(); ++i)
    c.factors.push_back(read_factor(factors.at(i), {none, name, "factors[" + std::to_string(i) + "]", "CALIBRATION"}));
  return c;
}

double rounded(double value) {
  return std::round(value * 1e4) / 1e4;
}

Json to_json(const ErrorSummary& summary) {
  return {{"rows", summary.rows},
          {"mean", rounded(summary.mean)},
          {"worst", rounded(summary.worst)},
          {"worst_row", summary.worst_row}};
}

Json to_json(const Calibration& calibration) {
  Json document;
  document["schema"] = 1;
  document["date"] = calibration.basis.date;
  document["source"] = calibration.basis.source;
  if (calibration.basis.by == CalibrationAuthor::user) document["by"] = "you";
  document["factors"] = Json::array();
  for (const CalibrationFactor& f : calibration.factors) document["factors"].push_back(to_json(f));
  return document;
}

}  // namespace mw::plan
