// SPDX-License-Identifier: GPL-3.0-or-later
// The latency sweep of the Serve page: one live or finished sweep, built from its events. Shows the requests and the
// server state of the point that is selected in a chart or in the table. GUI thread.
#pragma once
#include <map>
#include <optional>

#include "core/compare/comparison.h"
#include "ui/pages/serve/request_timeline.h"
#include "ui/pages/serve/run_tab.h"
#include "ui/pages/serve/settings_row.h"
#include "ui/pages/serve/sweep_model.h"

namespace mw::ui {

class SweepPage : public RunTab {
  Q_OBJECT
 public:
  SweepPage(Document& document, RunController& runs, QWidget* parent = nullptr);
  void show_frame() override;
  void restyle() override;
  Chart& ttft() { return *ttft_; }
  Chart& tpot() { return *tpot_; }
  Chart& throughput() { return *throughput_; }
  Chart& in_flight() { return *in_flight_; }
  Chart& kv() { return *kv_; }
  RequestTimeline& timeline() { return *timeline_; }
  SweepModel& model() { return model_; }
  QToolButton& all_columns() { return *all_columns_; }
  SettingsRow& form() { return *form_; }
  const SweepViewPtr& view() const { return view_; }
  bool is_busy() const { return reader_.is_busy(); }  // the display is not up to date yet
  compare::ComparedRun compared() const;              // the displayed sweep, for a comparison or a replay
  std::optional<size_t> chosen_point() const { return chosen_ ? selected_ : std::nullopt; }  // by the user
  QString verdict() const;  // of every input length, as text
  std::optional<size_t> selected() const { return selected_; }
  void select(std::optional<size_t> point);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void reset() override;
  QString csv() const override { return model_.csv(); }

 private:
  void build_bar();
  void build_charts();
  void build_table();
  void show_view(SweepViewPtr view);
  void redraw();
  void redraw_point();
  void show_capacity();
  void select_at_playhead();
  void emphasise(int group);
  void fit_columns();
  void show_verdict();
  bool resumable() const;
  size_t line_of_point(size_t point) const;

  ChartLink by_time_;
  SweepViewPtr view_;
  SweepReader reader_;
  views::LoadAxis axis_;
  std::optional<size_t> selected_;
  bool chosen_ = false;  // the user has selected a point, which a live sweep keeps
  bool selecting_ = false;
  SweepModel model_;
  SettingsRow* form_;
  std::map<int, int> column_widths_;
  QPushButton *resume_, *replay_, *compare_;
  QToolButton* all_columns_;
  Chart *ttft_, *tpot_, *throughput_, *in_flight_, *kv_;
  RequestTimeline* timeline_;
};

}  // namespace mw::ui
