// SPDX-License-Identifier: GPL-3.0-or-later
#include <QClipboard>
#include <QGuiApplication>
#include <QScrollBar>
#include <QShortcut>

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
        cells << qs(spreadsheet_text(ss(cell(c))));
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

namespace {

class FrozenColumns : public QTableView {
 public:
  FrozenColumns(QTableView& view, int count) : QTableView(&view), view_(view), count_(count) {
    setModel(view.model());
    setSelectionModel(view.selectionModel());
    setItemDelegate(view.itemDelegate());
    setObjectName(u"frozen"_s);
    setFocusPolicy(Qt::NoFocus);
    setFrameShape(NoFrame);
    setSelectionBehavior(view.selectionBehavior());
    setSelectionMode(view.selectionMode());
    setEditTriggers(NoEditTriggers);
    setAlternatingRowColors(view.alternatingRowColors());
    setShowGrid(false);
    setWordWrap(false);
    setMouseTracking(true);
    setContextMenuPolicy(Qt::NoContextMenu);  // the menu of the view appears
    setVerticalScrollMode(view.verticalScrollMode());
    for (const auto set : {&QTableView::setVerticalScrollBarPolicy, &QTableView::setHorizontalScrollBarPolicy})
      (this->*set)(Qt::ScrollBarAlwaysOff);
    verticalHeader()->hide();
    verticalHeader()->setDefaultSectionSize(view.verticalHeader()->defaultSectionSize());
    horizontalHeader()->setSectionResizeMode(QHeaderView::Fixed);
    horizontalHeader()->setHighlightSections(false);
    setSortingEnabled(view.isSortingEnabled());
    connect(this, &QTableView::entered, &view, &QTableView::entered);
    connect(this, &QTableView::clicked, &view, &QTableView::clicked);
    connect(this, &QTableView::doubleClicked, &view, &QTableView::doubleClicked);
    connect(view.verticalScrollBar(), &QScrollBar::valueChanged, verticalScrollBar(), &QScrollBar::setValue);
    connect(verticalScrollBar(), &QScrollBar::valueChanged, view.verticalScrollBar(), &QScrollBar::setValue);
    connect(view.horizontalScrollBar(), &QScrollBar::rangeChanged, this, &FrozenColumns::place);
    connect(view.horizontalHeader(), &QHeaderView::sectionResized, this, &FrozenColumns::place);
    connect(view.horizontalHeader(), &QHeaderView::geometriesChanged, this, &FrozenColumns::place);
    connect(view.model(), &QAbstractItemModel::modelReset, this, &FrozenColumns::place);
    view.viewport()->installEventFilter(this);
    place();
  }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override {
    if (event->type() == QEvent::Resize) place();
    return QTableView::eventFilter(watched, event);
  }

 private:
  void place() {
    int width = 0;
    for (int c = 0; c < model()->columnCount(); ++c) {
      const bool frozen = view_.horizontalHeader()->visualIndex(c) < count_ && !view_.isColumnHidden(c);
      setColumnHidden(c, !frozen);
      if (frozen) setColumnWidth(c, view_.columnWidth(c)), width += view_.columnWidth(c);
    }
    setVisible(view_.horizontalScrollBar()->maximum() > 0);
    horizontalHeader()->setFixedHeight(view_.horizontalHeader()->height());
    const QRect inside = view_.viewport()->geometry();
    setGeometry(inside.left(), inside.top() - view_.horizontalHeader()->height(), width,
                inside.height() + view_.horizontalHeader()->height());
    raise();
  }
  QTableView& view_;
  int count_;
};

}  // namespace

QTableView* freeze_columns(QTableView& view, int count) {
  return new FrozenColumns(view, count);
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
