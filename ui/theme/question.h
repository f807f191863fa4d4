// SPDX-License-Identifier: GPL-3.0-or-later
// A window-modal question with one button per answer. Does not block the caller. GUI thread.
#pragma once
#include <QMessageBox>
#include <functional>
#include <vector>

namespace mw::ui {

struct QuestionAnswer {
  QString name;  // object name of the button
  QString text;  // a verb
  QMessageBox::ButtonRole role;
  std::function<void()> chosen{};  // may be empty
};

// The first answer is the default (Enter). Escape and closing the box give the answer with RejectRole. The box deletes
// itself afterwards.
QMessageBox* ask_question(QWidget& window, const QString& name, const QString& text, const QString& details,
                          const std::vector<QuestionAnswer>& answers);

}  // namespace mw::ui
