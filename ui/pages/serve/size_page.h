// SPDX-License-Identifier: GPL-3.0-or-later
// The batch sizes of the Serve page: one live or finished size run, measured or predicted, built from its events;
// another one may be drawn beside it. GUI thread.
#pragma once
#include <array>
#include <map>

#include "ui/pages/serve/beside_box.h"
#include "ui/pages/serve/run_tab.h"
#include "ui/pages/serve/sizes_model.h"

class QCheckBox;

namespace mw::ui {

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
