// SPDX-License-Identifier: GPL-3.0-or-later
// Pictures of the window as PNG files, written atomically. Throws mw::Error naming the file.
#pragma once
#include <QPixmap>
#include <filesystem>

namespace mw::ui {

void write_png(const QPixmap& picture, const std::filesystem::path& file);  // the folder must exist

}  // namespace mw::ui
