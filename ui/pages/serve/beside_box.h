// SPDX-License-Identifier: GPL-3.0-or-later
// Chooses another size run whose lines a page draws beside those of its own run, and reads its record. GUI thread.
#pragma once
#include <QComboBox>

#include "ui/pages/serve/size_lines.h"
#include "ui/session/background_task.h"
#include "ui/session/run_controller.h"

namespace mw::ui {

class BesideBox : public QComboBox {
  Q_OBJECT
 public:
  explicit BesideBox(RunController& runs, QWidget* parent = nullptr);
  // Offers all finished size runs but this one. Keeps the choice if it is among them.
  void offer(const store::RunId& shown);
  void choose(const store::RunId& run);
  const SizeViewPtr& view() const { return view_; }  // null: none is chosen, or it is still being read
  QString name() const { return currentText(); }

 signals:
  void view_changed();
  void problem(const mw::Problem& problem);

 protected:
  void showPopup() override;

 private:
  void show_runs(const std::vector<store::RunRow>& runs);
  void read();
  RunController& runs_;
  store::RunId shown_, read_;  // read_: of view_, or of the run that is being read
  bool opens_ = false;         // the popup, when the runs were read
  SizeViewPtr view_;
  BackgroundTask<RunPtr> reading_;
};

}  // namespace mw::ui
