// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/empty_page.h"

#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/theme/widgets.h"

namespace mw::ui {

EmptyPage empty_page(const QString& title, const QString& text, const std::vector<EmptyPageButton>& buttons,
                     QWidget* parent) {
  EmptyPage out{.page = new QWidget(parent)};
  auto* column = new QVBoxLayout(out.page);
  column->setAlignment(Qt::AlignCenter);
  column->setSpacing(10);
  out.title = new QLabel(title, out.page);
  QFont big = out.title->font();
  big.setPointSizeF(big.pointSizeF() * 1.4);
  big.setWeight(QFont::DemiBold);
  out.title->setFont(big);
  out.text = muted_label(text, out.page);
  out.text->setAlignment(Qt::AlignCenter);
  auto* row = new QHBoxLayout;
  row->setAlignment(Qt::AlignCenter);
  for (const EmptyPageButton& b : buttons) {
    auto* button = new QPushButton(b.text, out.page);
    button->setToolTip(b.tooltip);
    QObject::connect(button, &QPushButton::clicked, out.page, b.run);
    row->addWidget(button);
  }
  column->addWidget(out.title, 0, Qt::AlignCenter);
  column->addWidget(out.text, 0, Qt::AlignCenter);
  column->addLayout(row);
  return out;
}

}  // namespace mw::ui
