// SPDX-License-Identifier: GPL-3.0-or-later
// The role that assistive technology announces for a widget that paints itself. GUI thread.
#pragma once
#include <QAccessible>

class QWidget;

namespace mw::ui {

// Call it in the constructor of the widget: Qt asks for the role once. Without it the widget has no role.
void set_accessible_role(QWidget& widget, QAccessible::Role role);

}  // namespace mw::ui
