// SPDX-License-Identifier: GPL-3.0-or-later
// Writes pictures of the window as PNG files.
#pragma once
#include <QPixmap>
#include <filesystem>

namespace mw::ui {

// Writes atomically; the folder must exist. Throws mw::Error with the file.
void write_png(const QPixmap& picture, const std::filesystem::path& file);

}  // namespace mw::ui
