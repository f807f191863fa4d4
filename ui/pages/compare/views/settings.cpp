// SPDX-License-Identifier: GPL-3.0-or-later
// Settings and results of training runs as parallel coordinates.
#include <QVBoxLayout>

#include "core/compare/compared_snapshots.h"
#include "ui/charts/parallel_chart.h"
#include "ui/pages/compare/compare_view.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace {

class SettingsView : public CompareView {
 public:
  explicit SettingsView(const CompareInput& input) : CompareView(input), chart_(new ParallelChart(this)) {
    connect(chart_, &ParallelChart::run_hovered, this, &CompareView::hovered);
    column_->addWidget(chart_);
  }
  void fill() override { chart_->show_runs(views::parallel_axes(compare::parallel_runs(in_.runs)), in_.names); }
  void set_emphasis(int run) override { chart_->set_emphasis(run); }

 private:
  ParallelChart* chart_;
};

}  // namespace

CompareViewSpec settings_view() {
  return {.id = u"settings"_s,
          .name = CompareView::tr("Settings"),
          .place = 10,
          .kind = compare::ComparedKind::training,
          .make = [](const CompareInput& in) { return new SettingsView(in); }};
}

}  // namespace mw::ui
