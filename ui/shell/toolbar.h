// SPDX-License-Identifier: GPL-3.0-or-later
// The toolbar: the pages, the experiment file with its menu, and the most used actions. GUI thread.
#pragma once
#include <QToolBar>
#include <functional>
#include <vector>

#include "ui/session/workspace.h"

class QMenu;
class QToolButton;

namespace mw::ui {

class Toolbar : public QToolBar {
  Q_OBJECT
 public:
  Toolbar(Workspace& workspace, std::function<void(QMenu&)> fill_file_menu, QWidget* parent);
  void show_page(Page page);
  void show_document(const Document& document);
  const QToolButton& page_button(Page page) const { return *pages_[static_cast<size_t>(page)]; }

 private:
  void add_pages();
  void add_file_button(std::function<void(QMenu&)> fill_menu);
  QToolButton* add_tool(const QString& action);
  void add_gap();
  ActionRegistry& actions_;
  std::vector<QToolButton*> pages_;
  QToolButton* file_ = nullptr;
};

}  // namespace mw::ui
