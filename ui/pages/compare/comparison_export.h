// SPDX-License-Identifier: GPL-3.0-or-later
// Exports a comparison in the format of the file extension: csv, md and tex as text; html as a report; png, svg and pdf
// as painted verdict, table and charts in the light theme. GUI thread.
#pragma once
#include <filesystem>

#include "core/compare/comparison.h"

class QString;

namespace mw::ui {

QString export_filter();  // for the file dialog
// Writes atomically. Throws Error EXPORT for an unknown extension or if the file cannot be written.
void export_comparison(const compare::Comparison& comparison, const std::vector<compare::ComparedRun>& runs,
                       const options::Slo& slo, const std::filesystem::path& file);

}  // namespace mw::ui
