// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/ui/window_fixture.h"

#include <QPushButton>
#include <QTest>

#include "ui/theme/text.h"

namespace mw::test {

using namespace ui;

void WindowFixture::init() {
  warnings_.start();
  scratch_ = std::make_unique<Scratch>();
}

void WindowFixture::cleanup() {
  window_.reset();
  scratch_.reset();
  QCOMPARE(warnings_.take().join(u"; "_s), QString());
}

WindowSetup WindowFixture::setup(const std::filesystem::path& experiment) const {
  return {experiment, store(), MW_RESOURCES, folder() / "state"};
}

// The offscreen screen has 800x800 pixels, and a new window takes a part of it.
void WindowFixture::show(MainWindow& window) {
  window.resize(window.size().expandedTo({1280, 800}));
  window.show();
  QVERIFY(QTest::qWaitForWindowExposed(&window));
  QApplication::setActiveWindow(&window);
}

void WindowFixture::open_window(const WindowSetup& setup, Page page) {
  window_ = std::make_unique<MainWindow>(setup);
  window_->resize(1280, 800);
  show(*window_);
  window_->show_page(page);
}

QPushButton* WindowFixture::button(const QString& text) {
  for (QPushButton* b : window_->centralWidget()->findChildren<QPushButton*>())
    if (b->text() == text && b->isVisible()) return b;
  return nullptr;
}

void WindowFixture::press(const QString& text) {
  QTRY_VERIFY2(button(text) && button(text)->isEnabled(), qPrintable(text));
  QTest::mouseClick(button(text), Qt::LeftButton);
}

void WindowFixture::picture(const QString& name) {
  QTest::qWait(80);
  save_picture(*window_, name);
}

}  // namespace mw::test
