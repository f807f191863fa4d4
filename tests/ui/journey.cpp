// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/ui/journey.h"

#include <QApplication>
#include <QTest>

#include "ui/theme/text.h"

namespace mw::test {

using namespace ui;

void Journey::make_project() {
  warnings_.start();
  project_ = std::make_unique<Project>();
}

void Journey::open_window(const std::string& experiment) {
  project_->write_experiment(parse_json(experiment, "journey"));
  window_ = std::make_unique<MainWindow>(
      WindowSetup{project_->experiment, project_->runs, MW_RESOURCES, project_->folder / "state"});
  window_->resize(1280, 800);
  window_->show();
  QVERIFY(QTest::qWaitForWindowExposed(window_.get()));
  QApplication::setActiveWindow(window_.get());
}

void Journey::picture(const QString& name, QWidget* of) {
  QTest::qWait(120);
  save_picture(of ? *of : *window_, u"%1%2-%3"_s.arg(pictures_).arg(++station_, 2, 10, QChar(u'0')).arg(name));
}

void Journey::init() {
  warnings_.start();
}

void Journey::cleanup() {
  QCOMPARE(warnings_.take().join(u"; "_s), QString());
}

void Journey::cleanupTestCase() {
  window_.reset();
  project_.reset();
}

}  // namespace mw::test
