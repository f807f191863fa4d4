// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/form/picker.h"

#include <QCoreApplication>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLineEdit>
#include <QScreen>
#include <QScrollBar>
#include <QSortFilterProxyModel>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>

#include "core/views/choices.h"
#include "ui/form/form.h"
#include "ui/form/text_fields.h"
#include "ui/session/background_task.h"
#include "ui/theme/table_model.h"
#include "ui/theme/tables.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"
#include "ui/theme/widgets.h"

namespace mw::ui {
namespace {

constexpr QSize kPickerSize(520, 340), kLargestPicker(760, 340);
constexpr int kWidestName = 300;

using TargetRow = views::TargetChoice;
using ModelRow = views::ModelChoice;

QAbstractItemModel* target_model(const plan::LoadContext& context) {
  const auto name = [](const TargetRow& t) { return qs(t.id); };
  auto* model = new TableModel<TargetRow>(
      {{.title = PickerPopup::tr("Target"), .text = name},
       {.title = PickerPopup::tr("Chip"), .text = [](const TargetRow& t) { return qs(t.chip); }},
       number_column<TargetRow>(
           PickerPopup::tr("Chips"), [](const TargetRow& t) { return grouped(t.chips); },
           [](const TargetRow& t) { return t.chips; }),
       number_column<TargetRow>(
           PickerPopup::tr("Memory per device"), [](const TargetRow& t) { return qs(to_text(t.memory)); },
           [](const TargetRow& t) { return static_cast<qlonglong>(t.memory.value); }),
       number_column<TargetRow>(
           PickerPopup::tr("USD per hour"),
           [](const TargetRow& t) { return t.usd_per_hour ? qs(to_text(Usd(*t.usd_per_hour))) : u"\u2013"_s; },
           [](const TargetRow& t) { return t.usd_per_hour.value_or(0); })});
  try {
    model->set_rows(views::target_choices(*context()));
  } catch (const Error&) {
    // The predictor reports a catalogue that cannot be read; the table stays empty.
  }
  return model;
}

// Lists the models at once and adds the predictions for the experiment when they are made.
class ModelTable : public TableModel<ModelRow> {
 public:
  ModelTable(const experiment::Experiment& experiment, const plan::LoadContext& context) : TableModel(columns(), cell) {
    set_rows(views::model_choices());
    predicting_.start([rows = rows_, experiment, context](const ReportProgress&, const std::stop_token& stop) mutable {
      const plan::PlanContextPtr loaded = context();
      for (ModelRow& row : rows)
        if (!stop.stop_requested()) views::predict_fit(row, experiment, *loaded);
      return rows;
    });
    connect(&predicting_, &BackgroundWork::ended, this, [this] {
      if (predicting_.result())
        set_rows(*predicting_.result(), [](const ModelRow& a, const ModelRow& b) { return a.id == b.id; });
    });
  }

