// SPDX-License-Identifier: GPL-3.0-or-later
// Undo and Redo act on the stack of the current page, or on that of the document while the form has the focus. GUI
// thread.
#pragma once
#include <QUndoGroup>

#include "ui/session/workspace.h"

namespace mw::ui {

class UndoActions : public QObject {
  Q_OBJECT
 public:
  explicit UndoActions(Workspace& workspace);
  ~UndoActions() override;
  void add_stack(QUndoStack* stack);
  // The focus in one of these widgets chooses the stack.
  void follow_focus(const QWidget& form, const QWidget& pages);
  void choose_stack();  // that of the current page

 private:
  void update_actions();
  void update(const QString& id, bool can, const QString& verb, const QString& what);
  Workspace& workspace_;
  QUndoGroup group_;
};

}  // namespace mw::ui
