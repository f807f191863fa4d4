// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/toolbar.h"

#include <QMenu>
#include <QToolButton>

#include "ui/theme/text.h"

namespace mw::ui {

Toolbar::Toolbar(Workspace& workspace, std::function<void(QMenu&)> fill_file_menu, QWidget* parent)
    : QToolBar(tr("Main"), parent), actions_(workspace.actions()) {
  setObjectName(u"main"_s);
  setMovable(false);
  setIconSize({16, 16});
  setToolButtonStyle(Qt::ToolButtonIconOnly);
  setContextMenuPolicy(Qt::PreventContextMenu);
  add_pages();
  add_gap();
  add_file_button(std::move(fill_file_menu));
  for (const auto& id : {u"file.save"_s, u"edit.undo"_s, u"edit.redo"_s}) add_tool(id);
  add_gap();
  actions_[u"run.start"_s]->setIcon(icon(Glyph::run, IconColor::on_accent));
  QToolButton* run = add_tool(u"run.start"_s);
  run->setObjectName(u"run"_s);
  for (QToolButton* button : {run, add_tool(u"run.pause"_s), add_tool(u"run.stop"_s)})
    button->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  addSeparator();
  add_tool(u"view.theme"_s);
  add_tool(u"view.palette"_s)->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  actions_[u"view.palette"_s]->setIconText(tr("Ctrl+K"));
}

void Toolbar::add_pages() {
  for (const auto& [text, action] : {std::pair{tr("Design"), u"page.design"_s},
                                     {tr("Data"), u"page.data"_s},
                                     {tr("Train"), u"page.train"_s},
                                     {tr("Serve"), u"page.serve"_s},
                                     {tr("Compare"), u"page.compare"_s},
                                     {tr("Runs"), u"page.runs"_s}}) {
    auto* button = new QToolButton(this);
    button->setObjectName(u"page"_s);
    button->setText(text);
    button->setCheckable(true);
    button->setToolTip(actions_[action]->toolTip());
    button->setAccessibleName(tr("%1 page").arg(text));
    connect(button, &QToolButton::clicked, actions_[action], &QAction::trigger);
    addWidget(button);
    pages_.push_back(button);
  }
}

void Toolbar::add_file_button(std::function<void(QMenu&)> fill_menu) {
  file_ = new QToolButton(this);
  file_->setObjectName(u"file"_s);
  file_->setAccessibleName(tr("Experiment file"));
  file_->setPopupMode(QToolButton::InstantPopup);
  file_->setToolButtonStyle(Qt::ToolButtonTextOnly);
  auto* menu = new QMenu(file_);
  connect(menu, &QMenu::aboutToShow, this, [menu, fill = std::move(fill_menu)] { fill(*menu); });
  file_->setMenu(menu);
  addWidget(file_);
}

QToolButton* Toolbar::add_tool(const QString& action) {
  addAction(actions_[action]);
  auto* button = static_cast<QToolButton*>(widgetForAction(actions_[action]));
  button->setFocusPolicy(Qt::TabFocus);
  button->setAccessibleName(actions_[action]->text());
  return button;
}

void Toolbar::add_gap() {
  auto* gap = new QWidget(this);
  gap->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
  addWidget(gap);
}

void Toolbar::show_page(Page page) {
  for (size_t i = 0; i < pages_.size(); ++i) pages_[i]->setChecked(i == static_cast<size_t>(page));
}

void Toolbar::show_document(const Document& document) {
  const QString name = document.title() + (document.is_dirty() ? u" \u2022"_s : QString());
  file_->setText(file_->fontMetrics().elidedText(name, Qt::ElideMiddle, 240));
  file_->setToolTip(document.file().empty() ? tr("Not saved to a file yet") : qpath(document.file()));
}

}  // namespace mw::ui
