// SPDX-License-Identifier: GPL-3.0-or-later
// Latency and throughput against the request rate, at one prompt length.
#include "ui/pages/compare/compare_view.h"
#include "ui/run_views/run_lines.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace {

void fill_by_load(const CompareInput& in, CompareView& view) {
  const views::LoadAxis axis = compare::load_axis(in.runs, in.input_len);
  set_axis(view.axis(), CompareView::tr("rate (requests/s)"), ticks_of(axis));
  for (size_t i = 0; i < kSweepMetrics.size(); ++i) {
    const auto lines = compare::lines_by_load(in.runs, in.input_len, axis, kSweepMetrics[i]);
    view.charts()[i]->set_lines(sweep_lines(in, lines, kSweepMetrics[i]));
    view.charts()[i]->set_levels(slo_levels(in.slo, kSweepMetrics[i]));
  }
}

}  // namespace

CompareViewSpec load_view() {
  return {.id = u"load"_s,
          .name = CompareView::tr("Rate"),
          .place = 0,
          .kind = compare::ComparedKind::serving,
          .controls = prompt_length,
          .make = charts_view(sweep_chart_specs(), fill_by_load)};
}

}  // namespace mw::ui
