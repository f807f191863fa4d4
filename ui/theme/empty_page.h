// SPDX-License-Identifier: GPL-3.0-or-later
// The content of a page without data: a title, a few lines and buttons. GUI thread.
#pragma once
#include <QPushButton>
#include <QStringList>
#include <vector>

class QLabel;

namespace mw::ui {

struct EmptyPage {
  QWidget* page = nullptr;
  QLabel *title = nullptr, *text = nullptr;
  std::vector<QPushButton*> buttons{};  // in order; the caller connects them
};
EmptyPage empty_page(const QString& title, const QString& text, const QStringList& buttons, QWidget* parent);

}  // namespace mw::ui
