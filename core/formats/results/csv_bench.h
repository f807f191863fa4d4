// SPDX-License-Identifier: Apache-2.0
// Reads results from CSV files, one point per row. Errors are BENCH with the place; read_bench adds the file.
#pragma once
#include <vector>

#include "core/formats/results/bench_import.h"
#include "core/formats/results/csv.h"

namespace mw::formats::bench {

std::vector<BenchSet> from_csv(const CsvTable& table, const CsvMapping& mapping);

}  // namespace mw::formats::bench
