// SPDX-License-Identifier: GPL-3.0-or-later
// The record of a run: the frozen experiment, facts about its start, the outcome and the kernel profile. Independent of
// the form. GUI thread.
#pragma once
#include <QTreeWidget>

#include "ui/session/run_controller.h"

namespace mw::ui {

class RecordView : public QTreeWidget {
  Q_OBJECT
 public:
  RecordView(plan::LoadContext context, QWidget* parent);
  void show_run(const RunPtr& run);
  void grow();

 private:
  void fill();
  void add_audit();
  plan::LoadContext context_;
  RunPtr run_;
  bool started_ = false, ended_ = false;
};

}  // namespace mw::ui