 private:
  static Columns columns() {
    return {{.title = PickerPopup::tr("Model"), .text = [](const ModelRow& m) { return qs(m.id); }},
            {.title = PickerPopup::tr("Family"),
             .text = [](const ModelRow& m) -> QString {
               return m.planning_only ? PickerPopup::tr("%1 (plans only)").arg(qs(m.family)) : qs(m.family);
             }},
            number_column<ModelRow>(
                PickerPopup::tr("Parameters"),
                [](const ModelRow& m) { return qs(count_text(static_cast<double>(m.parameters))); },
                [](const ModelRow& m) { return static_cast<qlonglong>(m.parameters); }),
            number_column<ModelRow>(
                PickerPopup::tr("Predicted peak"),
                [](const ModelRow& m) { return m.fits ? qs(to_text(m.memory)) : QString(); },
                [](const ModelRow& m) { return static_cast<qlonglong>(m.memory.value); }),
            {.title = PickerPopup::tr("On this target"),
             .tooltip = PickerPopup::tr("Predicted for the experiment with this model"),
             .text = [](const ModelRow& m) -> QString {
               return m.fits             ? *m.fits ? PickerPopup::tr("Fits") : PickerPopup::tr("Does not fit")
                                  : m.reason.empty() ? PickerPopup::tr("Predicting\u2026")
                                         : PickerPopup::tr("No prediction");
             }}};
  }
  static QVariant cell(const ModelRow& m, int column, int role) {
    if (column == 4 && role == Qt::ToolTipRole && !m.reason.empty()) return qs(m.reason);
    if (column == 4 && role == Qt::ForegroundRole && m.fits) return *m.fits ? theme().good : theme().bad;
    return {};
  }
  BackgroundTask<std::vector<ModelRow>> predicting_;
};

}  // namespace

PickerPopup::PickerPopup(QAbstractItemModel* model, const QString& name, QWidget* parent)
    : QFrame(parent, Qt::Popup), matches_(new QSortFilterProxyModel(this)), search_(new QLineEdit(this)) {
  setObjectName(u"palette"_s);
  setAttribute(Qt::WA_DeleteOnClose);
  model->setParent(this);
  matches_->setSourceModel(model);
  matches_->setFilterKeyColumn(-1);
  matches_->setFilterCaseSensitivity(Qt::CaseInsensitive);
  matches_->setSortRole(sort_role);
  table_ = make_table(*matches_, name, this);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setFocusPolicy(Qt::NoFocus);
  table_->horizontalHeader()->setSectionResizeMode(1, QHeaderView::Stretch);
  show_when_empty(*table_, tr("No matches"));
  search_->setPlaceholderText(tr("Search"));
  search_->setAccessibleName(tr("Search: %1").arg(name));
  search_->installEventFilter(this);
  auto* column = make_layout<QVBoxLayout>(this, {1, 1, 1, 4}, 0);
  column->addWidget(search_);
  column->addWidget(table_, 1);
  connect(search_, &QLineEdit::textChanged, this, [this](const QString& words) {
    matches_->setFilterFixedString(words);
    select(0);
  });
  connect(table_, &QTableView::clicked, this, &PickerPopup::choose);
  // Models that a worker thread fills have other rows later.
  connect(matches_, &QAbstractItemModel::modelReset, this, [this] {
    fit_columns();
    select(0);
  });
  connect(matches_, &QAbstractItemModel::dataChanged, this, &PickerPopup::fit_columns);  // predictions arrive later
}

void PickerPopup::fit_columns() {
  int width = table_->verticalScrollBar()->sizeHint().width() + 4;
  for (int c = 0; c < matches_->columnCount(); ++c) {
    if (c != 1) table_->resizeColumnToContents(c);
    if (c == 0) table_->setColumnWidth(c, std::min(table_->columnWidth(c), kWidestName));
    width += c == 1 ? static_cast<QAbstractItemView*>(table_)->sizeHintForColumn(c) : table_->columnWidth(c);
  }
  resize(std::clamp(width, kPickerSize.width(), kLargestPicker.width()), kPickerSize.height());
}

void PickerPopup::open_below(const QWidget& field, const QString& current) {
  fit_columns();
  const auto now = matches_->match(matches_->index(0, 0), Qt::DisplayRole, current, 1, Qt::MatchExactly);
  select(now.isEmpty() ? 0 : now.front().row());
  table_->setSortingEnabled(true);
  table_->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);
  QRect place(field.mapToGlobal(QPoint(0, field.height())), size());
  const QRect room = field.screen()->availableGeometry();
  place.moveRight(std::min(place.right(), room.right()));
  place.moveBottom(std::min(place.bottom(), room.bottom()));
  setGeometry(place);
  show();
  search_->setFocus(Qt::PopupFocusReason);
}

void PickerPopup::select(int row) {
  table_->setCurrentIndex(matches_->index(row, 0));
}

void PickerPopup::choose() {
  const QModelIndex at = table_->currentIndex();
  if (!at.isValid()) return;
  const QModelIndex name = at.siblingAtColumn(0);
  const QVariant choice = name.data(choice_role);
  const QString value = choice.isValid() ? choice.toString() : name.data().toString();
  if (value.isEmpty()) return;
  emit chosen(value);
  close();
}

bool PickerPopup::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::KeyPress) {
    const int key = static_cast<QKeyEvent*>(event)->key();
    if (key == Qt::Key_Return || key == Qt::Key_Enter) return choose(), true;
    if (key == Qt::Key_Up || key == Qt::Key_Down || key == Qt::Key_PageUp || key == Qt::Key_PageDown)
      return QCoreApplication::sendEvent(table_, event);
  }
  return QFrame::eventFilter(watched, event);
}

void add_pickers(Form& form, Document& document, const plan::LoadContext& context) {
  const auto field = [&form](const char* key) { return qobject_cast<TextField*>(form.row(key)->field()); };
  const auto targets = [context] { return target_model(context); };
  field("serve.target")->add_picker(targets);
  field("target.id")->add_picker(targets);
  field("model.id")->add_picker([&document, context] { return new ModelTable(document.experiment(), context); });
}

}  // namespace mw::ui

#include "moc_picker.cpp"
