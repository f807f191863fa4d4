// SPDX-License-Identifier: GPL-3.0-or-later
// Options that several subcommands share.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/results/bench_import.h"

namespace CLI {
class App;
}

namespace mw::app {

// --column, which maps columns of a CSV file to vLLM's field names.
void add_column_option(CLI::App& command, std::vector<std::string>& columns);
// Parses FIELD=COLUMN entries; throws Error USAGE.
formats::CsvMapping csv_mapping(const std::vector<std::string>& columns);

struct AdapterOptions {  // of `merge` and `convert`
  std::filesystem::path base{}, adapter{}, out{};
  std::optional<float> alpha{};  // LoRA alpha of an Orbax checkpoint
};
void add_adapter_options(CLI::App& command, AdapterOptions& options);

}  // namespace mw::app
