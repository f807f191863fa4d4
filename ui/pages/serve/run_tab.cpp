// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/serve/run_tab.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QStackedWidget>

namespace mw::ui {

RunTab::RunTab(RunController& runs, RunKind kind, QWidget* parent)
    : QWidget(parent), runs_(runs), kind_(kind), column_(make_layout<QVBoxLayout>(this, {8, 4, 8, 6}, 4)) {
  setObjectName(u"pageBody"_s);
  connect(&runs_, &RunController::shown_changed, this, &RunTab::adopt);
  connect(&runs_, &RunController::shown_updated, this, [this] { changed_ = true; });
  connect(&runs_, &RunController::state_changed, this, [this] { changed_ = true; });
}

void RunTab::build(const Texts& texts, QWidget* beside) {
  action_ = texts.action;
  header_ = new RunHeader(runs_, this);
  stack_ = new QStackedWidget(this);
  auto* top = new QHBoxLayout;
  top->addWidget(beside ? beside : header_, 1);
  start_ = add_button(*top, texts.start, texts.start_tip, Glyph::run);
  stop_ = add_button(*top, tr("Stop"), texts.stop_tip, Glyph::stop);
  for (QPushButton* button : {start_, stop_}) top->setAlignment(button, Qt::AlignBottom);
  column_->addLayout(top);
  if (beside) column_->addWidget(header_);
  column_->addWidget(stack_, 1);
  connect(start_, &QPushButton::clicked, this, [this] { workspace_->trigger(action_); });
  connect(stop_, &QPushButton::clicked, this, [this] { workspace_->trigger(u"run.stop"_s); });
  const auto show_settings = [this, key = texts.setting] { workspace_->show_setting(key); };
  stack_->addWidget(empty_page(texts.empty_title, texts.empty_text,
                               {{texts.show_settings, show_settings},
                                {tr("Show Earlier Runs"), [this] { workspace_->show_page(Page::runs); }}},
                               this)
                        .page);
  auto* full = new QWidget(this);
  content_ = flush_layout<QVBoxLayout>(full, 4);
  auto* bar = new QWidget(full);
  bar_ = make_layout<QHBoxLayout>(bar, {2, 0, 0, 0}, 6);
  label_ = new ElidedLabel(Qt::ElideRight, bar);
  bar_->addWidget(label_, 1);
  connect(add_button(*bar_, tr("Show Settings"), texts.settings_tip), &QPushButton::clicked, this, show_settings);
  connect(add_button(*bar_, tr("Copy Table"), texts.copy_tip, Glyph::copy), &QPushButton::clicked, this,
          [this] { QGuiApplication::clipboard()->setText(csv()); });
  content_->addWidget(bar);
  stack_->addWidget(full);
}

void RunTab::adopt() {
  const RunPtr run = runs_.shown(kind_);
  if (run && run == run_) return;
  run_ = run;
  link_.reset();
  reset();
  stack_->setCurrentIndex(run_ ? 1 : 0);
  changed_ = true;
  show_frame();
}

bool RunTab::show_changes() {
  if (!std::exchange(changed_, false)) return false;
  const RunPtr live = runs_.live();
  header_->show_run(run_, kind_);
  start_->setEnabled(!live);
  stop_->setEnabled(live && live->kind() == kind_ && !runs_.is_stopping());
  return true;
}

}  // namespace mw::ui

#include "moc_run_tab.cpp"
