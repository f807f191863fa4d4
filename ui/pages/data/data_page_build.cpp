// SPDX-License-Identifier: GPL-3.0-or-later
// Construction of the Data page.
#include <QComboBox>
#include <QFrame>
#include <QHeaderView>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QSplitter>
#include <QStackedWidget>
#include <QTableView>
#include <QVBoxLayout>

#include "core/experiment/parameters.h"
#include "ui/pages/data/data_page.h"
#include "ui/theme/elided_label.h"
#include "ui/theme/icons.h"
#include "ui/theme/tables.h"
#include "ui/theme/text.h"

namespace mw::ui {
namespace {

constexpr int kMostFileName = 300;  // pixels

QVBoxLayout* column_of(QWidget* panel, int spacing) {
  auto* column = new QVBoxLayout(panel);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(spacing);
  return column;
}

}  // namespace

void DataPage::build() {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(8, 4, 8, 6);
  column->setSpacing(4);
  column->addWidget(bar());
  notice_ = new QFrame(this);
  notice_->setObjectName(u"notice"_s);
  auto* row = new QHBoxLayout(notice_);
  row->setContentsMargins(10, 4, 6, 4);
  notice_text_ = new QLabel(notice_);
  notice_text_->setWordWrap(true);
  fix_ = new QPushButton(tr("Skip Bad Rows"), notice_);
  fix_->setToolTip(tr("Set data.on_error to skip: bad rows are counted and left out"));
  row->addWidget(notice_text_, 1);
  row->addWidget(fix_);
  notice_->hide();
  column->addWidget(notice_);
  stack_->addWidget(empty_page());
  across_ = new QSplitter(Qt::Horizontal);
  across_->setHandleWidth(5);
  across_->addWidget(rows_side());
  down_ = new QSplitter(Qt::Vertical, across_);
  down_->setHandleWidth(5);
  down_->addWidget(token_side());
  bottom_ = new QSplitter(Qt::Horizontal, down_);
  bottom_->setHandleWidth(5);
  lengths_ = new Plot({.title = tr("Lengths"),
                       .unit = tr("rows by tokens"),
                       .quantity = Quantity::count,
                       .empty = tr("Drawn when all rows have been read"),
                       .from_zero = true},
                      by_length_, bottom_);
  economy_ = new EconomyView(bottom_);
  bottom_->setSizes({320, 380});
  bottom_->setStretchFactor(0, 1);
  bottom_->setStretchFactor(1, 1);
  bottom_->setChildrenCollapsible(false);
  down_->setSizes({260, 200});
  down_->setStretchFactor(0, 3);
  down_->setStretchFactor(1, 2);
  across_->setSizes({284, 680});
  across_->setStretchFactor(0, 0);
  across_->setStretchFactor(1, 1);
  stack_->addWidget(across_);
  column->addWidget(stack_, 1);
  connect(fix_, &QPushButton::clicked, this, [this] { document_.set("data.on_error", "skip"); });
}

QWidget* DataPage::bar() {
  auto* bar = new QWidget(this);
  auto* row = new QHBoxLayout(bar);
  row->setContentsMargins(2, 0, 0, 0);
  row->setSpacing(10);
  name_ = new ElidedLabel(Qt::ElideMiddle, bar, kMostFileName);
  QFont bold = name_->font();
  bold.setWeight(QFont::DemiBold);
  name_->setFont(bold);
  summary_ = new ElidedLabel(Qt::ElideRight, bar);
  summary_->setProperty("muted", true);
  progress_ = new QProgressBar(bar);
  progress_->setTextVisible(false);
  progress_->setRange(0, 1000);
  progress_->setFixedWidth(140);
  progress_->setAccessibleName(tr("Progress of reading the data"));
  eta_ = new QLabel(bar);
  eta_->setProperty("muted", true);
  const auto button = [&](const QString& text, const QString& tip, Glyph glyph) {
    auto* b = new QPushButton(icon(glyph), text, bar);
    b->setToolTip(tip);
    return b;
  };
  stop_ = button(tr("Cancel"), tr("Stop reading; the rows so far stay"), Glyph::stop);
  again_ = button(tr("Read Again"), tr("Read the file and the tokenizer anew"), Glyph::refresh);
  save_ = button(tr("Save Lengths\u2026"),
                 tr("Keep how many rows have how many tokens, for data.lengths: to plan where the data is not"),
                 Glyph::save);
  row->addWidget(name_);
  row->addWidget(summary_, 1);
  for (QWidget* w : std::initializer_list<QWidget*>{progress_, eta_, stop_, again_, save_}) row->addWidget(w);
  connect(stop_, &QPushButton::clicked, &reader_, &DataReader::cancel);
  connect(again_, &QPushButton::clicked, &reader_, &DataReader::read_again);
  connect(save_, &QPushButton::clicked, this, &DataPage::choose_lengths_file);
  return bar;
}

QWidget* DataPage::rows_side() {
  rows_side_ = new QWidget;
  auto* column = column_of(rows_side_, 4);
  filter_ = new QComboBox(rows_side_);
  filter_->setAccessibleName(tr("Rows to show"));
  for (int f = 0; f < kRowFilters; ++f) filter_->addItem(filter_text(static_cast<RowFilter>(f)));
  column->addWidget(filter_);
  table_ = new QTableView(rows_side_);
  set_up_table(*table_, model_, tr("Rows of the data"));
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setVerticalScrollMode(QAbstractItemView::ScrollPerItem);
  table_->verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
  QHeaderView* header = table_->horizontalHeader();
  header->setMinimumSectionSize(30);
  header->setSectionResizeMode(DataRowsModel::state, QHeaderView::Stretch);
  table_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  table_->setSortingEnabled(true);
  table_->sortByColumn(DataRowsModel::number, Qt::AscendingOrder);
  column->addWidget(table_, 1);
  table_->installEventFilter(this);
  connect(filter_, &QComboBox::currentIndexChanged, this, [this](int at) {
    model_.set_filter(static_cast<RowFilter>(at));
    select_first();
    show_head();
  });
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &DataPage::look_at_current);
  connect(header, &QHeaderView::sortIndicatorChanged, this, &DataPage::select_first);
  return rows_side_;
}

