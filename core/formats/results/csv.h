// SPDX-License-Identifier: Apache-2.0
// Comma-separated values as RFC 4180 has them: quoted fields with commas, quotes and line ends in them. Any thread.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace mw::formats {

struct CsvTable {
  std::vector<std::string> header;
  struct Row {
    int line = 0;  // where it begins, from 1
    std::vector<std::string> cells;
  };
  std::vector<Row> rows;  // as many cells as the header; empty lines are left out
};
// Throws Error BENCH naming file and line: no header, a name twice, rows of another length, a quote that never ends.
CsvTable read_csv(std::string_view text, const std::string& file);

// A cell that a spreadsheet would take for a formula (=, +, -, @, tab or carriage return first, and no number) gets an
// apostrophe in front, as OWASP advises.
std::string spreadsheet_text(const std::string& text);
std::string csv_cell(const std::string& content);  // spreadsheet_text(), quoted where it has to be

}  // namespace mw::formats
