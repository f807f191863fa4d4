// SPDX-License-Identifier: GPL-3.0-or-later
// Latency and cost against throughput, at one prompt length.
#include "ui/pages/compare/compare_view.h"
#include "ui/run_views/run_lines.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace {

void fill_trade_offs(const CompareInput& in, CompareView& view) {
  std::vector<std::vector<compare::ComparedCurve>> curves;
  for (const auto metric : {views::SweepMetric::ttft, views::SweepMetric::tpot, views::SweepMetric::cost})
    curves.push_back(compare::latency_against_throughput(in.runs, in.input_len, metric));
  show_trade_offs(in, view, curves, CompareView::tr("output tokens/s"));
  for (size_t i = 0; i < 2; ++i) view.charts()[i]->set_levels(slo_levels(in.slo, kSweepMetrics[i]));
}

}  // namespace

CompareViewSpec pareto_view() {
  const QString median = CompareView::tr("median");
  return {.id = u"pareto"_s,
          .name = CompareView::tr("Pareto"),
          .place = 2,
          .kind = compare::ComparedKind::serving,
          .controls = prompt_length,
          .make = charts_view({latency_spec(u"TTFT"_s, median), latency_spec(u"TPOT"_s, median), token_cost_spec()},
                              fill_trade_offs)};
}

}  // namespace mw::ui
