// SPDX-License-Identifier: GPL-3.0-or-later
// Losses of training runs over each other, and their differences from the baseline.
#include "ui/pages/compare/compare_view.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace {

void fill_losses(const CompareInput& in, CompareView& view) {
  show_training(in, view, {"train/loss", "eval/loss"});
  std::vector<ChartLine> apart;
  if (!in.by_time)
    for (const auto& curve : compare::loss_differences(in.runs))
      apart.push_back(path_line(in, curve.path, curve.column));
  view.charts().back()->set_lines(std::move(apart));
}

}  // namespace

CompareViewSpec loss_view() {
  const QString nats = CompareView::tr("nats/token"), none = CompareView::tr("No loss is recorded");
  return {.id = u"loss"_s,
          .name = CompareView::tr("Loss"),
          .place = 8,
          .kind = compare::ComparedKind::training,
          .controls = steps_and_playhead,
          .make = charts_view(
              {{.title = CompareView::tr("Training loss"), .unit = nats, .empty = none, .axis = kSteps},
               {.title = CompareView::tr("Eval loss"), .unit = nats, .empty = none, .axis = kSteps},
               {.title = CompareView::tr("Difference"),
                .unit = CompareView::tr("% of the baseline's loss"),
                .empty = CompareView::tr("The baseline shares no step with another run, or all losses are identical"),
                .scale = Scale::logarithmic,
                .axis = kSteps}},
              fill_losses)};
}

}  // namespace mw::ui
