// SPDX-License-Identifier: GPL-3.0-or-later
// An adapter added into its base model: three folders, progress, the verdict of the comparison. GUI thread.
#pragma once
#include <QDialog>

#include "ui/pages/train/merger.h"

class QLineEdit;
class QProgressBar;
class QPushButton;

namespace mw::ui {

class SaidText;

class MergeDialog : public QDialog {
  Q_OBJECT
 public:
  MergeDialog(Merger& merger, QWidget* parent = nullptr);
  void open_with(const std::filesystem::path& base, const std::filesystem::path& adapter,
                 const std::filesystem::path& out);
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
  void begin();

  Merger& merger_;
  QLineEdit *base_, *adapter_, *out_, *alpha_;
  SaidText* said_;
  QProgressBar* progress_;
  QPushButton *cancel_, *merge_;
};

}  // namespace mw::ui
