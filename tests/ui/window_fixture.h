// SPDX-License-Identifier: GPL-3.0-or-later
// What tests of the whole window share: a scratch folder for each, the window in it, buttons by their text, pictures in
// $MW_PICTURES, else the build folder. A Qt warning fails the test.
#pragma once
#include <QObject>

#include "tests/ui/support.h"
#include "ui/shell/main_window.h"

class QPushButton;

namespace mw::test {

class WindowFixture : public QObject {
  Q_OBJECT
 protected:
  std::filesystem::path folder() const { return scratch_->path(); }
  std::filesystem::path store() const { return folder() / "runs"; }
  // Of this test's folder: its runs, and what the window remembers.
  ui::WindowSetup setup(const std::filesystem::path& experiment = {}) const;
  void open_window(const ui::WindowSetup& setup, ui::Page page);  // shown, active
  static void show(ui::MainWindow& window);
  QPushButton* button(const QString& text);  // of the page, visible; or null
  void press(const QString& text);
  void picture(const QString& name);

  std::unique_ptr<Scratch> scratch_;
  std::unique_ptr<ui::MainWindow> window_;

 protected slots:
  void init();
  void cleanup();

 private:
  WarningWatch warnings_;
};

}  // namespace mw::test
