// SPDX-License-Identifier: GPL-3.0-or-later
// The batch sizes of the Serve page: one live or finished size run, measured or predicted, built from its events;
// another one may be drawn beside it. GUI thread.
#pragma once
#include <QComboBox>
#include <map>

#include "ui/pages/serve/run_tab.h"
#include "ui/pages/serve/size_lines.h"
#include "ui/session/background_task.h"
#include "ui/session/run_controller.h"

class QCheckBox;

namespace mw::ui {

// Chooses another size run whose lines the page draws beside those of its own run, and reads its record.
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

class SizePage : public RunTab {
  Q_OBJECT
 public:
  SizePage(RunController& runs, QWidget* parent = nullptr);
  void show_frame() override;
  void restyle() override;
  Chart& total() { return *total_; }
  Chart& per_token() { return *per_token_; }
  Chart& memory(options::Workload workload) { return *memory_.at(workload); }
  SizesModel& model() { return model_; }
  BesideBox& beside() { return *beside_; }
  QCheckBox& memory_with_adapters() { return *adapters_; }
  QString settings_text() const;

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void reset() override;
  QString csv() const override { return model_.csv(); }

 private:
  void build_choices();
  void build_charts();
  void show_start();
  void build_table();
  void redraw();  // updates charts and table
  void fit_columns();

  SizeViewPtr view_;
  std::array<int, SizesModel::columns> column_widths_{};
  std::size_t points_seen_ = 0;
  bool started_ = false;
  SizesModel model_;
  QCheckBox* adapters_;  // the charts of memory are with adapters
  BesideBox* beside_;
  Chart *total_, *per_token_;
  std::map<options::Workload, Chart*> memory_;
};

}  // namespace mw::ui
