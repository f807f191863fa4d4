// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/undo_actions.h"

#include <QApplication>
#include <QUndoStack>

#include "ui/session/action_registry.h"
#include "ui/session/document.h"
#include "ui/theme/text.h"

namespace mw::ui {

UndoActions::UndoActions(Workspace& workspace) : workspace_(workspace) {
  ActionRegistry& actions = workspace_.actions();
  actions.add({u"edit.undo"_s, tr("Undo"), tr("Undo the last change made on this page"),
               QKeySequence(QKeySequence::Undo), Glyph::undo},
              [this] { group_.undo(); });
  const QKeySequence redo(Qt::CTRL | Qt::SHIFT | Qt::Key_Z);
  actions.add({u"edit.redo"_s, tr("Redo"), tr("Redo the last undone change"), redo, Glyph::redo},
              [this] { group_.redo(); });
  actions[u"edit.redo"_s]->setShortcuts({redo, QKeySequence(Qt::CTRL | Qt::Key_Y)});
  for (const auto changed : {&QUndoGroup::canUndoChanged, &QUndoGroup::canRedoChanged})
    connect(&group_, changed, this, &UndoActions::update_actions);
  for (const auto changed : {&QUndoGroup::undoTextChanged, &QUndoGroup::redoTextChanged})
    connect(&group_, changed, this, &UndoActions::update_actions);
  connect(&workspace_.document(), &Document::replaced, this, &UndoActions::choose_stack);
  update_actions();
}

UndoActions::~UndoActions() {
  for (QUndoStack* stack : group_.stacks()) stack->disconnect();  // a stack emits signals while it is cleared
  group_.disconnect();
}

void UndoActions::add_stack(QUndoStack* stack) {
  if (!stack || group_.stacks().contains(stack)) return;
  group_.addStack(stack);
  // Undo reverts the latest change, wherever the focus is.
  connect(stack, &QUndoStack::indexChanged, this, [this, stack] { group_.setActiveStack(stack); });
}

void UndoActions::follow_focus(const QWidget& form, const QWidget& pages) {
  connect(qApp, &QApplication::focusChanged, this, [this, &form, &pages](QWidget*, QWidget* now) {
    if (!now) return;
    if (form.isAncestorOf(now)) group_.setActiveStack(&workspace_.document().undo_stack());
    if (pages.isAncestorOf(now)) choose_stack();
  });
}

void UndoActions::choose_stack() {
  group_.setActiveStack(workspace_.current_page().active_undo_stack(workspace_.document()));
}

void UndoActions::update_actions() {
  update(u"edit.undo"_s, group_.canUndo(), tr("Undo"), group_.undoText());
  update(u"edit.redo"_s, group_.canRedo(), tr("Redo"), group_.redoText());
}

void UndoActions::update(const QString& id, bool can, const QString& verb, const QString& what) {
  QAction* action = workspace_.actions()[id];
  const QString text = can && !what.isEmpty() ? verb + u' ' + what : verb;
  const QString keys = action->shortcut().toString(QKeySequence::NativeText);
  action->setEnabled(can);
  action->setText(text);
  action->setToolTip(
      tr("%1 (%2)").arg(can ? text : tr("There is nothing to %1 on this page").arg(verb.toLower()), keys));
}

}  // namespace mw::ui

#include "moc_undo_actions.cpp"
