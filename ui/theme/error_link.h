// SPDX-License-Identifier: GPL-3.0-or-later
// Replaces predicted figures while errors prevent a prediction: a button with the number of errors that leads to them.
// GUI thread.
#pragma once
#include <QToolButton>

#include "ui/theme/icons.h"

namespace mw::ui {

class ErrorLink : public QToolButton {
  Q_OBJECT
 public:
  explicit ErrorLink(QWidget* parent) : QToolButton(parent) {
    setObjectName(QStringLiteral("errors"));
    setProperty("flat", true);
    setIcon(ui::icon(Glyph::error, IconColor::bad));
    setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    setFocusPolicy(Qt::StrongFocus);
    setCursor(Qt::PointingHandCursor);
    setToolTip(tr("Show these errors in the Problems panel"));
    set_errors(0);
  }
  void set_errors(int errors) {
    setText(errors == 0   ? tr("No prediction")
            : errors == 1 ? tr("No prediction: 1 error")
                          : tr("No prediction: %1 errors").arg(errors));
  }
};

}  // namespace mw::ui
