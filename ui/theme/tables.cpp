// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/theme/tables.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QHeaderView>
#include <QShortcut>
#include <QTableView>
#include <QVBoxLayout>

#include "ui/theme/text.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {
constexpr int kRowHeight = 22;
}

QTableView* make_table(QAbstractItemModel& model, const QString& name, QWidget* parent) {
  auto* table = new QTableView(parent);
  table->setModel(&model);
  table->setAccessibleName(name);
  table->setSelectionBehavior(QAbstractItemView::SelectRows);
  table->setAlternatingRowColors(true);
  table->setShowGrid(false);
  table->setWordWrap(false);
  table->setTabKeyNavigation(false);
  table->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  table->verticalHeader()->hide();
  table->verticalHeader()->setDefaultSectionSize(kRowHeight);
  table->horizontalHeader()->setHighlightSections(false);
  return table;
}

QString selected_rows(const QTableView& view) {
  const QAbstractItemModel& model = *view.model();
  const QHeaderView& header = *view.horizontalHeader();
  QStringList lines;
  const auto add = [&](auto cell) {
    QStringList cells;
    for (int place = 0; place < header.count(); ++place)
      if (const int c = header.logicalIndex(place); !view.isColumnHidden(c))
        cells << qs(formats::spreadsheet_text(ss(cell(c))));
    lines << cells.join(u'\t');
  };
  add([&](int c) { return model.headerData(c, Qt::Horizontal, Qt::DisplayRole).toString(); });
  for (int row = 0; row < model.rowCount(); ++row)
    if (view.selectionModel()->isRowSelected(row)) add([&](int c) { return model.index(row, c).data().toString(); });
  return lines.join(u'\n') + u'\n';
}

void copy_on_ctrl_c(QTableView& view) {
  auto* copy = new QShortcut(QKeySequence::Copy, &view);
  copy->setContext(Qt::WidgetShortcut);
  QObject::connect(copy, &QShortcut::activated, &view,
                   [&view] { QGuiApplication::clipboard()->setText(selected_rows(view)); });
}

QLabel* show_when_empty(QAbstractItemView& view, const QString& text) {
  auto* label = muted_label(text, &view);
  label->setAlignment(Qt::AlignCenter);
  label->setWordWrap(true);
  label->setAttribute(Qt::WA_TransparentForMouseEvents);
  auto* over = new QVBoxLayout(view.viewport());
  over->addWidget(label);
  QAbstractItemModel* model = view.model();
  const auto update = [label, model] { label->setVisible(model->rowCount() == 0); };
  for (const auto change : {&QAbstractItemModel::rowsInserted, &QAbstractItemModel::rowsRemoved})
    QObject::connect(model, change, label, update);
  QObject::connect(model, &QAbstractItemModel::modelReset, label, update);
  update();
  return label;
}

}  // namespace mw::ui
