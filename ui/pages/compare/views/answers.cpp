// SPDX-License-Identifier: GPL-3.0-or-later
// Scored answers and speed of training runs.
#include "ui/pages/compare/compare_view.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace {

void fill_answers(const CompareInput& in, CompareView& view) {
  show_training(in, view, {"", "train/tokens_per_second"});
}

}  // namespace

CompareViewSpec answers_view() {
  return {.id = u"answers"_s,
          .name = CompareView::tr("Answers and Speed"),
          .place = 9,
          .kind = compare::ComparedKind::training,
          .controls = steps_and_playhead,
          .make = charts_view({share_spec(CompareView::tr("Scored answers"), CompareView::tr("% right"),
                                          CompareView::tr("These runs score no answers"), kSteps),
                               share_spec(CompareView::tr("Speed"), CompareView::tr("tokens/s"), {}, kSteps)},
                              fill_answers)};
}

}  // namespace mw::ui
