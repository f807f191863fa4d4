// SPDX-License-Identifier: Apache-2.0
// A comparison as JSON and as a table: CSV, Markdown and LaTeX.
#include <cmath>

#include "core/base/text.h"
#include "core/base/units.h"
#include "core/compare/comparison.h"
#include "core/present/table.h"

namespace mw::compare {

std::string share_text(const Effects& effects, size_t column) {
  if (column >= effects.by_column.size() || !effects.by_column[column] || !effects.by_column[column]->share) return {};
  const double share = *effects.by_column[column]->share;
  // Beside a small gap percentages have too many digits to read.
  return std::abs(share) < 10 ? std::to_string(std::llround(100 * share)) + " % of gap"
                              : std::to_string(std::llround(share)) + " x gap";
}

std::string effects_text(const Comparison& comparison, const Effects& effects) {
  if (!effects.missing.empty()) return "not estimated: " + effects.missing;
  std::string text;
  for (size_t c = 1; c < effects.by_column.size(); ++c) {
    if (!effects.by_column[c]) continue;
    const std::string share = share_text(effects, c), change = change_text(effects.by_column[c]->change);
    text += (text.empty() ? "" : "; ") + (comparison.names.size() > 2 ? comparison.names[c] + ": " : std::string());
    text += share.empty() ? change + " predicted" : "explains " + share + " (" + change + " predicted)";
  }
  return text;
}

namespace {

Json numbers_json(const std::vector<std::optional<double>>& values) {
  Json out = Json::array();
  for (const auto& value : values) out.push_back(or_null(value));
  return out;
}

void add_effects(const Effects& effects, Json& out) {
  if (!effects.missing.empty()) out["not_estimated"] = effects.missing;
  if (!effects.any()) return;
  Json list = Json::array();
  for (const auto& effect : effects.by_column) {
    Json one(nullptr);
    if (effect) one = {{"change", effect->change}, {"share", or_null(effect->share)}};
    list.push_back(std::move(one));
  }
  out["effects"] = std::move(list);
}

std::string with_effects_text(const Comparison& comparison, const Confounder& confounder) {
  const std::string effect = effects_text(comparison, confounder.effects);
  return confounder.text + (effect.empty() ? "" : "; " + effect);
}

}  // namespace

Json to_json(const Comparison& comparison) {
  Json rows = Json::array();
  for (const ComparisonRow& row : comparison.rows) {
    Json values = Json::array(), deltas = Json::array();
    for (size_t c = 0; c < row.texts.size(); ++c) {
      if (row.kind == ComparisonRow::Kind::setting)
        values.push_back(row.texts[c].empty() ? Json(nullptr) : Json(row.texts[c]));
      else
        values.push_back(or_null(row.values[c]));
      deltas.push_back(or_null(row.deltas[c]));
    }
    Json one{{"key", row.key},
             {"label", row.label},
             {"kind", row.kind == ComparisonRow::Kind::setting ? "setting" : "result"},
             {"values", values},
             {"delta", deltas}};
    if (!row.unit.empty()) one["unit"] = row.unit;
    for (const std::string& mark : row.marks)
      if (!mark.empty()) one["marks"] = row.marks;
    add_effects(row.effects, one);
    rows.push_back(std::move(one));
  }
  Json warnings = Json::array(), confounders = Json::array();
  for (const Confounder& c : comparison.confounders) {
    warnings.push_back(c.text);
    Json one{{"key", c.key}, {"text", c.text}, {"at_least", to_string(c.at_least)}};
    if (c.is_negligible) one["negligible"] = true;
    add_effects(c.effects, one);
    confounders.push_back(std::move(one));
  }
  Json out{{"names", comparison.names},
           {"verdict", to_string(comparison.verdict)},
           {"warnings", warnings},
           {"confounders", confounders},
           {"rows", rows}};
  if (const auto& gap = comparison.gap) {
    out["gap"] = {{"label", gap->label},
                  {"unit", gap->unit},
                  {"values", numbers_json(gap->measured)},
                  {"predicted", numbers_json(gap->predicted)}};
    if (!gap->missing.empty()) out["gap"]["not_estimated"] = gap->missing;
  }
  return out;
}

present::Table table_of(const Comparison& comparison) {
  present::Table table{.columns = {{.align = present::Align::left}}};
  for (const std::string& name : comparison.names)
    table.columns.push_back({.title = name, .compared = table.columns.size() > 1});
  for (const ComparisonRow& row : comparison.rows) {
    present::Row& out = table.rows.emplace_back(present::Row{row.key, row.unit, {row.label}});
    for (size_t c = 0; c < row.texts.size(); ++c) {
      present::Cell& cell = out.cells.emplace_back(row.texts[c]);
      if (row.texts[c].empty()) cell.text = row.kind == ComparisonRow::Kind::setting ? "not recorded" : "-";
      cell.number = row.values[c];
      cell.change = row.deltas[c];
      cell.note = share_text(row.effects, c);
      cell.remark = row.marks[c];
      if (row.marks[c].starts_with("impossible")) cell.mark = present::Mark::bad;
    }
  }
  return table;
}

std::string to_csv(const Comparison& comparison) {
  present::Table table = table_of(comparison);
  table.rows.push_back({"verdict", {}, {std::string(to_string(comparison.verdict))}});
  for (const Confounder& c : comparison.confounders)
    table.rows.push_back({"confounder." + c.key, {}, {with_effects_text(comparison, c)}});
  return present::to_csv(table);
}

std::string to_markdown(const Comparison& comparison) {
  std::string out = "**Verdict: " + std::string(verdict_text(comparison.verdict)) + "**\n\n";
  for (const Confounder& c : comparison.confounders)
    out += "- " + escape_markdown(with_effects_text(comparison, c)) + "\n";
  return out + (comparison.confounders.empty() ? "" : "\n") + present::to_markdown(table_of(comparison));
}

std::string to_latex(const Comparison& comparison) {
  std::string out = present::to_latex(table_of(comparison)) +
                    "\n\\noindent Verdict: " + std::string(verdict_text(comparison.verdict)) + ".\n";
  for (const Confounder& c : comparison.confounders)
    out += present::escape_latex(with_effects_text(comparison, c)) + ".\n";
  return out;
}

}  // namespace mw::compare
