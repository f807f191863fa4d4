// SPDX-License-Identifier: GPL-3.0-or-later
// A question that blocks its window until one of a few verbs is chosen. Does not block the caller. GUI thread.
#pragma once
#include <QMessageBox>
#include <functional>
#include <vector>

namespace mw::ui {

struct QuestionAnswer {
  QString name;  // object name of the button
  QString text;  // a verb
  QMessageBox::ButtonRole role;
  std::function<void()> chosen{};  // empty: nothing is done
};

// The first answer is the default one (Enter); that of RejectRole is also given by Escape and by closing the box. The
// box deletes itself after the answer.
QMessageBox* ask_question(QWidget& window, const QString& name, const QString& text, const QString& details,
                          const std::vector<QuestionAnswer>& answers);

}  // namespace mw::ui
