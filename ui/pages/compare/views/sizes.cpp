// SPDX-License-Identifier: GPL-3.0-or-later
// Time and cost of a batch against throughput.
#include "ui/pages/compare/compare_view.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace {

void fill_sizes(const CompareInput& in, CompareView& view) {
  show_trade_offs(in, view,
                  {compare::size_trade_off(in.runs, compare::SizeCost::seconds),
                   compare::size_trade_off(in.runs, compare::SizeCost::usd)},
                  CompareView::tr("tokens/s"));
}

}  // namespace

CompareViewSpec sizes_view() {
  return {.id = u"sizes"_s,
          .name = CompareView::tr("Pareto"),
          .place = 11,
          .kind = compare::ComparedKind::sizing,
          .make = charts_view(
              {latency_spec(CompareView::tr("Time of a batch"), CompareView::tr("median")), token_cost_spec()},
              fill_sizes)};
}

}  // namespace mw::ui
