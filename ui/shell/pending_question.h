// SPDX-License-Identifier: GPL-3.0-or-later
// Asks window-modal questions with one button per answer, at most one at a time. Does not block the caller. GUI thread.
#pragma once
#include <QMessageBox>
#include <QPointer>
#include <functional>
#include <vector>

namespace mw::ui {

struct QuestionAnswer {
  QString name;  // object name of the button
  QString text;  // a verb
  QMessageBox::ButtonRole role;
  std::function<void()> chosen{};  // may be empty
};

class PendingQuestion {
 public:
  explicit PendingQuestion(QWidget& window) : window_(window) {}
  bool raise();  // false: there is none
  // The first answer is the default (Enter). Escape and closing the box give the answer with RejectRole. The box
  // deletes itself afterwards.
  void ask(const QString& name, const QString& text, const QString& details,
           const std::vector<QuestionAnswer>& answers);
  void reject();

 private:
  QWidget& window_;
  QPointer<QMessageBox> box_;
};

}  // namespace mw::ui
