// SPDX-License-Identifier: GPL-3.0-or-later
// Dragging runs from the Runs table and the Serve page to the Compare page: MIME data and a button.
#pragma once
#include <QMimeData>
#include <QPushButton>
#include <functional>
#include <vector>

#include "core/store/store.h"

namespace mw::ui {

QString run_mime_type();
QMimeData* run_mime(const std::vector<store::RunId>& runs);
std::vector<store::RunId> runs_in(const QMimeData& data);

// A button that can be clicked, or dragged to carry its run.
class DragButton : public QPushButton {
  Q_OBJECT
 public:
  using QPushButton::QPushButton;
  void set_run(std::function<store::RunId()> run) { run_ = std::move(run); }

 protected:
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;

 private:
  std::function<store::RunId()> run_;
  QPoint pressed_at_;
};

}  // namespace mw::ui
