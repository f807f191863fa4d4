// SPDX-License-Identifier: GPL-3.0-or-later
// What a page shows while it has nothing: a title, a few lines, and what to press.
#pragma once
#include <QPushButton>
#include <QStringList>
#include <vector>

namespace mw::ui {

struct EmptyPage {
  QWidget* page = nullptr;
  std::vector<QPushButton*> buttons{};  // in order; the caller connects them
};
EmptyPage empty_page(const QString& title, const QString& text, const QStringList& buttons, QWidget* parent);

}  // namespace mw::ui
