// SPDX-License-Identifier: GPL-3.0-or-later
// Ensures that the window asks at most one question at a time. GUI thread.
#pragma once
#include <QPointer>

#include "ui/theme/question.h"

namespace mw::ui {

class PendingQuestion {
 public:
  explicit PendingQuestion(QWidget& window) : window_(window) {}
  bool raise() {  // false: there is none
    if (!box_ || !box_->isVisible()) return false;
    box_->raise();
    return true;
  }
  void ask(const QString& name, const QString& text, const QString& details,
           const std::vector<QuestionAnswer>& answers) {
    box_ = ask_question(window_, name, text, details, answers);
  }
  void reject() {
    if (box_ && box_->isVisible()) box_->reject();
  }

 private:
  QWidget& window_;
  QPointer<QMessageBox> box_;
};

}  // namespace mw::ui
