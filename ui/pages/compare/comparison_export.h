// SPDX-License-Identifier: GPL-3.0-or-later
// A comparison as a file, by its extension: csv, md, tex as core writes them; png, svg, pdf painted: verdict, table and
// charts, in the light theme whatever is on screen. GUI thread.
#pragma once
#include <filesystem>

#include "core/compare/comparison.h"

class QString;

namespace mw::ui {

QString export_filter();  // of the file dialog
// Throws Error EXPORT for another extension or where it cannot be written. The file appears whole or not at all.
void export_comparison(const compare::Comparison& comparison, const std::vector<compare::ComparedRun>& runs,
                       const serve::Slo& slo, const std::filesystem::path& file);

}  // namespace mw::ui
