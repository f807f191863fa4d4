// SPDX-License-Identifier: GPL-3.0-or-later
// What a run was made of and what came out, from its record: the frozen experiment, the facts of its start, its
// outcome and the kernel profile. Never from the form.
#pragma once
#include <QTreeWidget>

#include "ui/session/run_controller.h"

namespace mw::ui {

class RecordView : public QTreeWidget {
  Q_OBJECT
 public:
  explicit RecordView(QWidget* parent);
  void show_run(const RunPtr& run);
  void grow();

 private:
  void fill();
  RunPtr run_;
  bool started_ = false, ended_ = false;
};

}  // namespace mw::ui
