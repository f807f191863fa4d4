// SPDX-License-Identifier: GPL-3.0-or-later
// Undo belongs to the page where the change was made: to the Runs page, or to the document that the others edit.
#include <QAction>
#include <QApplication>
#include <QDockWidget>

#include "ui/shell/main_window.h"
#include "ui/theme/text.h"

namespace mw::ui {

void MainWindow::build_undo() {
  undo_group_.addStack(&document_.undo_stack());
  undo_group_.addStack(&runs_page_->undo_stack());
  const auto follow = [this](const QString& id, bool can, const QString& verb, const QString& what) {
    QAction* action = actions_[id];
    const QString text = can && !what.isEmpty() ? verb + u' ' + what : verb;
    const QString keys = action->shortcut().toString(QKeySequence::NativeText);
    action->setEnabled(can);
    action->setText(text);
    action->setToolTip(tr("%1 (%2)").arg(can ? text : tr("Nothing to %1 on this page").arg(verb.toLower()), keys));
  };
  const auto undo = [this, follow] {
    follow(u"edit.undo"_s, undo_group_.canUndo(), tr("Undo"), undo_group_.undoText());
  };
  const auto redo = [this, follow] {
    follow(u"edit.redo"_s, undo_group_.canRedo(), tr("Redo"), undo_group_.redoText());
  };
  connect(&undo_group_, &QUndoGroup::canUndoChanged, this, undo);
  connect(&undo_group_, &QUndoGroup::undoTextChanged, this, undo);
  connect(&undo_group_, &QUndoGroup::canRedoChanged, this, redo);
  connect(&undo_group_, &QUndoGroup::redoTextChanged, this, redo);
  // The latest change is undone first, wherever the focus is.
  for (QUndoStack* stack : {&document_.undo_stack(), &runs_page_->undo_stack()})
    connect(stack, &QUndoStack::indexChanged, this, [this, stack] { undo_group_.setActiveStack(stack); });
  connect(&document_, &Document::replaced, this, &MainWindow::choose_undo_stack);
  // The form stands beside every page: who works in it works on the document.
  connect(qApp, &QApplication::focusChanged, this, [this](QWidget*, QWidget* now) {
    if (!now) return;
    if (experiment_dock_->isAncestorOf(now)) undo_group_.setActiveStack(&document_.undo_stack());
    if (pages_->isAncestorOf(now)) choose_undo_stack();
  });
  undo();
  redo();
}

void MainWindow::choose_undo_stack() {
  undo_group_.setActiveStack(page() == Page::runs      ? &runs_page_->undo_stack()
                             : page() == Page::compare ? nullptr  // it changes nothing
                                                       : &document_.undo_stack());
}

}  // namespace mw::ui
