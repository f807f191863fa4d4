// SPDX-License-Identifier: GPL-3.0-or-later
// The toolbar and the menu of files in it.
#include <QDir>
#include <QFileInfo>
#include <QMenu>
#include <QToolBar>
#include <QToolButton>

#include "ui/shell/main_window.h"
#include "ui/theme/text.h"

namespace mw::ui {

void MainWindow::build_toolbar() {
  QToolBar* bar = addToolBar(tr("Main"));
  bar->setObjectName(u"main"_s);
  bar->setMovable(false);
  bar->setIconSize({16, 16});
  bar->setToolButtonStyle(Qt::ToolButtonIconOnly);
  bar->setContextMenuPolicy(Qt::PreventContextMenu);
  const auto page = [&](const QString& text, const QString& action) {
    auto* b = new QToolButton(bar);
    b->setObjectName(u"page"_s);
    b->setText(text);
    b->setCheckable(true);
    b->setFocusPolicy(Qt::TabFocus);
    b->setToolTip(actions_[action]->toolTip());
    b->setAccessibleName(tr("%1 page").arg(text));
    connect(b, &QToolButton::clicked, actions_[action], &QAction::trigger);
    bar->addWidget(b);
    page_buttons_.push_back(b);
  };
  page(tr("Design"), u"page.design"_s);
  page(tr("Data"), u"page.data"_s);
  page(tr("Train"), u"page.train"_s);
  page(tr("Serve"), u"page.serve"_s);
  page(tr("Compare"), u"page.compare"_s);
  page(tr("Runs"), u"page.runs"_s);
  const auto gap = [&](bool grow) {
    auto* s = new QWidget(bar);
    s->setSizePolicy(grow ? QSizePolicy::Expanding : QSizePolicy::Fixed, QSizePolicy::Preferred);
    if (!grow) s->setFixedWidth(6);
    bar->addWidget(s);
  };
  gap(true);
  file_button_ = new QToolButton(bar);
  file_button_->setObjectName(u"file"_s);
  file_button_->setFocusPolicy(Qt::TabFocus);
  file_button_->setAccessibleName(tr("Experiment file"));
  file_button_->setPopupMode(QToolButton::InstantPopup);
  file_button_->setToolButtonStyle(Qt::ToolButtonTextOnly);
  auto* menu = new QMenu(file_button_);
  connect(menu, &QMenu::aboutToShow, this, [this, menu] { fill_recent(menu); });
  file_button_->setMenu(menu);
  bar->addWidget(file_button_);
  const auto tool = [&](const QString& action) {
    bar->addAction(actions_[action]);
    QWidget* b = bar->widgetForAction(actions_[action]);
    b->setFocusPolicy(Qt::TabFocus);
    b->setAccessibleName(actions_[action]->text());
    return b;
  };
  tool(u"file.save"_s);
  tool(u"edit.undo"_s);
  tool(u"edit.redo"_s);
  gap(true);
  QWidget* run = tool(u"run.start"_s);
  run->setObjectName(u"run"_s);
  static_cast<QToolButton*>(run)->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  actions_[u"run.start"_s]->setIcon(icon(Glyph::run, Ink::on_accent));
  for (const auto& id : {u"run.pause"_s, u"run.stop"_s})
    static_cast<QToolButton*>(tool(id))->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  bar->addSeparator();
  tool(u"view.theme"_s);
  auto* command = static_cast<QToolButton*>(tool(u"view.palette"_s));
  command->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  actions_[u"view.palette"_s]->setIconText(tr("Ctrl+K"));
  auto* panels = new QToolButton(strip_);
  panels->setDefaultAction(actions_[u"view.panels"_s]);
  panels->setProperty("flat", true);
  panels->setFocusPolicy(Qt::TabFocus);
  panels->setAccessibleName(actions_[u"view.panels"_s]->text());
  strip_->addPermanentWidget(panels);
}

void MainWindow::fill_recent(QMenu* menu) {
  menu->clear();
  for (const auto& id : {u"file.new"_s, u"file.open"_s, u"file.save"_s, u"file.save_as"_s, u"file.export"_s})
    menu->addAction(actions_[id]);
  const auto add = [&](const QString& title, const QStringList& files, bool example) {
    if (files.isEmpty()) return;
    menu->addSection(title);
    for (const QString& file : files) {
      const QString name = QFileInfo(file).fileName();
      QAction* a = menu->addAction(menu->fontMetrics().elidedText(example ? name : file, Qt::ElideMiddle, 420));
      a->setToolTip(file);
      connect(a, &QAction::triggered, this,
              [this, file, example] { example ? open_example(fspath(file)) : open_file(fspath(file)); });
    }
  };
  add(tr("Recent"), session_.recent(), false);
  QStringList examples;
  const QDir folder(qpath(setup_.resources / "examples"));
  for (const QString& name : folder.entryList({u"*.json"_s}, QDir::Files, QDir::Name))
    examples << folder.filePath(name);
  add(tr("Examples"), examples, true);
  menu->addSection(tr("Help"));
  menu->addAction(actions_[u"help.manual"_s]);
}

}  // namespace mw::ui
