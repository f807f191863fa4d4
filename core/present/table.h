// SPDX-License-Identifier: Apache-2.0
// A table as a value, and its renderers: what a command prints, a file holds, a report shows and the clipboard gets is
// the same table. Thread-safe.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/enum_names.h"

namespace mw::present {

enum class Align { left, right };
struct Column {
  std::string title{}, unit{};
  Align align = Align::right;
  int width = 0;          // on the terminal, at least; of rows that are printed one by one
  bool compared = false;  // cells have changes, for which CSV has a column
};

enum class Mark { none, differs, bad };
struct Cell {
  std::string text{};
  std::optional<double> number{};  // behind the text, in the column's unit: what CSV has
  std::optional<double> change{};  // relative to the first cell with a number: -0.96
  std::string note{};              // beside the text: "38 % of gap"; a smaller line in HTML
  std::string remark{};            // a numbered line below the table
  Mark mark = Mark::none;

  Cell(std::string of = {}) : text(std::move(of)) {}
  Cell(const char* of) : text(of) {}
  Cell(std::string of, double value) : text(std::move(of)), number(value) {}
};
struct Row {
  std::string key{}, unit{};  // of tables whose rows have units of their own; both are columns of CSV
  std::vector<Cell> cells;    // the first one is the heading of the row; those that are missing are empty
};
struct Table {
  std::vector<Column> columns;
  std::vector<Row> rows{};

  void add(std::vector<Cell> cells) { rows.push_back({.cells = std::move(cells)}); }
};

Table left_table(const std::vector<const char*>& titles);    // columns of text
Table figure_table(const std::vector<const char*>& titles);  // a first column of text, then numbers

std::string change_text(double change);  // "+1.2 %", "-96 %", "+2.6e-05 %", "="

// For a terminal: columns as wide as their cells, long titles on several lines, long cells cut, remarks below. Every
// line ends with a line end and starts with `indent` spaces.
std::string to_text(const Table& table, int indent = 0);
// One line of a table whose columns have widths, for rows that are printed as they come.
std::string title_line(const std::vector<Column>& columns);
std::string row_line(const std::vector<Column>& columns, const std::vector<Cell>& cells);

std::string to_markdown(const Table& table);
std::string to_latex(const Table& table);  // a tabular that needs no package, then the remarks
// RFC 4180 with full precision. Tables with keys begin with key, label and unit and end with the remarks.
std::string to_csv(const Table& table);

std::string escape_latex(const std::string& text);

}  // namespace mw::present
