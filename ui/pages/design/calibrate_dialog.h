// SPDX-License-Identifier: GPL-3.0-or-later
// Dialog that calibrates the plan with the user's measurements from files and runs. Shows held-out predictions of every
// row and the resulting efficiencies, which can be accepted. GUI thread.
#pragma once
#include <QDialog>

#include "ui/charts/chart.h"
#include "ui/pages/design/calibrator.h"
#include "ui/theme/table_model.h"

class QPlainTextEdit;
class QProgressBar;
class QTableView;

namespace mw::ui {

// The rows of a proposed calibration, predicted against measured, and the efficiencies fitted to them.
struct CalibrationRowsModel : TableModel<plan::ProposedRow> {
  Q_DECLARE_TR_FUNCTIONS(mw::ui::CalibrationRowsModel)
 public:
  enum Column { id, chip, stack, use, measured, now, held_out, fitted, error_now, error_held_out, error_fitted };
  CalibrationRowsModel();
};

struct EfficienciesModel : TableModel<plan::ProposedEfficiency> {
  Q_DECLARE_TR_FUNCTIONS(mw::ui::EfficienciesModel)
 public:
  enum Column { name, chip, stack, before, after, interval, rows };
  EfficienciesModel();
};

class CalibrateDialog : public QDialog {
  Q_OBJECT
 public:
  explicit CalibrateDialog(Calibrator& calibrator, QWidget* parent = nullptr);
  void add_files(const std::vector<std::filesystem::path>& files);
  void restyle() { draw(); }

  CalibrationRowsModel& rows() { return rows_; }
  EfficienciesModel& efficiencies() { return efficiencies_; }
  Chart& chart() { return *chart_; }
  const std::vector<QToolButton*>& names() const { return names_; }

 public slots:
  void reject() override;  // discards what is shown

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  void build();
  QWidget* sources_bar();
  QWidget* names_bar();
  QWidget* current_bar();
  QWidget* tables();
  QWidget* buttons();
  void wire();
  void choose_files();
  void clear();
  void update_result();
  void show_result();
  void show_sources();
  void show_notes(const QStringList& notes);
  void show_current();
  void draw();

  Calibrator& calibrator_;
  audit::CalibrationRequest request_;
  CalibrationRowsModel rows_;
  EfficienciesModel efficiencies_;
  ChartLink link_;
  ElidedLabel *sources_, *current_;
  QLabel* verdict_;
  QPushButton *add_files_, *clear_, *remove_, *undo_, *accept_, *cancel_;
  std::vector<QToolButton*> names_;
  bool names_chosen_ = false;  // until the user chooses, servers are fitted by their own default names
  QTableView *rows_table_, *efficiencies_table_;
  Chart* chart_;
  QProgressBar* progress_;
  QPlainTextEdit* notes_;
};

}  // namespace mw::ui
