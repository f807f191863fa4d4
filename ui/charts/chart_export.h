// SPDX-License-Identifier: GPL-3.0-or-later
// Writes a chart to a file. GUI thread.
#pragma once
#include <QString>
#include <filesystem>

namespace mw::ui {

class Chart;

QString chart_file_filter();  // of file dialogs
// The picture (.png in twice the size, .svg), or the data of the visible range (.csv). Writes atomically. Throws
// mw::Error for other endings and for files that cannot be written.
void export_chart(Chart& chart, const std::filesystem::path& file);

}  // namespace mw::ui
