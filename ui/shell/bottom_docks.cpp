// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/bottom_docks.h"

#include <QChildEvent>
#include <QDockWidget>
#include <QGuiApplication>
#include <QMainWindow>
#include <QTabBar>
#include <algorithm>

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

}  // namespace mw::ui

#include "moc_bottom_docks.cpp"
