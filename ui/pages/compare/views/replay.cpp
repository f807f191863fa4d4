// SPDX-License-Identifier: GPL-3.0-or-later
// The causes of the difference that a replay makes, as a table.
#include <QVBoxLayout>

#include "core/compare/replay.h"
#include "ui/pages/compare/compare_view.h"
#include "ui/theme/table_model.h"

namespace mw::ui {
namespace {

using ReplayCause = compare::ReplayRow;
using compare::ReplayFigures;

// "58.1 (+12.3)"
QString figure_text(double value, std::optional<double> delta, int decimals) {
  if (!std::isfinite(value)) return {};
  const QString text = QString::number(value, 'f', decimals);
  if (!delta || !std::isfinite(*delta)) return text;
  return u"%1 (%2%3)"_s.arg(text, *delta < 0 ? u"\u2212"_s : u"+"_s, QString::number(std::abs(*delta), 'f', decimals));
}

TableModel<ReplayCause>::Columns replay_columns() {
  const auto figure = [](const QString& title, double ReplayFigures::*member, int decimals) {
    return TableModel<ReplayCause>::number(
        title,
        [=](const ReplayCause& r) {
          return figure_text(r.figures.*member, r.delta ? std::optional((*r.delta).*member) : std::nullopt, decimals);
        },
        [=](const ReplayCause& r) { return r.figures.*member; });
  };
  return {{.title = CompareView::tr("Requests"), .text = &ReplayCause::point},
          {.title = CompareView::tr("Cause"),
           .tooltip = CompareView::tr("One factor after another is changed, and the recorded requests are simulated"),
           .text = &ReplayCause::name},
          figure(CompareView::tr("TTFT p99 (ms)"), &ReplayFigures::ttft_p99_ms, 1),
          figure(CompareView::tr("TPOT p99 (ms)"), &ReplayFigures::tpot_p99_ms, 2),
          figure(CompareView::tr("E2E p99 (ms)"), &ReplayFigures::e2el_p99_ms, 0),
          figure(CompareView::tr("Cost (USD)"), &ReplayFigures::usd, 4),
          figure(CompareView::tr("USD/1M tokens"), &ReplayFigures::usd_per_million_output_tokens, 2),
          {.title = CompareView::tr("Change"), .text = &ReplayCause::text}};
}

class ReplayView : public CompareView {
 public:
  explicit ReplayView(const CompareInput& input) : CompareView(input), rows_(replay_columns()) {
    QTableView* table = make_table(rows_, CompareView::tr("Causes of the difference that a replay makes"), this);
    table->horizontalHeader()->setStretchLastSection(true);
    table->setColumnWidth(0, 140);
    for (int c = 1; c + 1 < rows_.columnCount(); ++c) table->setColumnWidth(c, 128);
    freeze_columns(*table, 2);
    copy_on_ctrl_c(*table);
    column_->addWidget(table);
  }

  void fill() override {
    std::vector<ReplayCause> rows;
    for (const auto& run : in_.runs) try {
        for (ReplayCause& row : compare::replay_rows(run.explained)) rows.push_back(std::move(row));
      } catch (const Error&) {  // of a newer program
      }
    rows_.set_rows(std::move(rows));
  }

 private:
  TableModel<ReplayCause> rows_;
};

}  // namespace

CompareViewSpec replay_view() {
  return {.id = u"replay"_s,
          .name = CompareView::tr("Replay"),
          .place = 7,
          .kind = compare::ComparedKind::serving,
          .make = [](const CompareInput& in) { return new ReplayView(in); },
          .is_offered = [](const compare::ComparedRun& run) { return !run.explained.is_null(); }};
}

}  // namespace mw::ui
