// SPDX-License-Identifier: Apache-2.0
// Result files as columns of a comparison, audited against the model and target they name where the catalogue has
// them. Any thread.
#pragma once
#include <filesystem>
#include <vector>

#include "core/compare/comparison.h"
#include "core/hardware/catalogue.h"

namespace mw::compare {

// One for each set in the file. Throws Error BENCH or BENCH-KIND.
std::vector<ComparedRun> compared_files(const std::filesystem::path& file, const hardware::Catalogue& catalogue);
// Findings with the floors of physics where model and target are known, else those that need neither.
std::vector<serve::Finding> audit_known(const formats::BenchSet& set, const hardware::Catalogue& catalogue);

}  // namespace mw::compare
