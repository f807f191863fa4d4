// SPDX-License-Identifier: GPL-3.0-or-later
// A button that can be clicked, or dragged to carry its run.
#pragma once
#include <QPushButton>
#include <functional>

#include "core/store/store.h"

namespace mw::ui {

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
