// SPDX-License-Identifier: GPL-3.0-or-later
// One view of the Compare page. A file in ui/pages/compare/views that returns a CompareViewSpec adds one. GUI thread.
#pragma once
#include <QWidget>
#include <array>
#include <functional>

#include "core/compare/compare_charts.h"
#include "core/compare/comparison.h"
#include "ui/charts/chart.h"

class QVBoxLayout;

namespace mw::ui {

// The input that all views show. Every run keeps its colour and mark.
struct CompareInput {
  const std::vector<compare::ComparedRun>& runs;
  const QStringList& names;  // short, of the runs
  plan::LoadContext context;
  ChartLink& steps;  // x axis of all charts of training, with one playhead
  options::Slo slo{};
  int input_len = 0;
  std::string load{};
  views::SweepMetric metric{};
  bool by_time = false;                // the axis of training
  QString run_name(size_t run) const;  // with the origin of its figures
};

inline constexpr size_t kSteps = 2;
struct ChartSpec {
  QString title{}, unit{}, empty{};
  AxisQuantity quantity = AxisQuantity::plain;
  Scale scale = Scale::linear;
  size_t axis = 0;  // the view has two x axes of its own; kSteps: that of training
  bool from_zero = false;
};

class CompareView : public QWidget {
  Q_OBJECT
 public:
  explicit CompareView(const CompareInput& input);
  virtual void fill() {}  // after the input has changed
  virtual void set_emphasis(int run);
  virtual bool has_curves() const;  // whether a chart has a line of several points
  void add_charts(const std::vector<ChartSpec>& charts);
  ChartLink& axis(size_t at = 0) { return at == kSteps ? in_.steps : axes_[at]; }
  const std::vector<Chart*>& charts() const { return charts_; }

 signals:
  void hovered(int run);  // -1: left
  void cell_chosen(int input_len, const QString& load);

 protected:
  const CompareInput& in_;
  QVBoxLayout* column_;

 private:
  std::array<ChartLink, 2> axes_;
  std::vector<Chart*> charts_;
};

enum CompareControl { prompt_length = 1, request_load = 2, shown_metric = 4, steps_and_playhead = 8 };

struct CompareViewSpec {
  QString id, name;  // name: of its tab
  int place;         // of its tab
  compare::ComparedKind kind;
  int controls = 0;  // CompareControls that it reads
  std::function<CompareView*(const CompareInput&)> make;
  bool opens = true;  // may be shown first; false: it is slow, or draws lines through single points
  bool (*is_offered)(const compare::ComparedRun& run) = nullptr;  // for any of the runs; null: always
};
const std::vector<CompareViewSpec>& compare_views();  // of all files, in the order of their places

// For `make`: a view of charts whose lines `fill` sets.
std::function<CompareView*(const CompareInput&)> charts_view(std::vector<ChartSpec> charts,
                                                             void (*fill)(const CompareInput&, CompareView&));

// Parts of several views.
inline constexpr std::array kSweepMetrics{views::SweepMetric::ttft, views::SweepMetric::tpot,
                                          views::SweepMetric::output_throughput};
std::vector<ChartSpec> sweep_chart_specs();  // of kSweepMetrics
ChartSpec latency_spec(const QString& title, const QString& unit);
ChartSpec share_spec(const QString& title, const QString& unit, const QString& empty, size_t axis = 0);
ChartSpec token_cost_spec();
void set_axis(ChartLink& axis, const QString& name, std::vector<Tick> stops);
std::vector<ChartLine> sweep_lines(const CompareInput& in, const std::vector<compare::ComparedLine>& lines,
                                   views::SweepMetric metric);
ChartLine path_line(const CompareInput& in, const std::vector<views::Point>& path, size_t run);
double largest_x(const std::vector<ChartLine>& lines);
// The trade-off of every run, by chart, and the front of all of them.
void show_trade_offs(const CompareInput& in, CompareView& view,
                     const std::vector<std::vector<compare::ComparedCurve>>& curves, const QString& x);
// Metrics of training by chart; empty: the scored answers.
void show_training(const CompareInput& in, CompareView& view, const std::vector<std::string>& metrics);

}  // namespace mw::ui
