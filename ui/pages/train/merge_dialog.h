// SPDX-License-Identifier: GPL-3.0-or-later
// Dialog that merges an adapter into its base model: three folders, progress, result of the comparison. GUI thread.
#pragma once
#include "ui/session/background_task.h"
#include "ui/theme/dialog_parts.h"

namespace mw::ui {

class MergeDialog : public TaskDialog {
  Q_OBJECT
 public:
  explicit MergeDialog(QWidget* parent = nullptr);
  void open_with(const std::filesystem::path& base, const std::filesystem::path& adapter,
                 const std::filesystem::path& out);
  BackgroundWork& task() { return task_; }
  QLineEdit& base() { return *base_; }
  QLineEdit& adapter() { return *adapter_; }
  QLineEdit& out() { return *out_; }
  QLineEdit& alpha() { return *alpha_; }

 public slots:
  void reject() override;  // cancels a merge in progress

 private:
  void show_state();
  void show_outcome();
  void begin();

  BackgroundTask<QString> task_{"MERGE"};  // its result is the verdict as text
  QLineEdit *base_, *adapter_, *out_, *alpha_;
};

}  // namespace mw::ui
