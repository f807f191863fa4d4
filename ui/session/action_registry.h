// SPDX-License-Identifier: GPL-3.0-or-later
// Every command of the window once: id, text, shortcut, icon. Toolbar, menus and the command palette are fed from it.
#pragma once
#include <QAction>
#include <QObject>
#include <functional>
#include <map>
#include <vector>

#include "ui/theme/icons.h"

namespace mw::ui {

struct ActionSpec {
  QString id{}, text{}, help{};  // text in header caps, help one sentence
  QKeySequence shortcut{};
  Glyph glyph = Glyph::none;
};

class ActionRegistry : public QObject {
  Q_OBJECT
 public:
  explicit ActionRegistry(QWidget* window);
  QAction* add(const ActionSpec& spec, std::function<void()> run);
  QAction* operator[](const QString& id) const;  // must exist
  const std::vector<QAction*>& all() const { return order_; }

 private:
  QWidget* window_;
  std::map<QString, QAction*> by_id_;
  std::vector<QAction*> order_;
};

}  // namespace mw::ui
