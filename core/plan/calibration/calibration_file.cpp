// SPDX-License-Identifier: Apache-2.0
#include "core/plan/calibration/calibration_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include "core/base/files.h"
#include "core/base/json.h"

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
  if (!factor.maker.empty()) row["maker"] = factor.maker;
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
  f.maker = row.text_or("maker", "");
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

constexpr std::array<double WorkSize::*, 6> kSizes{&WorkSize::devices, &WorkSize::slices, &WorkSize::parameters,
                                                   &WorkSize::tokens,  &WorkSize::answer, &WorkSize::users};

// The rows of a kind, stack and chip: [devices, slices, parameters, tokens, answer, users, log(measured / predicted)].
Json errors_json(const std::vector<RowError>& errors) {
  std::map<std::tuple<FigureKind, model::Stack, std::string>, Json> groups;
  for (const RowError& e : errors) {
    Json row = Json::array();
    for (double WorkSize::*const size : kSizes) row.push_back(std::llround(e.size.*size));
    row.push_back(rounded(e.log_ratio));
    groups[{e.kind, e.stack, e.chip}].push_back(std::move(row));
  }
  Json out = Json::array();
  for (auto& [group, rows] : groups) {
    const auto& [kind, stack, chip] = group;
    out.push_back({{"kind", to_string(kind)}, {"stack", to_string(stack)}, {"chip", chip}, {"rows", std::move(rows)}});
  }
  return out;
}

void read_errors(const Json& json, RowLocation at, std::vector<RowError>& errors) {
  JsonRow row(json, std::move(at));
  RowError e;
  e.kind = read_name<FigureKind>(row, "kind");
  e.stack = parse_stack(row.text("stack"));
  e.chip = row.text("chip");
  for (const Json& values : row.list("rows")) {
    const auto is_number = [](const Json& v) { return v.is_number() && std::abs(v.get<double>()) < 1e18; };
    if (!values.is_array() || values.size() != kSizes.size() + 1 ||
        !std::all_of(values.begin(), values.end(), is_number) || std::abs(values.back().get<double>()) > 10)
      row.bad("rows", "wrong type", json_excerpt(values),
              "[devices, slices, parameters, tokens, answer, users, log(measured / predicted)]");
    for (size_t i = 0; i < kSizes.size(); ++i) e.size.*kSizes[i] = values[i].get<double>();
    e.log_ratio = values.back().get<double>();
    errors.push_back(e);
  }
  row.finish();
}

SpreadScore read_score(const Json& json, RowLocation at) {
  JsonRow row(json, std::move(at));
  SpreadScore s;
  s.kind = read_name<FigureKind>(row, "kind");
  s.spreads = row.number("spreads");
  if (!(s.spreads > 0 && s.spreads <= 100)) row.bad("spreads", "out of range", std::to_string(s.spreads), "0 to 100");
  s.rows = row.whole<int>("rows", 0, 0, 1 << 24);
  row.finish();
  return s;
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

void require_known_schema(const Json& document, const std::string& file) {
  if (!document.is_object() || !document.contains("schema") || document.at("schema") == Json(1)) return;
  throw Error("HARDWARE-FILE", "the file was written by a newer Meshwright",
              {.file = file,
               .place = "schema",
               .found = json_excerpt(document.at("schema")),
               .expected = "1",
               .fix = "update Meshwright, or move the file away"});
}

Calibration read_calibration(const fs::path& file) {
  const Json document = read_json(file);
  const std::string name = file.string();
  require_known_schema(document, name);
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
  if (document.contains("errors")) {
    const Json& errors = list_member(document, "errors", name);
    for (size_t i = 0; i < errors.size(); ++i)
      read_errors(errors.at(i), {none, name, "errors[" + std::to_string(i) + "]", "CALIBRATION"}, c.errors);
  }
  if (document.contains("scores")) {
    const Json& scores = list_member(document, "scores", name);
    for (size_t i = 0; i < scores.size(); ++i)
      c.scores.push_back(read_score(scores.at(i), {none, name, "scores[" + std::to_string(i) + "]", "CALIBRATION"}));
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
  if (!calibration.errors.empty()) document["errors"] = errors_json(calibration.errors);
  for (const SpreadScore& s : calibration.scores)
    document["scores"].push_back({{"kind", to_string(s.kind)}, {"spreads", rounded(s.spreads)}, {"rows", s.rows}});
  return document;
}

std::string calibration_text(Json document) {
  Json errors;
  if (document.contains("errors")) std::swap(errors, document["errors"]);
  std::string text = document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  if (errors.is_null()) return text;
  std::string lines = "\"errors\": [";
  for (const Json& group : errors) {
    Json head = group;
    head["rows"] = Json::array();
    const std::string start = head.dump();
    lines += (lines.back() == '[' ? "\n    " : ",\n    ") + start.substr(0, start.rfind("[]")) + "[";
    for (const Json& row : group.at("rows")) lines += (lines.back() == '[' ? "\n      " : ",\n      ") + row.dump();
    lines += "\n    ]}";
  }
  lines += "\n  ]";
  constexpr std::string_view kPlace = "\"errors\": null";
  return text.replace(text.find(kPlace), kPlace.size(), lines);
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
    throw Error("CALIBRATION", "no configuration folder exists for a calibration",
                {.fix = "set HOME or XDG_CONFIG_HOME"});
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
  return restore_calibration(folder, calibration_text(to_json(proposal)));
}

std::optional<std::string> remove_user_calibration(const fs::path& folder) {
  return restore_calibration(folder, std::nullopt);
}

}  // namespace mw::plan
