// SPDX-License-Identifier: GPL-3.0-or-later
// The content of a page without data: a title, a few lines and buttons. GUI thread.
#pragma once
#include <QString>
#include <functional>
#include <vector>

class QLabel;
class QWidget;

namespace mw::ui {

struct EmptyPage {
  QWidget* page = nullptr;
  QLabel *title = nullptr, *text = nullptr;
};
struct EmptyPageButton {
  QString text;
  std::function<void()> run;
  QString tooltip{};
};
EmptyPage empty_page(const QString& title, const QString& text, const std::vector<EmptyPageButton>& buttons,
                     QWidget* parent);

}  // namespace mw::ui
