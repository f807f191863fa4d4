// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/pending_question.h"

#include <QPushButton>
#include <utility>

namespace mw::ui {

bool PendingQuestion::raise() {
  if (!box_ || !box_->isVisible()) return false;
  box_->raise();
  return true;
}

void PendingQuestion::ask(const QString& name, const QString& text, const QString& details,
                          const std::vector<QuestionAnswer>& answers) {
  box_ = new QMessageBox(QMessageBox::Question, QMessageBox::tr("Meshwright"), text, QMessageBox::NoButton, &window_);
  box_->setObjectName(name);
  box_->setTextFormat(Qt::PlainText);
  box_->setInformativeText(details);
  box_->setAttribute(Qt::WA_DeleteOnClose);
  std::vector<std::pair<QAbstractButton*, std::function<void()>>> actions;
  for (const QuestionAnswer& answer : answers) {
    QPushButton* button = box_->addButton(answer.text, answer.role);
    button->setObjectName(answer.name);
    if (actions.empty()) box_->setDefaultButton(button);
    if (answer.role == QMessageBox::RejectRole) box_->setEscapeButton(button);
    actions.emplace_back(button, answer.chosen);
  }
  QObject::connect(box_.data(), &QDialog::finished, &window_, [box = box_.data(), actions] {
    for (const auto& [button, chosen] : actions)
      if (button == box->clickedButton() && chosen) chosen();
  });
  box_->open();
}

void PendingQuestion::reject() {
  if (box_ && box_->isVisible()) box_->reject();
}

}  // namespace mw::ui
