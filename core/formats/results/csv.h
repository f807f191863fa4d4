// SPDX-License-Identifier: Apache-2.0
// Comma-separated values (RFC 4180), with quoted fields that may contain commas, quotes and line ends. Thread-safe.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace mw::formats {

struct CsvTable {
  std::vector<std::string> header;
  struct Row {
    int line = 0;  // number of its first line, from 1
    std::vector<std::string> cells;
  };
  std::vector<Row> rows;  // each with as many cells as the header; without empty lines
};
// Throws BENCH naming file and line for a missing header, duplicate names, rows of other lengths and unclosed quotes.
CsvTable read_csv(std::string_view text, const std::string& file);

}  // namespace mw::formats