QWidget* DataPage::token_side() {
  token_side_ = new QWidget;
  token_side_->setObjectName(u"panelBody"_s);
  token_side_->setAttribute(Qt::WA_StyledBackground);
  auto* column = column_of(token_side_, 2);
  auto* head = new QHBoxLayout;
  row_ = new QLabel(token_side_);
  row_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  legend_ = new QLabel(token_side_);
  head->setContentsMargins(8, 4, 8, 2);
  head->addWidget(row_, 1);
  head->addWidget(legend_);
  column->addLayout(head);
  detail_stack_ = new QStackedWidget(token_side_);
  tokens_ = new TokenView;
  bad_ = new QLabel;
  bad_->setTextFormat(Qt::RichText);
  bad_->setWordWrap(true);
  bad_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  bad_->setAlignment(Qt::AlignLeft | Qt::AlignTop);
  bad_->setMargin(14);
  bad_->setProperty("bad", true);
  detail_stack_->addWidget(tokens_);
  detail_stack_->addWidget(bad_);
  column->addWidget(detail_stack_, 1);
  pointed_ = new QLabel(token_side_);
  pointed_->setProperty("muted", true);
  pointed_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  pointed_->setContentsMargins(8, 2, 8, 3);
  pointed_->setTextFormat(Qt::PlainText);
  column->addWidget(pointed_);
  connect(tokens_, &TokenView::pointed, this, &DataPage::show_pointed);
  show_pointed();
  return token_side_;
}

QWidget* DataPage::empty_page() {
  auto* page = new QWidget(this);
  auto* column = new QVBoxLayout(page);
  column->setAlignment(Qt::AlignCenter);
  column->setSpacing(10);
  empty_title_ = new QLabel(page);
  QFont big = empty_title_->font();
  big.setPointSizeF(big.pointSizeF() * 1.4);
  big.setWeight(QFont::DemiBold);
  empty_title_->setFont(big);
  empty_text_ = new QLabel(page);
  empty_text_->setProperty("muted", true);
  empty_text_->setAlignment(Qt::AlignCenter);
  empty_text_->setWordWrap(true);
  empty_text_->setMinimumWidth(560);
  auto* row = new QHBoxLayout;
  row->setAlignment(Qt::AlignCenter);
  auto* file = new QPushButton(tr("Data File"), page);
  auto* lengths = new QPushButton(tr("Lengths File"), page);
  file->setToolTip(tr("Go to data.path in the form"));
  lengths->setToolTip(tr("Go to data.lengths in the form"));
  row->addWidget(file);
  row->addWidget(lengths);
  column->addWidget(empty_title_, 0, Qt::AlignCenter);
  column->addWidget(empty_text_, 0, Qt::AlignCenter);
  column->addLayout(row);
  connect(file, &QPushButton::clicked, this, [this] {
    const Problem* p = what_is_wrong();
    const bool of_setting = p && experiment::find_parameter(p->place);
    emit setting_wanted(of_setting ? qs(p->place) : u"data.path"_s);
  });
  connect(lengths, &QPushButton::clicked, this, [this] { emit setting_wanted(u"data.lengths"_s); });
  return page;
}

}  // namespace mw::ui
