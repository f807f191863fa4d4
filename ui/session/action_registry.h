// SPDX-License-Identifier: GPL-3.0-or-later
// Registry of all commands of the window: id, text, shortcut, icon. Toolbar, menus and command palette show them.
#pragma once
#include <QAction>
#include <QObject>
#include <functional>
#include <map>
#include <vector>

#include "ui/theme/icons.h"

class QAbstractButton;

namespace mw::ui {

struct ActionSpec {
  QString id{}, text{}, help{};  // text: title case; help: one sentence
  QKeySequence shortcut{};
  Glyph glyph = Glyph::none;
};

class ActionRegistry : public QObject {
  Q_OBJECT
 public:
  explicit ActionRegistry(QWidget* window);
  QAction* add(const ActionSpec& spec, std::function<void()> run);
  QAction* operator[](const QString& id) const;  // must exist
  // The button triggers the action and takes over whether it is enabled and why.
  void bind(QAbstractButton& button, const QString& id) const;
  const std::vector<QAction*>& all() const { return order_; }

 private:
  QWidget* window_;
  std::map<QString, QAction*> by_id_;
  std::vector<QAction*> order_;
};

}  // namespace mw::ui
