// SPDX-License-Identifier: GPL-3.0-or-later
// The toolbar: the pages, the experiment file with its menu, and the most used actions. GUI thread.
#pragma once
#include <QToolBar>

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

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void show_name();
  void add_pages();
  void add_file_button(std::function<void(QMenu&)> fill_menu);
  QToolButton* add_tool(const QString& action);
  QToolButton* add_text_tool(const QString& action, const QStringList& texts);  // all that it may show
  void add_help();
  void add_gap();
  ActionRegistry& actions_;
  static constexpr int kLongName = 240;
  std::vector<QToolButton*> pages_;
  std::vector<std::pair<QToolButton*, int>> compact_;  // icons only in a narrow window; width with text
  QString name_;                                       // of the document
  int name_width_ = kLongName;                         // that it may take; pixels
  QToolButton* file_ = nullptr;
};

}  // namespace mw::ui
