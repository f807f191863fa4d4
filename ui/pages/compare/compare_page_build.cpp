// SPDX-License-Identifier: GPL-3.0-or-later
// Construction of the Compare page.
#include <QDoubleValidator>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QScrollArea>
#include <QShortcut>
#include <QSplitter>
#include <QTableView>
#include <QToolButton>
#include <QVBoxLayout>

#include "ui/pages/compare/compare_page.h"
#include "ui/theme/empty_page.h"
#include "ui/theme/icons.h"
#include "ui/theme/tables.h"
#include "ui/theme/text.h"

namespace mw::ui {

void ComparePage::build() {
  setObjectName(u"pageBody"_s);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(8, 6, 8, 6);
  column->setSpacing(5);
  tray_ = new CompareTray(this);
  add_menu_ = new QMenu(this);
  tray_->set_menu(add_menu_);
  column->addWidget(tray_);
  column->addWidget(verdict_line());
  column->addWidget(empty_ = empty_page(), 1);
  across_ = new QSplitter(Qt::Horizontal, this);
  across_->setHandleWidth(5);
  across_->addWidget(table_side());
  charts_ = new CompareCharts(runs_, catalogue(), across_);
  across_->addWidget(charts_);
  across_->setSizes({440, 520});
  across_->setStretchFactor(0, 4);
  across_->setStretchFactor(1, 5);
  across_->setChildrenCollapsible(false);
  // Charts and chips scroll or elide, so that long names never make the window wider than the screen. The side of the
  // table is as wide as its row of buttons.
  constexpr int kNarrowest = 300;
  charts_->setMinimumWidth(kNarrowest);
  tray_->setMinimumWidth(kNarrowest);
  column->addWidget(across_, 1);
  replay_ = new ReplayDialog(reader_.folders().runs, catalogue(), this);
}

QWidget* ComparePage::verdict_line() {
  verdict_area_ = new QScrollArea(this);
  verdict_area_->setWidgetResizable(true);
  verdict_area_->setFrameShape(QFrame::NoFrame);
  verdict_area_->setFocusPolicy(Qt::NoFocus);
  verdict_ = new QLabel;
  verdict_->setWordWrap(true);
  verdict_->setTextFormat(Qt::RichText);
  verdict_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  verdict_->setContentsMargins(4, 0, 4, 0);
  verdict_->setAlignment(Qt::AlignLeft | Qt::AlignTop);
  verdict_->setAccessibleName(tr("Whether these may be compared"));
  verdict_area_->setWidget(verdict_);
  verdict_area_->installEventFilter(this);
  return verdict_area_;
}

QWidget* ComparePage::table_side() {
  auto* side = new QWidget(this);
  auto* column = new QVBoxLayout(side);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(4);
  auto* row = new QHBoxLayout;
  row->setSpacing(5);
  differing_ = new QToolButton(side);
  differing_->setText(tr("Only Differences"));
  differing_->setCheckable(true);
  differing_->setChecked(true);
  differing_->setProperty("chip", true);
  differing_->setFocusPolicy(Qt::TabFocus);
  differing_->setToolTip(tr("Leave out settings that are the same in all"));
  row->addWidget(differing_);
  auto* label = new QLabel(tr("SLO, ms"), side);
  label->setProperty("muted", true);
  row->addWidget(label);
  const QString names[] = {tr("TTFT"), tr("TPOT"), tr("E2E")};
  for (size_t i = 0; i < std::size(names); ++i) {
    slo_[i] = new QLineEdit(side);
    slo_[i]->setPlaceholderText(names[i]);
    slo_[i]->setAccessibleName(tr("SLO of %1, ms").arg(names[i]));
    slo_[i]->setToolTip(tr("Longest median %1 in ms: cells above it are marked").arg(names[i]));
    slo_[i]->setMinimumWidth(50);
    slo_[i]->setMaximumWidth(70);
    auto* number = new QDoubleValidator(0, 1e9, 6, slo_[i]);
    number->setLocale(QLocale::c());
    slo_[i]->setValidator(number);
    row->addWidget(slo_[i]);
    connect(slo_[i], &QLineEdit::textChanged, this, [this] {
      model_.set_slo(slo());
      charts_->set_slo(slo());
    });
  }
  row->addStretch(1);
  copy_ = new QPushButton(icon(Glyph::copy), QString(), side);
  copy_->setAccessibleName(tr("Copy"));
  copy_->setToolTip(tr("Copy the comparison as Markdown"));
  export_ = new QPushButton(tr("Export\u2026"), side);
  export_->setToolTip(tr("As CSV, Markdown, LaTeX, PNG, SVG or PDF, by the file's name"));
  row->addWidget(copy_);
  row->addWidget(export_);
  column->addLayout(row);
  table_ = new QTableView(side);
  set_up_table(*table_, model_, tr("What differs"));
  table_->setMouseTracking(true);
  table_->viewport()->installEventFilter(this);
  column->addWidget(table_, 1);
  alone_ = new QLabel(tr("Add a second run: what differs between them stands here."), side);
  alone_->setProperty("muted", true);
  alone_->setWordWrap(true);
  alone_->setAlignment(Qt::AlignCenter);
  column->addWidget(alone_, 1);
  connect(differing_, &QToolButton::toggled, this, [this](bool on) {
    model_.set_shown(on ? RowsShown::differing : RowsShown::all);
    fit_columns();
  });
  connect(table_, &QTableView::entered, this, [this](const QModelIndex& at) { light(at.column() - 1); });
  connect(copy_, &QPushButton::clicked, this, &ComparePage::copy_markdown);
  connect(export_, &QPushButton::clicked, this, &ComparePage::choose_export);
  auto* copy = new QShortcut(QKeySequence::Copy, table_);
  copy->setContext(Qt::WidgetShortcut);
  connect(copy, &QShortcut::activated, this, &ComparePage::copy_markdown);
  return side;
}

QWidget* ComparePage::empty_page() {
  const EmptyPage empty = ui::empty_page(
      tr("Nothing to compare yet"),
      tr("Drag runs from the Runs page, press Compare on a sweep of the Serve page, or add shipped results and files.\n"
         "The first is the baseline; the page says what differs, whether the comparison is fair, and which numbers\n"
         "break physics."),
      {tr("Choose Runs")}, this);
  connect(empty.buttons[0], &QPushButton::clicked, this, &ComparePage::runs_wanted);
  return empty.page;
}

}  // namespace mw::ui
