// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/empty_page.h"

#include <QLabel>
#include <QVBoxLayout>

#include "ui/theme/widgets.h"

namespace mw::ui {

EmptyPage empty_page(const QString& title, const QString& text, const QStringList& buttons, QWidget* parent) {
  EmptyPage out{.page = new QWidget(parent)};
  auto* column = new QVBoxLayout(out.page);
  column->setAlignment(Qt::AlignCenter);
  column->setSpacing(10);
  auto* heading = new QLabel(title, out.page);
  QFont big = heading->font();
  big.setPointSizeF(big.pointSizeF() * 1.4);
  big.setWeight(QFont::DemiBold);
  heading->setFont(big);
  auto* lines = muted_label(text, out.page);
  lines->setAlignment(Qt::AlignCenter);
  auto* row = new QHBoxLayout;
  row->setAlignment(Qt::AlignCenter);
  for (const QString& label : buttons) {
    out.buttons.push_back(new QPushButton(label, out.page));
    row->addWidget(out.buttons.back());
  }
  column->addWidget(heading, 0, Qt::AlignCenter);
  column->addWidget(lines, 0, Qt::AlignCenter);
  column->addLayout(row);
  return out;
}

}  // namespace mw::ui
