// SPDX-License-Identifier: GPL-3.0-or-later
// Why a run differs from the baseline in one cell.
#include <QComboBox>
#include <QVBoxLayout>

#include "ui/pages/compare/compare_view.h"
#include "ui/pages/compare/why_view.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace {

class GapView : public CompareView {
 public:
  explicit GapView(const CompareInput& input) : CompareView(input), why_(new WhyView(in_.runs, in_.context, this)) {
    why_->other().setSizeAdjustPolicy(QComboBox::AdjustToContents);
    column_->addWidget(why_);
  }
  void fill() override { why_->show_cell(in_.names, in_.input_len, in_.load); }

 private:
  WhyView* why_;
};

}  // namespace

CompareViewSpec why_view() {
  return {.id = u"why"_s,
          .name = CompareView::tr("Why"),
          .place = 6,
          .kind = compare::ComparedKind::serving,
          .controls = prompt_length | request_load,
          .make = [](const CompareInput& in) { return new GapView(in); },
          .opens = false};
}

}  // namespace mw::ui
