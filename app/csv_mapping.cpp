// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/csv_mapping.h"

#include <CLI/CLI.hpp>

#include "core/base/error.h"

namespace mw::app {

void add_column_option(CLI::App& command, std::vector<std::string>& columns) {
  command.add_option("--column", columns, "FIELD=COLUMN: the CSV column that holds vLLM's FIELD (repeatable)")
      ->allow_extra_args(false);
}

formats::CsvMapping csv_mapping(const std::vector<std::string>& columns) {
  formats::CsvMapping mapping;
  for (const std::string& column : columns) {
    const size_t equals = column.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == column.size())
      throw Error({.id = "USAGE",
                   .message = "a column mapping needs a field and a column",
                   .place = "--column",
                   .found = column,
                   .expected = "FIELD=COLUMN, e.g. median_ttft_ms=TTFT"});
    mapping.columns[column.substr(0, equals)] = column.substr(equals + 1);
  }
  return mapping;
}

}  // namespace mw::app
