// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/session/action_registry.h"

#include <QAbstractButton>

#include "core/base/crash_report.h"
#include "ui/theme/text.h"

namespace mw::ui {

ActionRegistry::ActionRegistry(QWidget* window) : QObject(window), window_(window) {}

QAction* ActionRegistry::add(const ActionSpec& spec, std::function<void()> run) {
  auto* action = new QAction(spec.text, this);
  action->setObjectName(spec.id);
  action->setShortcut(spec.shortcut);
  const QString keys = spec.shortcut.toString(QKeySequence::NativeText);
  action->setToolTip(keys.isEmpty() ? spec.help : tr("%1 (%2)").arg(spec.help, keys));
  action->setWhatsThis(spec.help);
  if (spec.glyph != Glyph::none) action->setIcon(icon(spec.glyph));
  connect(action, &QAction::triggered, this, [run = std::move(run), event = "action " + ss(spec.id)] {
    note_event(event);
    run();
  });
  window_->addAction(action);
  by_id_[spec.id] = action;
  order_.push_back(action);
  return action;
}

QAction* ActionRegistry::operator[](const QString& id) const {
  return by_id_.at(id);
}

void ActionRegistry::bind(QAbstractButton& button, const QString& id) const {
  QAction* action = by_id_.at(id);
  const auto follow = [&button, action] {
    button.setEnabled(action->isEnabled());
    button.setToolTip(action->toolTip());
  };
  connect(&button, &QAbstractButton::clicked, action, &QAction::trigger);
  connect(action, &QAction::changed, &button, follow);
  follow();
}

}  // namespace mw::ui

#include "moc_action_registry.cpp"
