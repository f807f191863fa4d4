// SPDX-License-Identifier: GPL-3.0-or-later
// One metric of every run as a table of prompt length by load.
#include <algorithm>

#include "ui/pages/compare/compare_view.h"
#include "ui/pages/compare/heat_table.h"
#include "ui/theme/table_model.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {

class HeatView : public CompareView {
 public:
  explicit HeatView(const CompareInput& input) : CompareView(input) {
    table_ = make_table(rows_, CompareView::tr("Heat map of load and prompt length"), this);
    table_->setSelectionBehavior(QAbstractItemView::SelectItems);
    table_->verticalHeader()->setDefaultSectionSize(2 * fontMetrics().height() + 6);  // a value above its change
    freeze_columns(*table_, HeatTable::kNames);
    connect(table_, &QTableView::clicked, this, [this](const QModelIndex& at) {
      if (const QString load = rows_.load_at(at.column()); !load.isEmpty())
        emit cell_chosen(rows_.row(at.row()).input_len, load);
    });
    axes_ = muted_label(QString(), this);
    axes_->setAlignment(Qt::AlignCenter);
    column_->setSpacing(2);
    column_->addWidget(axes_);
    column_->addWidget(table_, 1);
  }

  void fill() override {
    rows_.show(in_.runs, in_.names, in_.metric);
    axes_->setText(
        CompareView::tr("Columns: load (requests/s, or at once) \u00B7 rows: prompt length (tokens) \u00B7 cells: %1")
            .arg(qs(views::label_of(in_.metric))));
    fit_columns();
  }

 private:
  // The loads share the width; they scroll beside the names where it is too little for a value with its change.
  void fit_columns() {
    constexpr int kNarrowest = 58, kWidestName = 150;
    QHeaderView& header = *table_->horizontalHeader();
    int least = kNarrowest;
    for (int c = HeatTable::kNames; c < rows_.columnCount(); ++c) least = std::max(least, header.sectionSizeHint(c));
    header.setMinimumSectionSize(least);
    for (int c = HeatTable::kNames; c < rows_.columnCount(); ++c) header.setSectionResizeMode(c, QHeaderView::Stretch);
    for (int c = 0; c < HeatTable::kNames; ++c) {
      header.setSectionResizeMode(c, QHeaderView::Interactive);
      table_->resizeColumnToContents(c);
      header.resizeSection(c, std::min(header.sectionSize(c), kWidestName));
    }
  }

  HeatTable rows_;
  QTableView* table_;
  QLabel* axes_;
};

}  // namespace

CompareViewSpec heat_view() {
  return {.id = u"heat"_s,
          .name = CompareView::tr("Heat map"),
          .place = 4,
          .kind = compare::ComparedKind::serving,
          .controls = shown_metric,
          .make = [](const CompareInput& in) { return new HeatView(in); }};
}

}  // namespace mw::ui
