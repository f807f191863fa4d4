// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/bottom_panels.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QScrollBar>

#include "core/base/units.h"
#include "ui/run_views/run_header.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"
#include "ui/theme/widgets.h"

namespace mw::ui {

LogPanel::LogPanel(QWidget* parent) : QPlainTextEdit(parent) {
  setReadOnly(true);
  setFont(mono_font(0.92));
  setWordWrapMode(QTextOption::WrapAtWordBoundaryOrAnywhere);
  setMaximumBlockCount(20000);
  setAccessibleName(tr("Log of the run"));
  setPlaceholderText(tr("The log of the displayed run appears here"));
}

void LogPanel::show_run(RunPtr run) {
  run_ = std::move(run);
  shown_ = 0;
  clear();
  grow();
}

void LogPanel::grow() {
  if (!run_) return;
  const auto& log = run_->view.log();
  const size_t dropped = run_->view.log_lines_dropped(), total = dropped + log.size();
  if (total < shown_) {  // the run was rewound
    clear();
    shown_ = 0;
  }
  if (total == shown_) return;
  const bool follow = verticalScrollBar()->value() >= verticalScrollBar()->maximum() - 2;
  QTextCursor cursor(document());
  cursor.movePosition(QTextCursor::End);
  for (size_t i = std::max(shown_, dropped) - dropped; i < log.size(); ++i) {
    QTextCharFormat time, text;
    time.setForeground(theme().muted);
    text.setForeground(log[i].level == "error" ? theme().bad : log[i].level == "warning" ? theme().warn : theme().text);
    if (!document()->isEmpty()) cursor.insertBlock();
    cursor.insertText(QString(qs(to_text(Seconds(log[i].time_s))).rightJustified(8) + u"  "_s), time);
    cursor.insertText(qs(log[i].text), text);
  }
  shown_ = total;
  if (follow) verticalScrollBar()->setValue(verticalScrollBar()->maximum());
}

JobsPanel::JobsPanel(RunController& runs, ActionRegistry& actions, QWidget* parent)
    : QWidget(parent),
      runs_(runs),
      idle_(muted_label(tr("Nothing is running"), this)),
      name_(new QLabel),
      steps_(new QLabel),
      eta_(new QLabel),
      bar_(new QProgressBar),
      pause_(new QPushButton(tr("Pause"))),
      stop_(new QPushButton(tr("Stop"))),
      show_(new QPushButton(tr("Show"))),
      row_(new QWidget(this)) {
  setObjectName(u"panelBody"_s);
  setAttribute(Qt::WA_StyledBackground);
  auto* column = make_layout<QVBoxLayout>(this, {10, 6, 10, 6});
  auto* row = flush_layout<QHBoxLayout>(row_, 12);
  row->addWidget(name_);
  row->addWidget(bar_, 1);
  row->addWidget(steps_);
  row->addWidget(eta_);
  row->addWidget(show_);
  row->addWidget(pause_);
  row->addWidget(stop_);
  bar_->setTextVisible(false);
  bar_->setAccessibleName(tr("Progress of the job"));
  column->addWidget(row_);
  column->addWidget(idle_, 0, Qt::AlignCenter);
  column->addStretch(1);
  for (const auto& [button, action] :
       {std::pair{pause_, u"run.pause"_s}, {stop_, u"run.stop"_s}, {show_, u"view.live"_s}})
    connect(button, &QPushButton::clicked, this, [&actions, id = action] { actions[id]->trigger(); });
}

void JobsPanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  show_frame();
}

void JobsPanel::show_frame() {
  if (!isVisible()) return;
  const RunPtr run = runs_.live();
  row_->setVisible(run != nullptr);
  idle_->setVisible(!run);
  if (!run) return;
  const bool paused = run->view.state() == RunState::paused;
  name_->setText((run->kind() == RunKind::size    ? tr("Size %1")
                  : run->kind() == RunKind::sweep ? tr("Sweep %1")
                                                  : tr("Train %1"))
                     .arg(qs(run->id.empty() ? run->name : run->id)));
  show_steps_and_eta(*steps_, *eta_, run->view);
  if (runs_.is_stopping() || paused) eta_->setText(runs_.is_stopping() ? tr("Stopping") : tr("Paused"));
  pause_->setText(paused ? tr("Resume") : tr("Pause"));
  pause_->setEnabled(!runs_.is_stopping());
  stop_->setEnabled(!runs_.is_stopping());
  show_progress(*bar_, run->view);
}

}  // namespace mw::ui

#include "moc_bottom_panels.cpp"
