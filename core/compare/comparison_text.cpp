// SPDX-License-Identifier: Apache-2.0
// Formats a comparison as JSON, CSV, Markdown and LaTeX. Marks become notes below the table.
#include <cmath>

#include "core/base/units.h"
#include "core/compare/comparison.h"
#include "core/formats/results/csv.h"

namespace mw::compare {
namespace {

std::string escaped_markdown(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '*' || c == '_' || c == '`' || c == '\\' || c == '<' || c == '[') out += '\\';
    out += c == '\n' || c == '\r' ? ' ' : c;
  }
  return out;
}

std::string escaped_latex(const std::string& text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '\\':
        out += "\\textbackslash{}";
        break;
      case '~':
        out += "\\textasciitilde{}";
        break;
      case '^':
        out += "\\textasciicircum{}";
        break;
      case '<':
        out += "\\textless{}";
        break;
      case '>':
        out += "\\textgreater{}";
        break;
      case '\n':
      case '\r':
        out += ' ';
        break;
      case '&':
      case '%':
      case '$':
      case '#':
      case '_':
      case '{':
      case '}':
        out += '\\';
        [[fallthrough]];
      default:
        out += c;
    }
  return out;
}

// Returns "61  -96 %  (2)" and appends the note of the mark to `notes`.
std::string cell(const ComparisonRow& row, size_t column, const Comparison& comparison,
                 std::vector<std::string>& notes) {
  std::string text = row.texts[column];
  if (text.empty() && row.marks[column].empty()) return row.kind == ComparisonRow::Kind::setting ? "not recorded" : "";
  if (row.deltas[column]) text += "  " + change_text(*row.deltas[column]);
  if (!row.marks[column].empty()) {
    notes.push_back(comparison.names[column] + ", " + row.label + ": " + row.marks[column]);
    text += "  (" + std::to_string(notes.size()) + ")";
  }
  return text;
}

}  // namespace

std::string change_text(double delta) {
  if (delta == 0) return "=";
  const double p = delta * 100;
  const std::string digits = std::abs(p) < 9.95 ? number_text(p, 2) : std::to_string(std::llround(p));
  return (p >= 0 ? "+" : "") + digits + " %";
}

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

std::string to_csv(const Comparison& comparison) {
  std::string out = "key,label,unit";
  for (size_t c = 0; c < comparison.names.size(); ++c) {
    out += "," + formats::csv_cell(comparison.names[c]);
    if (c > 0) out += "," + formats::csv_cell(comparison.names[c] + ", change");
  }
  out += ",marks\n";
  for (const ComparisonRow& row : comparison.rows) {
    out += formats::csv_cell(row.key) + "," + formats::csv_cell(row.label) + "," + formats::csv_cell(row.unit);
    std::string marks;
    for (size_t c = 0; c < row.texts.size(); ++c) {
      out += "," + (row.values[c] ? number_text(*row.values[c], 10) : formats::csv_cell(row.texts[c]));
      if (c > 0) out += "," + (row.deltas[c] ? number_text(*row.deltas[c], 6) : std::string());
      if (!row.marks[c].empty()) marks += (marks.empty() ? "" : "; ") + comparison.names[c] + ": " + row.marks[c];
    }
    out += "," + formats::csv_cell(marks) + "\n";
  }
  const std::string rest(2 * comparison.names.size() + 1, ',');  // as many fields as the header
  out += "verdict," + std::string(to_string(comparison.verdict)) + rest + "\n";
  for (const Confounder& c : comparison.confounders)
    out += formats::csv_cell("confounder." + c.key) + "," + formats::csv_cell(with_effects_text(comparison, c)) + rest +
           "\n";
  return out;
}

std::string to_markdown(const Comparison& comparison) {
  std::string out = "**Verdict: " + std::string(verdict_text(comparison.verdict)) + "**\n\n";
  for (const Confounder& c : comparison.confounders)
    out += "- " + escaped_markdown(with_effects_text(comparison, c)) + "\n";
  out += (comparison.confounders.empty() ? "| |" : "\n| |");
  for (const std::string& name : comparison.names) out += " " + escaped_markdown(name) + " |";
  out += "\n|---|";
  for (size_t c = 0; c < comparison.names.size(); ++c) out += "---:|";
  out += "\n";
  std::vector<std::string> notes;
  for (const ComparisonRow& row : comparison.rows) {
    out += "| " + escaped_markdown(row.title()) + " |";
    for (size_t c = 0; c < row.texts.size(); ++c) out += " " + escaped_markdown(cell(row, c, comparison, notes)) + " |";
    out += "\n";
  }
  for (size_t i = 0; i < notes.size(); ++i)
    out += (i == 0 ? "\n" : "") + std::string("(") + std::to_string(i + 1) + ") " + escaped_markdown(notes[i]) + "  \n";
  return out;
}

std::string to_latex(const Comparison& comparison) {
  std::string out =
      "% needs no package\n\\begin{tabular}{l" + std::string(comparison.names.size(), 'r') + "}\n\\hline\n";
  for (const std::string& name : comparison.names) out += " & " + escaped_latex(name);
  out += " \\\\\n\\hline\n";
  std::vector<std::string> notes;
  for (const ComparisonRow& row : comparison.rows) {
    out += escaped_latex(row.title());
    for (size_t c = 0; c < row.texts.size(); ++c) out += " & " + escaped_latex(cell(row, c, comparison, notes));
    out += " \\\\\n";
  }
  out += "\\hline\n\\end{tabular}\n\n\\noindent Verdict: " + std::string(verdict_text(comparison.verdict)) + ".";
  for (const Confounder& c : comparison.confounders)
    out += "\n" + escaped_latex(with_effects_text(comparison, c)) + ".";
  for (size_t i = 0; i < notes.size(); ++i)
    out += "\n\n\\noindent (" + std::to_string(i + 1) + ") " + escaped_latex(notes[i]) + ".";
  return out + "\n";
}

}  // namespace mw::compare
