// SPDX-License-Identifier: GPL-3.0-or-later
// The dialogs of the Help menu. GUI thread.
#pragma once

class QWidget;

namespace mw::ui {

class ActionRegistry;

void show_shortcuts(QWidget& window, const ActionRegistry& actions);  // of all commands
void show_about(QWidget& window);

}  // namespace mw::ui
