// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/form/picker.h"

#include <QLineEdit>
#include <QScrollBar>
#include <QSortFilterProxyModel>

#include "core/views/choices.h"
#include "ui/form/form.h"
#include "ui/session/background_task.h"

namespace mw::ui {

namespace fs = std::filesystem;
namespace {

constexpr QSize kPickerSize(520, 340), kLargestPicker(760, 340);
constexpr int kWidestName = 300;

using TargetRow = views::TargetChoice;
using TargetTable = TableModel<TargetRow>;
using ModelRow = views::ModelChoice;

QAbstractItemModel* target_model(const plan::LoadContext& context) {
  auto* model =
      new TargetTable({{.title = PickerPopup::tr("Target"), .text = &TargetRow::id},
                       {.title = PickerPopup::tr("Chip"), .text = &TargetRow::chip},
                       TargetTable::number_of(PickerPopup::tr("Chips"), &TargetRow::chips, grouped),
                       TargetTable::number_of(PickerPopup::tr("Memory per device"), &TargetRow::memory, shown<Bytes>),
                       TargetTable::number(
                           PickerPopup::tr("USD per hour"),
                           [](const auto& t) { return t.usd_per_hour ? shown(Usd(*t.usd_per_hour)) : u"\u2013"_s; },
                           [](const auto& t) { return t.usd_per_hour.value_or(0); })});
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
    return {{.title = PickerPopup::tr("Model"), .text = &ModelRow::id},
            {.title = PickerPopup::tr("Family"),
             .text = [](const auto& m) -> QString {
               return m.planning_only ? PickerPopup::tr("%1 (plans only)").arg(qs(m.family)) : qs(m.family);
             }},
            number_of(PickerPopup::tr("Parameters"), &ModelRow::parameters,
                      [](auto n) { return qs(count_text(static_cast<double>(n))); }),
            number(
                PickerPopup::tr("Predicted peak"), [](const auto& m) { return m.fits ? shown(m.memory) : QString(); },
                [](const auto& m) { return sort_key_of(m.memory); }),
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

namespace {

enum class RowState { searching, predicting, ready, skipped };

struct FoundRow {
  views::FoundChoice choice;
  RowState state = RowState::predicting;
};

QString place_text(importing::ModelPlace place) {
  switch (place) {
    case importing::ModelPlace::hugging_face:
      return PickerPopup::tr("Hugging Face cache");
    case importing::ModelPlace::kaggle:
      return PickerPopup::tr("Kaggle cache");
    case importing::ModelPlace::runs:
      return PickerPopup::tr("Runs");
    case importing::ModelPlace::folder:
      return PickerPopup::tr("Beside the present folder");
  }
  return {};
}

QString here_text(const FoundRow& row) {
  const views::FoundChoice& choice = row.choice;
  if (row.state == RowState::searching) return {};
  if (row.state == RowState::predicting) return PickerPopup::tr("Predicting\u2026");
  if (row.state == RowState::skipped) return PickerPopup::tr("Skipped: %1").arg(qs(choice.reason));
  if (!choice.fits) return PickerPopup::tr("No prediction");
  if (!*choice.fits) return PickerPopup::tr("Does not fit");
  if (!choice.tokens_per_second) return PickerPopup::tr("Fits");
  const plan::Estimate& rate = *choice.tokens_per_second;
  const QString text =
      PickerPopup::tr("Fits, %1 to %2 tokens/s").arg(qs(number_text(rate.low, 2)), qs(number_text(rate.high, 2)));
  return choice.weights == choice.model.dtype ? text : PickerPopup::tr("%1 in %2").arg(text, qs(choice.weights));
}

QString row_tooltip(const FoundRow& row) {
  if (row.state == RowState::searching) return {};
  QStringList lines{qpath(row.choice.model.folder)};
  if (row.state != RowState::skipped) lines << place_text(row.choice.model.place);
  if (!row.choice.reason.empty()) lines << qs(row.choice.reason);
  return lines.join(u'\n');
}

std::vector<FoundRow> rows_of(const importing::FoundModels& found, importing::ModelKind kind) {
  std::vector<FoundRow> rows;
  for (const importing::FoundModel& model : found.models)
    if (model.kind == kind) rows.push_back({.choice = {.model = model}});
  for (const Problem& problem : found.skipped) {
    FoundRow& row = rows.emplace_back(FoundRow{.choice = {}, .state = RowState::skipped});
    row.choice.model.folder = problem.file;
    row.choice.model.name = fs::path(problem.file).filename().string();
    row.choice.reason = problem.message;
  }
  return rows;
}

class FoundModelTable : public TableModel<FoundRow> {
 public:
  FoundModelTable(importing::ModelKind kind, const importing::ModelFolders& folders,
                  const experiment::Experiment& experiment, const plan::LoadContext& context)
      : TableModel(columns(), cell) {
    FoundRow searching{.choice = {}, .state = RowState::searching};
    searching.choice.model.name = ss(PickerPopup::tr("Searching this machine\u2026"));
    set_rows({std::move(searching)});
    searching_.start([folders, kind](const ReportProgress&, const std::stop_token& stop) {
      return rows_of(importing::find_models(folders, stop), kind);
    });
    connect(&searching_, &BackgroundWork::ended, this, [this, experiment, context] {
      set_rows(searching_.result().value_or(std::vector<FoundRow>()));
      predict(experiment, context);
    });
    connect(&predicting_, &BackgroundWork::ended, this, [this] {
      if (predicting_.result())
        set_rows(*predicting_.result(),
                 [](const FoundRow& a, const FoundRow& b) { return a.choice.model.folder == b.choice.model.folder; });
    });
  }

 private:
  void predict(const experiment::Experiment& experiment, const plan::LoadContext& context) {
    predicting_.start([rows = rows_, experiment, context](const ReportProgress&, const std::stop_token& stop) mutable {
      const plan::PlanContextPtr loaded = context();
      for (FoundRow& row : rows) {
        if (stop.stop_requested()) break;
        if (row.state != RowState::predicting) continue;
        row.choice = views::predict_here(std::move(row.choice.model), experiment, *loaded);
        row.state = RowState::ready;
      }
      return rows;
    });
  }
  static Columns columns() {
    const auto text = [](auto of) { return [of](const FoundRow& row) -> QString { return qs(of(row.choice.model)); }; };
    return {{.title = PickerPopup::tr("Name"), .text = text([](const auto& m) { return m.name; })},
            {.title = PickerPopup::tr("Family"), .text = text([](const auto& m) { return m.family; })},
            number_of(
                PickerPopup::tr("Size"),
                [](const auto& row) { return Bytes(static_cast<std::int64_t>(row.choice.model.bytes)); },
                [](Bytes size) { return size.value > 0 ? shown(size) : QString(); }),
            {.title = PickerPopup::tr("Type"), .text = text([](const auto& m) { return m.dtype; })},
            {.title = PickerPopup::tr("Predicted here"),
             .tooltip = PickerPopup::tr("Predicted for serving one request at a time with the engine on this machine"),
             .text = here_text}};
  }
  static QVariant cell(const FoundRow& row, int column, int role) {
    const bool usable = row.state == RowState::predicting || row.state == RowState::ready;
    if (role == choice_role) return usable ? qpath(row.choice.model.folder) : u""_s;
    if (role == Qt::ToolTipRole) return row_tooltip(row);
    if (role != Qt::ForegroundRole) return {};
    if (!usable) return theme().muted;
    if (column == 4 && row.choice.fits) return *row.choice.fits ? theme().good : theme().bad;
    return {};
  }
  BackgroundTask<std::vector<FoundRow>> searching_, predicting_;
};

void add_parent(const experiment::Experiment& experiment, const char* key, std::vector<fs::path>& folders) {
  try {
    const fs::path parent = experiment.path(key).parent_path();
    if (!parent.empty() && std::find(folders.begin(), folders.end(), parent) == folders.end())
      folders.push_back(parent);
  } catch (const Error&) {
    // The form shows the invalid value.
  }
}

}  // namespace

QAbstractItemModel* make_found_models(importing::ModelKind kind, const importing::ModelFolders& folders,
                                      const Document& document, const plan::LoadContext& context) {
  return new FoundModelTable(kind, folders, document.experiment(), context);
}

void add_found_model_pickers(Form& form, Document& document, const plan::LoadContext& context,
                             const fs::path& runs_folder) {
  const auto add = [&](const char* key, importing::ModelKind kind) {
    auto* field = qobject_cast<TextField*>(form.row(key)->field());
    field->add_picker([&document, key, kind, context, runs_folder] {
      importing::ModelFolders folders = importing::model_folders(runs_folder);
      add_parent(document.experiment(), key, folders.others);
      return make_found_models(kind, folders, document, context);
    });
  };
  add("model.path", importing::ModelKind::model);
  add("lora.adapter", importing::ModelKind::adapter);
}

}  // namespace mw::ui

#include "moc_picker.cpp"
