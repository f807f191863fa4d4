// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/question.h"

#include <QPushButton>
#include <utility>

namespace mw::ui {

QMessageBox* ask_question(QWidget& window, const QString& name, const QString& text, const QString& details,
                          const std::vector<QuestionAnswer>& answers) {
  auto* box =
      new QMessageBox(QMessageBox::Question, QMessageBox::tr("Meshwright"), text, QMessageBox::NoButton, &window);
  box->setObjectName(name);
  box->setTextFormat(Qt::PlainText);
  box->setInformativeText(details);
  box->setAttribute(Qt::WA_DeleteOnClose);
  std::vector<std::pair<QAbstractButton*, std::function<void()>>> actions;
  for (const QuestionAnswer& answer : answers) {
    QPushButton* button = box->addButton(answer.text, answer.role);
    button->setObjectName(answer.name);
    if (actions.empty()) box->setDefaultButton(button);
    if (answer.role == QMessageBox::RejectRole) box->setEscapeButton(button);
    actions.emplace_back(button, answer.chosen);
  }
  QObject::connect(box, &QDialog::finished, &window, [box, actions] {
    for (const auto& [button, chosen] : actions)
      if (button == box->clickedButton() && chosen) chosen();
  });
  box->open();
  return box;
}

}  // namespace mw::ui
