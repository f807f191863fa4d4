// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/toolbar.h"

#include <QMenu>
#include <QToolButton>
#include <algorithm>

#include "ui/session/action_registry.h"
#include "ui/session/document.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

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
  add_text_tool(u"run.start"_s, {tr("Run"), tr("Launch\u2026")})->setObjectName(u"run"_s);
  for (QToolButton* button :
       {add_text_tool(u"run.pause"_s, {tr("Pause"), tr("Resume")}), add_text_tool(u"run.stop"_s, {tr("Stop")})})
    compact_.emplace_back(button, button->minimumWidth());
  addSeparator();
  add_tool(u"view.theme"_s);
  QToolButton* palette = add_text_tool(u"view.palette"_s, {tr("Ctrl+K")});
  compact_.emplace_back(palette, palette->minimumWidth());
  actions_[u"view.palette"_s]->setIconText(tr("Ctrl+K"));
  add_help();
}

// As wide as its widest text, so that the toolbar does not move when the text changes.
QToolButton* Toolbar::add_text_tool(const QString& action, const QStringList& texts) {
  QToolButton* button = add_tool(action);
  button->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  const QFontMetrics metrics(demi_bold(button->font()));
  int widest = 0;
  for (const QString& text : texts) widest = std::max(widest, metrics.horizontalAdvance(text));
  constexpr int kAround = 60;  // icon, paddings and spacing
  button->setMinimumWidth(widest + kAround);
  return button;
}

// A narrow window shows icons instead of texts, so that no button is out of reach.
void Toolbar::resizeEvent(QResizeEvent* event) {
  QToolBar::resizeEvent(event);
  constexpr int kWide = 1180, kShortName = 80;
  const bool narrow = width() < kWide;
  const int name_width = narrow ? kShortName : kLongName;
  if (name_width_ == name_width) return;
  name_width_ = name_width;
  for (const auto& [button, width] : compact_) {
    button->setMinimumWidth(narrow ? 0 : width);
    button->setToolButtonStyle(narrow ? Qt::ToolButtonIconOnly : Qt::ToolButtonTextBesideIcon);
  }
  show_name();
}

void Toolbar::add_help() {
  auto* help = new QToolButton(this);
  help->setIcon(icon(Glyph::help));
  help->setAccessibleName(tr("Help"));
  help->setToolTip(tr("Manual, keyboard shortcuts and information about Meshwright"));
  help->setPopupMode(QToolButton::InstantPopup);
  auto* menu = new QMenu(help);
  for (const auto& id : {u"help.manual"_s, u"help.shortcuts"_s, u"help.welcome"_s, u"help.about"_s})
    menu->addAction(actions_[id]);
  help->setMenu(menu);
  addWidget(help);
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
  name_ = document.title() + (document.is_dirty() ? u" \u2022"_s : QString());
  show_name();
  file_->setToolTip(document.file().empty() ? tr("Not saved to a file yet") : qpath(document.file()));
}

void Toolbar::show_name() {
  file_->setText(file_->fontMetrics().elidedText(name_, Qt::ElideMiddle, name_width_));
}

}  // namespace mw::ui

#include "moc_toolbar.cpp"
