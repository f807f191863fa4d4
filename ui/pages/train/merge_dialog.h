// SPDX-License-Identifier: GPL-3.0-or-later
// Dialog that merges an adapter into its base model: three folders, progress, result of the comparison with its charts.
// GUI thread.
#pragma once
#include <QCheckBox>
#include <QComboBox>

#include "core/jobs/merge_adapter.h"
#include "core/views/proof_view.h"
#include "ui/charts/chart.h"
#include "ui/session/background_task.h"
#include "ui/session/dialog_parts.h"
#include "ui/theme/table_model.h"

class QTableView;

namespace mw::ui {

// A parity check: difference of logits by position, difference of hidden states by layer, and a row for each form of
// the merged model. Hidden until it has something to show.
class ParityCharts : public QWidget {
  Q_OBJECT
 public:
  explicit ParityCharts(QWidget* parent = nullptr);
  void show_parity(const train::Parity& parity);
  void clear();
  Chart& logits() { return *logits_; }
  Chart& layers() { return *layers_; }
  QTableView& table() { return *table_; }

 private:
  ChartLink positions_link_, layers_link_;
  TableModel<views::ParityRow> rows_;
  Chart *logits_, *layers_;
  QTableView* table_;
};

class MergeDialog : public TaskDialog {
  Q_OBJECT
 public:
  explicit MergeDialog(QWidget* parent = nullptr);
  void open_with(const std::filesystem::path& base, const std::filesystem::path& adapter,
                 const std::filesystem::path& out, const std::filesystem::path& last = {});
  BackgroundWork& task() { return task_; }
  QLineEdit& base() { return *base_; }
  QLineEdit& adapter() { return *adapter_; }
  QLineEdit& out() { return *out_; }
  QComboBox& checkpoint() { return *checkpoint_; }
  QLineEdit& alpha() { return *alpha_; }
  QLineEdit& prompt() { return *prompt_; }
  QCheckBox& compare_logits() { return *logits_; }
  ParityCharts& charts() { return *charts_; }

 private:
  void show_state();
  void show_outcome();
  void begin();

  struct Outcome {
    jobs::MergeResult merge;
    QString notes;
  };
  BackgroundTask<Outcome> task_{"MERGE"};
  QLineEdit *base_, *adapter_, *out_, *alpha_, *prompt_;
  QComboBox* checkpoint_;
  QFormLayout* form_;
  QCheckBox* logits_;
  ParityCharts* charts_;
};

}  // namespace mw::ui
