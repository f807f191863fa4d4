// SPDX-License-Identifier: GPL-3.0-or-later
// A short message at the lower edge of a window that disappears after some seconds. GUI thread.
#pragma once
#include <QString>
#include <filesystem>

class QWidget;

namespace mw::ui {

// Shows the message in the window of `widget`, in place of an earlier one. With a file it has a button Open Folder.
// open_save_dialog() calls it for every file that was written.
void show_toast(const QWidget& widget, const QString& text, const std::filesystem::path& file = {});

}  // namespace mw::ui
