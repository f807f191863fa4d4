// SPDX-License-Identifier: Apache-2.0
// Reads result files as columns of a comparison and audits them; uses model and target if the catalogue has them.
// Thread-safe.
#pragma once
#include <filesystem>
#include <vector>

#include "core/compare/comparison.h"
#include "core/hardware/catalogue.h"

namespace mw::compare {

// Returns one column per set in the file. Throws BENCH or BENCH-KIND.
std::vector<ComparedRun> compared_files(const std::filesystem::path& file, const hardware::Catalogue& catalogue);
// Audits a set, including physical lower bounds if the catalogue has its model and target.
std::vector<serve::Finding> audit_known(const formats::BenchSet& set, const hardware::Catalogue& catalogue);

}  // namespace mw::compare
