// SPDX-License-Identifier: GPL-3.0-or-later
// The option --column, which maps columns of a CSV file to vLLM's field names.
#pragma once
#include <string>
#include <vector>

#include "core/formats/results/bench_import.h"

namespace CLI {
class App;
}

namespace mw::app {

void add_column_option(CLI::App& command, std::vector<std::string>& columns);

// Parses FIELD=COLUMN entries; throws Error USAGE.
formats::CsvMapping csv_mapping(const std::vector<std::string>& columns);

}  // namespace mw::app
