// SPDX-License-Identifier: GPL-3.0-or-later
// A journey through the real window: one small project and one window for all stations, in the order of the test
// functions; a numbered picture at each in $MW_PICTURES, else the build folder. A Qt warning fails a station.
#pragma once
#include <QObject>

#include "tests/cli/project.h"
#include "tests/ui/support.h"
#include "ui/shell/main_window.h"

namespace mw::test {

class Journey : public QObject {
  Q_OBJECT
 protected:
  explicit Journey(const QString& pictures) : pictures_(pictures) {}
  void make_project();
  void open_window(const std::string& experiment);           // JSON merged into the project's; shown, active
  void picture(const QString& name, QWidget* of = nullptr);  // null: of the window

  std::unique_ptr<Project> project_;
  std::unique_ptr<ui::MainWindow> window_;

 protected slots:
  void init();
  void cleanup();
  void cleanupTestCase();

 private:
  QString pictures_;  // what their names begin with
  int station_ = 0;
  WarningWatch warnings_;
};

}  // namespace mw::test
