// SPDX-License-Identifier: Apache-2.0
#include "core/plan/calibration/calibration_file.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/files.h"
#include "core/base/input_file.h"
#include "core/base/json_row.h"

namespace mw::plan {
namespace {

namespace fs = std::filesystem;
using hardware::Vendor;
constexpr std::array<std::pair<std::string_view, Vendor>, 3> kVendors{
    {{"tpu", Vendor::tpu}, {"gpu", Vendor::gpu}, {"cpu", Vendor::cpu}}};

constexpr std::array<std::pair<std::string_view, CalibrationAuthor>, 2> kAuthors{
    {{"program", CalibrationAuthor::program}, {"you", CalibrationAuthor::user}}};

// To four decimals, as files have factors and errors.
double rounded(double value) {
  return std::round(value * 1e4) / 1e4;
}

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

Json to_json(const ConformalFactor& interval) {
  Json row{{"kind", to_string(interval.kind)}, {"evidence", to_string(interval.evidence)}};
  if (interval.evidence != ConformalFactor::Evidence::all) row["stack"] = to_string(interval.stack);
  if (interval.evidence == ConformalFactor::Evidence::own) row["chip"] = interval.chip;
  row["below"] = rounded(interval.limits.below);
  row["above"] = rounded(interval.limits.above);
  row["rows"] = interval.rows;
  return row;
}

template <class Enum>
Enum read_name(JsonRow& row, const char* key) {
  const std::string name = row.text(key);
  const auto value = parse<Enum>(name);
  if (!value) row.bad(key, "no such value", name, "a name of resources/hardware/calibration.json");
  return *value;
}

ConformalFactor read_interval(const Json& json, RowLocation at) {
  JsonRow row(json, std::move(at));
  ConformalFactor f;
  f.kind = read_name<FigureKind>(row, "kind");
  f.evidence = read_name<ConformalFactor::Evidence>(row, "evidence");
  if (f.evidence != ConformalFactor::Evidence::all) f.stack = parse_stack(row.text("stack"));
  if (f.evidence == ConformalFactor::Evidence::own) f.chip = row.text("chip");
  const auto factor = [&](const char* key) {
    const double value = row.number(key);
    if (!(value >= 1 && value <= 100)) row.bad(key, "out of range", std::to_string(value), "1 to 100");
    return value;
  };
  if (row.optional("factor"))  // written before 2026-11-27: the same on both sides
    f.limits.below = f.limits.above = factor("factor");
  else
    f.limits = {factor("below"), factor("above")};
  f.rows = row.whole<int>("rows", 0, 0, 1 << 24);
  row.finish();
  return f;
}

// Written before 2026-11-25, from rows that the factors were fitted to: too narrow.
bool is_outdated(const Json& interval) {
  if (!interval.is_object()) return false;
  const Json evidence = interval.value("evidence", Json());
  return evidence == "measured chips" || evidence == "other chips";
}

Json before_after(const ErrorSummary& before, const ErrorSummary& after) {
  return {{"before", to_json(before)}, {"after", to_json(after)}};
}

Json row_json(const ProposedRow& r) {
  const Measurement& m = r.measured;
  Json row{{"id", m.id},
           {"use", m.purpose == MeasurementUse::calibration ? "calibration" : "holdout"},
           {"chip", m.request.target.chip.id},
           {"target", m.request.target.id},
           {"stack", to_string(m.request.stack)},
           {"unit", m.unit},
           {"measured", m.value},
           {"predicted_before", r.now.predicted},
           {"error_before", rounded(r.now.error)},
           {"predicted_after", r.fitted.predicted},
           {"error_after", rounded(r.fitted.error)}};
  if (r.held_out) {
    row["predicted_held_out"] = r.held_out->predicted;
    row["error_held_out"] = rounded(r.held_out->error);
    row["other_rows"] = r.others;
  }
  row["source"] = m.source;
  if (!m.assumed.empty()) row["assumed"] = m.assumed;
  return row;
}

Json efficiency_json(const ProposedEfficiency& efficiency) {
  return {{"stack", to_string(efficiency.factor.stack)},
          {"chip", efficiency.factor.chip},
          {"name", efficiency.factor.name},
          {"before", efficiency.before},
          {"after", efficiency.after},
          {"low", efficiency.low},
          {"high", efficiency.high},
          {"default", efficiency.original.value},
          {"rows", efficiency.factor.rows},
          {"at_limit", efficiency.at_limit}};
}

}  // namespace

Calibration read_calibration(const fs::path& file) {
  const Json document = read_json(file);
  const std::string name = file.string();
  Calibration c{
      {string_member(document, "date", name), string_member(document, "source", name), CalibrationAuthor::program}, {}};
  if (document.contains("by") && document.at("by") == "you") c.basis.by = CalibrationAuthor::user;
  const Json& factors = list_member(document, "factors", name);
  const Sources none;
  for (size_t i = 0; i < factors.size(); ++i)
    c.factors.push_back(read_factor(factors.at(i), {none, name, "factors[" + std::to_string(i) + "]", "CALIBRATION"}));
  if (document.contains("intervals")) {
    const Json& intervals = list_member(document, "intervals", name);
    const bool outdated = std::any_of(intervals.begin(), intervals.end(), is_outdated);
    for (size_t i = 0; i < intervals.size() && !outdated; ++i)
      c.intervals.push_back(
          read_interval(intervals.at(i), {none, name, "intervals[" + std::to_string(i) + "]", "CALIBRATION"}));
  }
  return c;
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
  if (!calibration.intervals.empty()) document["intervals"] = Json::array();
  for (const ConformalFactor& f : calibration.intervals) document["intervals"].push_back(to_json(f));
  return document;
}

fs::path user_calibration_file(const fs::path& folder) {
  return folder / "calibration.json";
}

std::optional<std::string> user_calibration(const fs::path& folder) {
  if (folder.empty() || !path_exists(user_calibration_file(folder))) return std::nullopt;
  return read_file(user_calibration_file(folder), kMaxJsonFile);
}

Json to_json(const Proposal& proposal) {
  Json document = to_json(proposal.calibration);
  const Json factors = document["factors"];
  document.erase("factors");
  document["step_time_of_fitted_rows"] = {
      {"before", to_json(proposal.now)}, {"held_out", to_json(proposal.held_out)}, {"after", to_json(proposal.fitted)}};
  document["step_time_of_held_out_rows"] = before_after(proposal.apart_now, proposal.apart_fitted);
  document["step_time_of_shipped_held_out_rows"] = before_after(proposal.shipped_now, proposal.shipped_fitted);
  document["efficiencies"] = Json::array();
  for (const ProposedEfficiency& e : proposal.efficiencies) document["efficiencies"].push_back(efficiency_json(e));
  document["rows"] = Json::array();
  for (const ProposedRow& r : proposal.rows) document["rows"].push_back(row_json(r));
  document["factors"] = factors;
  return document;
}

std::optional<std::string> restore_calibration(const fs::path& folder, const std::optional<std::string>& content) {
  if (folder.empty())
    throw Error({.id = "CALIBRATION",
                 .message = "no configuration folder exists for a calibration",
                 .fix = "set HOME or XDG_CONFIG_HOME"});
  const fs::path file = user_calibration_file(folder), before_file = file.string() + ".bak";
  std::optional<std::string> before = user_calibration(folder);
  if (before) write_file_atomically(before_file, *before);
  if (content) {
    write_file_atomically(file, *content);
  } else if (!remove_tree(file)) {
    throw system_error("the file cannot be removed", file.string(), errno);
  }
  return before;
}

std::optional<std::string> accept_proposal(const fs::path& folder, const Proposal& proposal) {
  return restore_calibration(folder, to_json(proposal).dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::optional<std::string> remove_user_calibration(const fs::path& folder) {
  return restore_calibration(folder, std::nullopt);
}

}  // namespace mw::plan
