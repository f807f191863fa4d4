// SPDX-License-Identifier: Apache-2.0
#include "core/present/table.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/text.h"
#include "core/base/units.h"

namespace mw::present {
namespace {

constexpr size_t kMostHeading = 56, kMostCell = 34, kLeastTitle = 12;  // characters on a terminal

// A name with line ends would forge rows.
std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
  return text;
}

std::string title_of(const Column& column) {
  return one_line(column.unit.empty() ? column.title : column.title + " (" + column.unit + ")");
}

std::string heading_of(const Row& row) {
  return row.unit.empty() ? row.cells.front().text : row.cells.front().text + " (" + row.unit + ")";
}

// Numbers the remarks in the order of their cells.
struct Remarks {
  std::string of(const Cell& cell, const std::string& column, const Row& row) {
    if (cell.remark.empty()) return {};
    lines.push_back(one_line(column + ", " + row.cells.front().text + ": " + cell.remark));
    return "  (" + std::to_string(lines.size()) + ")";
  }
  std::vector<std::string> lines{};
};

// "61  -96 %  38 % of gap  (2)"
std::string cell_text(const Table& table, const Row& row, size_t column, Remarks& remarks) {
  if (column >= row.cells.size()) return {};
  if (column == 0) return one_line(heading_of(row));
  const Cell& cell = row.cells[column];
  std::string text = cell.text;
  if (cell.change) text += "  " + change_text(*cell.change);
  if (!cell.note.empty()) text += "  " + cell.note;
  return one_line(text + remarks.of(cell, table.columns[column].title, row));
}

// Divides a title into lines of at most `width` characters, after a space or a mark where there is one.
std::vector<std::string> wrapped(std::string title, size_t width) {
  std::vector<std::string> lines;
  while (characters(title) > width) {
    size_t end = 0;
    for (size_t n = 0; n < width; ++n)
      end += std::max<size_t>(1, character_length(std::string_view(title).substr(end)));
    const size_t at = title.find_last_of(" -_/,", end - 1);
    const size_t cut = at == std::string::npos || at == 0 ? end : at + 1;
    lines.emplace_back(trimmed(title.substr(0, cut)));
    title = title.substr(cut);
  }
  lines.push_back(std::move(title));
  return lines;
}

std::string cut(const std::string& text, size_t width) {
  return characters(text) <= width ? text : fitted(text, -static_cast<int>(width - 1)) + "\u2026";
}

std::string aligned(const std::string& text, const Column& column, size_t width) {
  const int signed_width = static_cast<int>(width);
  return padded(text, column.align == Align::left ? -signed_width : signed_width);
}

std::string without_end_spaces(const std::string& line) {
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

std::string line_of(const std::vector<Column>& columns, const std::function<std::string(size_t)>& text) {
  std::string line;
  for (size_t c = 0; c < columns.size(); ++c)
    line += (c > 0 ? " " : "") + aligned(text(c), columns[c], static_cast<size_t>(columns[c].width));
  return without_end_spaces(line);
}

// Left-aligned columns hold names and sentences, which are not cut.
size_t most_of(const std::vector<Column>& columns, size_t column) {
  if (column == 0) return kMostHeading;
  return columns[column].align == Align::left ? std::string::npos : kMostCell;
}

// The texts of all cells, and how wide each column is.
struct TerminalLayout {
  std::vector<std::vector<std::string>> rows, titles;  // titles: lines, by column
  std::vector<size_t> widths;
  Remarks remarks{};
};

TerminalLayout lay_out(const Table& table) {
  TerminalLayout out;
  for (const Row& row : table.rows) {
    auto& texts = out.rows.emplace_back();
    for (size_t c = 0; c < table.columns.size(); ++c)
      texts.push_back(cut(cell_text(table, row, c, out.remarks), most_of(table.columns, c)));
  }
  for (size_t c = 0; c < table.columns.size(); ++c) {
    size_t width = static_cast<size_t>(table.columns[c].width);
    for (const auto& texts : out.rows) width = std::max(width, characters(texts[c]));
    out.titles.push_back(wrapped(title_of(table.columns[c]), std::max(width, kLeastTitle)));
    for (const std::string& line : out.titles.back()) width = std::max(width, characters(line));
    out.widths.push_back(width);
  }
  return out;
}

}  // namespace

Table left_table(const std::vector<const char*>& titles) {
  Table table;
  for (const char* title : titles) table.columns.push_back({.title = title, .align = Align::left});
  return table;
}

Table figure_table(const std::vector<const char*>& titles) {
  Table table;
  for (const char* title : titles) table.columns.push_back({.title = title});
  table.columns.front().align = Align::left;
  return table;
}

std::string change_text(double change) {
  if (change == 0) return "=";
  const double p = change * 100;
  const bool is_whole = std::abs(p) >= 9.95 && std::abs(p) < 1e15;
  const std::string digits = is_whole ? std::to_string(std::llround(p)) : number_text(p, 2);
  return (p >= 0 ? "+" : "") + digits + " %";
}

std::string to_text(const Table& table, int indent) {
  const TerminalLayout layout = lay_out(table);
  const std::string margin(static_cast<size_t>(indent), ' ');
  std::string out;
  const auto add = [&](const auto& text) {
    std::string line = margin;
    for (size_t c = 0; c < table.columns.size(); ++c)
      line += (c > 0 ? "  " : "") + aligned(text(c), table.columns[c], layout.widths[c]);
    out += without_end_spaces(line);
  };
  size_t lines = 0;
  for (const auto& title : layout.titles) lines = std::max(lines, title.size());
  for (size_t l = 0; l < lines; ++l)  // at the bottom, above the cells
    add([&](size_t c) {
      const auto& title = layout.titles[c];
      return l + title.size() < lines ? std::string() : title[l + title.size() - lines];
    });
  for (const auto& row : layout.rows) add([&](size_t c) { return row[c]; });
  for (size_t i = 0; i < layout.remarks.lines.size(); ++i)
    out += margin + "(" + std::to_string(i + 1) + ") " + layout.remarks.lines[i] + "\n";
  return out;
}

std::string title_line(const std::vector<Column>& columns) {
  return line_of(columns, [&](size_t c) { return title_of(columns[c]); });
}

std::string row_line(const std::vector<Column>& columns, const std::vector<Cell>& cells) {
  return line_of(columns, [&](size_t c) { return one_line(cells[c].text); });
}

std::string to_markdown(const Table& table) {
  std::string out = "|", rule = "|";
  for (const Column& column : table.columns) {
    out += " " + escape_markdown(title_of(column)) + " |";
    rule += column.align == Align::left ? "---|" : "---:|";
  }
  out += "\n" + rule + "\n";
  Remarks remarks;
  for (const Row& row : table.rows) {
    out += "|";
    for (size_t c = 0; c < table.columns.size(); ++c)
      out += " " + escape_markdown(cell_text(table, row, c, remarks)) + " |";
    out += "\n";
  }
  for (size_t i = 0; i < remarks.lines.size(); ++i)
    out += (i == 0 ? "\n(" : "(") + std::to_string(i + 1) + ") " + escape_markdown(remarks.lines[i]) + "  \n";
  return out;
}

std::string to_latex(const Table& table) {
  std::string out = "% needs no package\n\\begin{tabular}{";
  for (const Column& column : table.columns) out += column.align == Align::left ? "l" : "r";
  out += "}\n\\hline\n";
  const auto add = [&](const auto& text) {
    for (size_t c = 0; c < table.columns.size(); ++c) out += (c > 0 ? " & " : "") + escape_latex(text(c));
    out += " \\\\\n";
  };
  add([&](size_t c) { return title_of(table.columns[c]); });
  out += "\\hline\n";
  Remarks remarks;
  for (const Row& row : table.rows) add([&](size_t c) { return cell_text(table, row, c, remarks); });
  out += "\\hline\n\\end{tabular}\n";
  for (size_t i = 0; i < remarks.lines.size(); ++i)
    out += "\n\\noindent (" + std::to_string(i + 1) + ") " + escape_latex(remarks.lines[i]) + ".\n";
  return out;
}

std::string to_csv(const Table& table) {
  const bool keyed = std::any_of(table.rows.begin(), table.rows.end(), [](const Row& row) { return !row.key.empty(); });
  const size_t first = keyed ? 1 : 0;
  std::vector<std::string> titles;
  if (keyed) titles = {"key", "label", "unit"};
  for (size_t c = first; c < table.columns.size(); ++c) {
    titles.push_back(title_of(table.columns[c]));
    if (table.columns[c].compared) titles.push_back(table.columns[c].title + ", change");
  }
  if (keyed) titles.emplace_back("marks");
  std::string out = joined(titles, ",", csv_cell) + "\n";
  for (const Row& row : table.rows) {
    std::vector<std::string> cells;
    if (keyed) cells = {csv_cell(row.key), csv_cell(row.cells.front().text), csv_cell(row.unit)};
    std::string remarks;
    for (size_t c = first; c < table.columns.size(); ++c) {
      const Cell cell = c < row.cells.size() ? row.cells[c] : Cell();
      cells.push_back(cell.number ? number_text(*cell.number, 10) : csv_cell(cell.text));
      if (table.columns[c].compared) cells.push_back(cell.change ? number_text(*cell.change, 6) : std::string());
      if (!cell.remark.empty()) remarks += (remarks.empty() ? "" : "; ") + table.columns[c].title + ": " + cell.remark;
    }
    if (keyed) cells.push_back(csv_cell(remarks));
    out += joined(cells, ",") + "\n";
  }
  return out;
}

std::string escape_latex(const std::string& text) {
  static const std::map<char, const char*> kWords{{'\\', "\\textbackslash{}"},
                                                  {'~', "\\textasciitilde{}"},
                                                  {'^', "\\textasciicircum{}"},
                                                  {'<', "\\textless{}"},
                                                  {'>', "\\textgreater{}"},
                                                  {'\n', " "},
                                                  {'\r', " "}};
  std::string out;
  for (const char c : text) {
    if (const auto word = kWords.find(c); word != kWords.end()) {
      out += word->second;
      continue;
    }
    if (std::string_view("&%$#_{}").find(c) != std::string_view::npos) out += '\\';
    out += static_cast<unsigned char>(c) < ' ' || c == '\x7f' ? ' ' : c;
  }
  return out;
}

}  // namespace mw::present
