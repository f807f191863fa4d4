// SPDX-License-Identifier: GPL-3.0-or-later
// Dialog that follows a run which another program is making: a file, pipe or URL of event lines, a vLLM server, or a
// log folder. GUI thread.
#pragma once
#include "ui/session/dialog_parts.h"
#include "ui/session/run_controller.h"

namespace mw::ui {

class AttachDialog : public TaskDialog {
  Q_OBJECT
 public:
  explicit AttachDialog(RunController& runs, QWidget* parent = nullptr);
  QLineEdit& source() { return *source_; }
  QLineEdit& name() { return *name_; }

 public slots:
  void reject() override;  // stops an attempt in progress

 private:
  void build();
  void show_state();
  void begin();

  RunController& runs_;
  QLineEdit *source_, *name_;
  QLabel* command_;
  bool waiting_ = false;
};

}  // namespace mw::ui
