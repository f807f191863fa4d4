// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/shared_options.h"

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

void add_adapter_options(CLI::App& command, AdapterOptions& options) {
  command.add_option("--adapter", options.adapter, "PEFT folder, or an Orbax checkpoint saved by Tunix")->required();
  command.add_option("--out", options.out, "Output folder: new or empty")->required();
  command.add_option("--alpha", options.alpha, "LoRA alpha, which Orbax checkpoints do not record")
      ->check(CLI::PositiveNumber);
}

}  // namespace mw::app
