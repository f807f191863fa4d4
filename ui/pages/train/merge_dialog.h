// SPDX-License-Identifier: GPL-3.0-or-later
// An adapter added into its base model: three folders, progress, the verdict of the comparison. GUI thread.
#pragma once
#include <QDialog>

#include "ui/session/background_task.h"

class QLineEdit;
class QProgressBar;
class QPushButton;

namespace mw::ui {

class SaidText;

class MergeDialog : public QDialog {
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
  QPushButton& merge_button() { return *merge_; }
  QString said() const;

 public slots:
  void reject() override;  // while it merges: cancels that

 private:
  void show_state();
  void show_outcome();
  void begin();

  BackgroundTask<QString> task_{"MERGE"};  // its result is the verdict in words
  QLineEdit *base_, *adapter_, *out_, *alpha_;
  SaidText* said_;
  QProgressBar* progress_;
  QPushButton *cancel_, *merge_;
};

}  // namespace mw::ui
