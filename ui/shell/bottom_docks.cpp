// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/bottom_docks.h"

#include <QDockWidget>
#include <QGuiApplication>
#include <QMainWindow>
#include <QProgressBar>
#include <QScrollBar>
#include <QTabBar>
#include <algorithm>

#include "core/base/units.h"
#include "ui/run_views/run_header.h"

namespace mw::ui {
namespace {

constexpr int kCollapsedHeight = 1;              // height of a collapsed dock, whose missing title counts as -1
constexpr int kHeight = 118, kLeastHeight = 60;  // default: tabs, table header and three rows

}  // namespace

BottomDocks::BottomDocks(QMainWindow& window, std::vector<QDockWidget*> docks)
    : QObject(&window), window_(window), docks_(std::move(docks)), marks_(docks_.size()), height_(kHeight) {
  // The window creates tab bars on demand and again when a layout is restored.
  window_.installEventFilter(this);
  for (QTabBar* bar : bars()) watch(bar);
}

bool BottomDocks::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::ChildPolished)
    if (auto* bar = qobject_cast<QTabBar*>(static_cast<QChildEvent*>(event)->child())) watch(bar);
  return QObject::eventFilter(watched, event);
}

void BottomDocks::watch(QTabBar* bar) {
  disconnect(bar, nullptr, this, nullptr);
  bar->setIconSize({12, 12});
  // Emitted for every mouse button, before the clicked tab becomes current.
  connect(bar, &QTabBar::tabBarClicked, this, [this, bar](int tab) {
    if (tab < 0 || QGuiApplication::mouseButtons().testFlag(Qt::RightButton)) return;
    if (tab == bar->currentIndex())
      toggle();
    else
      choose(DockState::expanded);
  });
  put_marks();
}

std::vector<QTabBar*> BottomDocks::bars() const {
  const auto all = window_.findChildren<QTabBar*>(QString(), Qt::FindDirectChildrenOnly);
  return {all.begin(), all.end()};
}

int BottomDocks::height() const {
  if (state_ == DockState::collapsed || !window_.isVisible()) return height_;
  for (const QDockWidget* dock : docks_)
    if (!dock->visibleRegion().isEmpty())
      for (const QTabBar* bar : bars())
        if (bar->isVisible()) return dock->height() + bar->height();
  return height_;
}

void BottomDocks::set(DockState state) {
  if (state == state_) return;
  height_ = height();
  state_ = state;
  for (QDockWidget* dock : docks_) {
    dock->widget()->setEnabled(state == DockState::expanded);  // keeps the focus out of hidden widgets
    dock->widget()->setMaximumHeight(state == DockState::expanded ? QWIDGETSIZE_MAX : kCollapsedHeight);
  }
  if (state == DockState::expanded) window_.resizeDocks({docks_.front()}, {height_}, Qt::Vertical);
}

void BottomDocks::restore(std::optional<DockState> chosen, int height) {
  chosen_ = chosen;
  height_ = std::max(height, kLeastHeight);
  set(chosen.value_or(DockState::collapsed));
}

void BottomDocks::choose(DockState state) {
  chosen_ = state;
  set(state);
}

void BottomDocks::toggle() {
  choose(state_ == DockState::expanded ? DockState::collapsed : DockState::expanded);
}

void BottomDocks::offer() {
  if (!chosen_) set(DockState::expanded);
}

void BottomDocks::withdraw() {
  set(chosen_.value_or(DockState::collapsed));
}

void BottomDocks::mark(const QDockWidget* dock, const QIcon& icon) {
  for (size_t i = 0; i < docks_.size(); ++i)
    if (docks_[i] == dock) marks_[i] = icon;
  put_marks();
}

void BottomDocks::put_marks() {
  for (QTabBar* bar : bars())
    for (int tab = 0; tab < bar->count(); ++tab)
      for (size_t i = 0; i < docks_.size(); ++i)
        if (bar->tabText(tab) == docks_[i]->windowTitle()) bar->setTabIcon(tab, marks_[i]);
}

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

#include "moc_bottom_docks.cpp"
