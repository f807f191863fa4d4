// SPDX-License-Identifier: GPL-3.0-or-later
// Cumulative distributions of the latencies of the requests in one cell.
#include "ui/pages/compare/compare_view.h"
#include "ui/run_views/run_lines.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace {

void fill_distributions(const CompareInput& in, CompareView& view) {
  for (size_t i = 0; i < view.charts().size(); ++i) {
    std::vector<ChartLine> all;
    for (size_t run = 0; run < in.runs.size(); ++run) {
      const auto* point = compare::point_at(in.runs[run], in.input_len, in.load);
      if (!point) continue;
      auto path = compare::cumulative(compare::request_values(*point, kSweepMetrics[i]));
      for (auto& p : path) p.y *= 100;
      if (path.empty()) continue;
      all.push_back(path_line(in, path, run));
      all.back().marks = Marks::none;
      all.back().path.clear();
    }
    view.axis(i).set_x(qs(views::label_of(kSweepMetrics[i])), AxisQuantity::seconds);
    view.axis(i).set_data({0, largest_x(all) * 1.02});
    view.charts()[i]->set_lines(std::move(all));
    view.charts()[i]->set_limits(slo_levels(in.slo, kSweepMetrics[i]));
  }
}

}  // namespace

CompareViewSpec distribution_view() {
  const QString share = CompareView::tr("% of requests at or below");
  const QString none = CompareView::tr("No run records the requests of this cell");
  return {.id = u"distribution"_s,
          .name = CompareView::tr("Distribution"),
          .place = 3,
          .kind = compare::ComparedKind::serving,
          .controls = prompt_length | request_load,
          .make = charts_view({share_spec(u"TTFT"_s, share, none), share_spec(u"TPOT"_s, share, none, 1)},
                              fill_distributions)};
}

}  // namespace mw::ui
