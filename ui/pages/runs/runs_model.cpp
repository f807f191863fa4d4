// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/runs/runs_model.h"

#include <QDateTime>
#include <string_view>
#include <unordered_set>

#include "core/base/text.h"
#include "ui/run_views/run_drag.h"
#include "ui/run_views/run_header.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

using views::ListedRun;

constexpr size_t kDetailsAtOnce = 100;  // read on the GUI thread
constexpr size_t kDetailsInBatch = 1000;

// Local time, with the year if it is not the current one.
QString when_text(const std::string& utc, bool brief) {
  const QDateTime at = QDateTime::fromString(qs(utc), Qt::ISODate).toLocalTime();
  const bool this_year = at.date().year() == QDate::currentDate().year();
  return at.toString(!brief ? u"yyyy-MM-dd HH:mm:ss"_s : this_year ? u"MM-dd HH:mm"_s : u"yyyy-MM-dd"_s);
}

// Natural order: run-12 follows run-9.
qlonglong run_number(const std::string& id) {
  const size_t dash = id.rfind('-');
  return dash == std::string::npos ? 0 : parse_number<qlonglong>(std::string_view(id).substr(dash + 1)).value_or(0);
}

QString steps_text(const ListedRun& r) {
  return r.steps_total > 0 ? RunsModel::tr("%1 / %2").arg(r.steps_done).arg(r.steps_total)
                           : QString::number(r.steps_done);
}

// Sorted without regard to case.
TableColumn<ListedRun> text_column(const QString& title, std::function<QString(const ListedRun&)> text,
                                   const QString& tooltip = {}) {
  return {.title = title, .tooltip = tooltip, .text = text, .sort_key = [text](const ListedRun& r) {
            return text(r).toLower();
          }};
}
TableColumn<ListedRun> text_column(const QString& title, std::string ListedRun::*member, const QString& tooltip = {}) {
  return text_column(
      title, [member](const ListedRun& r) { return qs(r.*member); }, tooltip);
}

TableColumn<ListedRun> loss_column(const QString& title, std::optional<double> ListedRun::*loss,
                                   const QString& tooltip) {
  return {.title = title,
          .tooltip = tooltip,
          .alignment = Qt::AlignRight,
          .text = [loss](const auto& r) { return r.*loss ? QString::number(*(r.*loss), 'f', 4) : QString(); },
          .sort_key = [loss](const auto& r) { return r.*loss && std::isfinite(*(r.*loss)) ? *(r.*loss) : 1e300; }};
}

TableModel<ListedRun>::Columns run_columns() {
  // `text`: of the value, which is above zero.
  const auto number = [](const QString& title, auto value, auto text, const QString& tooltip = {}) {
    auto column = TableModel<ListedRun>::number_of(title, value,
                                                   [text](auto n) { return n > decltype(n){} ? text(n) : QString(); });
    column.tooltip = tooltip;
    return column;
  };
  const auto counted = [](auto n) { return qs(count_text(static_cast<double>(n))); };
  const auto optional_number = [](const QString& title, const QString& tooltip, CellText<ListedRun> text,
                                  TableModel<ListedRun>::SortKey key) {
    return TableColumn<ListedRun>{
        .title = title, .tooltip = tooltip, .alignment = Qt::AlignRight, .text = text, .sort_key = key};
  };
  return {
      {.title = RunsModel::tr("Id"),
       .text = &ListedRun::id,
       .sort_key = [](const auto& r) { return run_number(r.id); }},
      text_column(RunsModel::tr("Name"), &ListedRun::shown_name),
      text_column(RunsModel::tr("State"),
                  [](const auto& r) { return r.interrupted() ? RunsModel::tr("Interrupted") : state_text(r.state); }),
      text_column(RunsModel::tr("Target"), &ListedRun::target),
      text_column(RunsModel::tr("Changed"), &ListedRun::changed,
                  RunsModel::tr("Settings that differ from the previous run of this kind")),
      loss_column(RunsModel::tr("Train loss"), &ListedRun::train_loss,
                  RunsModel::tr("Training loss of the last step in nats per token")),
      loss_column(RunsModel::tr("Eval loss"), &ListedRun::eval_loss, RunsModel::tr("Last eval loss in nats per token")),
      optional_number(
          RunsModel::tr("Right"), RunsModel::tr("Right answers to the held-out prompts that were asked last"),
          [](const auto& r) { return r.answers ? shown(*r.answers) : QString(); },
          [](const auto& r) { return r.answers ? r.answers->share() : -1.0; }),
      optional_number(RunsModel::tr("Steps"), RunsModel::tr("Completed and requested optimizer steps"), steps_text,
                      [](const auto& r) { return sort_key_of(r.steps_done); }),
      number(RunsModel::tr("Time"), &ListedRun::seconds, [](double seconds) { return shown(Seconds(seconds)); }),
      optional_number(
          RunsModel::tr("Cost"),
          RunsModel::tr("USD: time on the target times its price; predicted costs, of simulated time, are in italics"),
          [](const auto& r) { return r.cost ? shown(Usd(r.cost->usd)) : QString(); },
          [](const auto& r) { return r.cost ? r.cost->usd : -1.0; }),
      optional_number(
          RunsModel::tr("Tokens/s"), RunsModel::tr("Tokens without padding per second of the whole run"),
          [counted](const auto& r) { return r.tokens_per_second ? counted(*r.tokens_per_second) : QString(); },
          [](const auto& r) { return r.tokens_per_second.value_or(-1); }),
      number(RunsModel::tr("Peak"), &ListedRun::peak, shown<Bytes>, RunsModel::tr("Peak memory per device")),
      text_column(RunsModel::tr("Tags"), &ListedRun::tags, RunsModel::tr("Tags for filtering; press F2 to edit")),
      {.title = RunsModel::tr("Created"),
       .text = [](const auto& r) { return when_text(r.created, true); },
       .sort_key = [](const auto& r) { return run_number(r.id); }},
      text_column(RunsModel::tr("Model"), &ListedRun::model),
      text_column(RunsModel::tr("Method"), &ListedRun::method),
      number(RunsModel::tr("Tokens"), &ListedRun::tokens, counted,
             RunsModel::tr("Tokens used for training, without padding")),
      optional_number(
          RunsModel::tr("Trained"),
          RunsModel::tr("Trained parameters, their share of the model, and the size of the saved file"),
          [](const auto& r) {
            return r.trainable ? qs(to_text(*r.trainable) + ", " + to_text(r.trainable->file)) : QString();
          },
          [](const auto& r) { return static_cast<qlonglong>(r.trainable ? r.trainable->params : -1); }),
      text_column(RunsModel::tr("Source"), &ListedRun::source,
                  RunsModel::tr("Whether the run was measured here, predicted or imported"))};
}

QVariant run_cell(const ListedRun& r, int column, int role) {
  switch (role) {
    case Qt::EditRole:
      return column == RunsModel::name ? qs(r.name) : QVariant();
    case Qt::ToolTipRole:
      if (column == RunsModel::created) return when_text(r.created, false);
      if (column == RunsModel::state && !r.error.empty()) return qs(r.error);
      if (column == RunsModel::usd && r.cost)
        return r.cost->is_predicted ? RunsModel::tr("Predicted: simulated time times the price of the target")
                                    : RunsModel::tr("Measured time times the price of the target");
      if (column == RunsModel::name) return RunsModel::tr("%1, %2; press F2 to rename").arg(qs(r.id), qs(r.shown_name));
      return {};
    case Qt::BackgroundRole:
      if (column != RunsModel::state) return {};
      return mix(theme().panel, theme().state(r.interrupted() ? RunState::cancelled : r.state), 0.2);
    case Qt::FontRole: {
      QFont italic;
      italic.setItalic(true);
      return column == RunsModel::usd && r.cost && r.cost->is_predicted ? QVariant(italic) : QVariant();
    }
    case RunsModel::id_role:
      return qs(r.id);
    default:
      return {};
  }
}

}  // namespace

RunsModel::RunsModel(std::filesystem::path folder, plan::LoadContext context, QObject* parent)
    : TableModel(run_columns(), run_cell, parent), list_(std::move(context)), store_(std::move(folder)) {
  connect(&details_, &BackgroundWork::ended, this, [this] {
    if (!details_.result()) return;  // the store cannot be read; the next refresh() reads again
    const bool is_complete = details_.result()->size() == requested_;
    list_.add(std::move(*details_.result()));
    is_complete && !list_.missing(1).empty() ? read_details() : show_list();
  });
}

void RunsModel::set_trash(store::Trash trash) {
  trash_ = trash;
  shown_.reset();
  refresh();
}

void RunsModel::refresh() {
  std::optional<store::Store::Version> now;
  if (!change([&](store::Store& store) { now = store.version(); })) return;
  if (!now || now != shown_) {
    shown_ = now;
    show_list();
  }
  read_details();
}

void RunsModel::show_list() {
  std::vector<ListedRun> now;
  if (!change([&](store::Store& store) { now = list_.read(store, trash_, kDetailsAtOnce); })) return shown_.reset();
  emit about_to_refresh();
  is_refreshing_ = true;
  remove_all_but(now);
  insert_and_update(std::move(now));
  is_refreshing_ = false;
  emit refreshed();
}

void RunsModel::remove_all_but(const std::vector<ListedRun>& runs) {
  std::unordered_set<std::string_view> ids;
  for (const ListedRun& run : runs) ids.insert(run.id);
  const auto is_kept = [&](size_t i) { return ids.contains(runs_[i]->run.id); };
  for (size_t end = runs_.size(); end > 0;) {
    size_t begin = end;
    while (begin > 0 && !is_kept(begin - 1)) --begin;
    if (begin < end) {
      beginRemoveRows({}, static_cast<int>(begin), static_cast<int>(end) - 1);
      runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(begin), runs_.begin() + static_cast<std::ptrdiff_t>(end));
      endRemoveRows();
    }
    end = begin > 0 ? begin - 1 : 0;
  }
}

// The rows that remain are in the order of `runs`.
void RunsModel::insert_and_update(std::vector<ListedRun> runs) {
  std::vector<int> updated;
  for (size_t i = 0; i < runs.size();) {
    if (i < runs_.size() && runs_[i]->run.id == runs[i].id) {
      if (runs[i] != runs_[i]->run) {
        *runs_[i] = {std::move(runs[i])};
        updated.push_back(static_cast<int>(i));
      }
      ++i;
      continue;
    }
    size_t end = i + 1;
    while (end < runs.size() && (i == runs_.size() || runs[end].id != runs_[i]->run.id)) ++end;
    std::vector<std::unique_ptr<Entry>> added;
    for (size_t k = i; k < end; ++k) added.push_back(std::make_unique<Entry>(Entry{std::move(runs[k])}));
    beginInsertRows({}, static_cast<int>(i), static_cast<int>(end) - 1);
    runs_.insert(runs_.begin() + static_cast<std::ptrdiff_t>(i), std::make_move_iterator(added.begin()),
                 std::make_move_iterator(added.end()));
    endInsertRows();
    i = end;
  }
  if (!updated.empty()) emit dataChanged(index(updated.front(), 0), index(updated.back(), columnCount() - 1));
}

void RunsModel::read_details() {
  if (details_.is_busy()) return;
  std::vector<views::DetailsRequest> runs = list_.missing(kDetailsInBatch);
  if (runs.empty()) return;
  requested_ = runs.size();
  details_.start(
      with_store(store_.folder(), [context = list_.context(), runs = std::move(runs)](
                                      const store::Store& store, const ReportProgress&, const std::stop_token& stop) {
        return views::read_details(store, runs, context.get(), stop);
      }));
}

int RunsModel::row_of(const store::RunId& run) const {
  const auto at =
      std::lower_bound(runs_.begin(), runs_.end(), run_number(run),
                       [](const auto& entry, qlonglong number) { return run_number(entry->run.id) > number; });
  return at != runs_.end() && (*at)->run.id == run ? static_cast<int>(at - runs_.begin()) : -1;
}

const QString& RunsModel::search_text(int row) const {
  const Entry& entry = *runs_[static_cast<size_t>(row)];
  if (entry.search_text.isEmpty()) {
    for (int column = 0; column < columnCount(); ++column) entry.search_text += text(entry.run, column) + u' ';
    entry.search_text = entry.search_text.toLower();
  }
  return entry.search_text;
}

bool RunsModel::change(const std::function<void(store::Store&)>& change) {
  try {
    change(store_.get([this] { shown_.reset(); }));
    return true;
  } catch (const Error& error) {
    emit problem(error.problem());
    return false;
  }
}

void RunsModel::set_deleted(const std::vector<store::RunId>& which, store::Trash trash) {
  change([&](store::Store& store) { store.set_deleted(which, trash); });
  refresh();
}

void RunsModel::purge(const std::vector<store::RunId>& which) {
  change([&](store::Store& store) {
    for (const auto& run : which) store.purge(run);
  });
  refresh();
}

views::RunPreview RunsModel::preview(int row) {
  views::RunPreview out;
  change([&](store::Store& store) { out = views::run_preview(store, this->row(row)); });
  return out;
}

std::filesystem::path RunsModel::folder_of(const store::RunId& run) {
  std::filesystem::path folder;
  change([&](store::Store& store) { folder = store.run_folder(run); });
  return folder;
}

Qt::ItemFlags RunsModel::flags(const QModelIndex& index) const {
  Qt::ItemFlags f = TableModel::flags(index);
  if (!index.isValid()) return f;
  f |= Qt::ItemIsDragEnabled;
  if (index.column() == name || index.column() == tags) f |= Qt::ItemIsEditable;
  return f;
}

bool RunsModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (role != Qt::EditRole || !(flags(index) & Qt::ItemIsEditable)) return false;
  const std::string text = ss(value.toString().trimmed());
  const store::RunId run = row(index.row()).id;
  const auto edit = index.column() == name ? &store::Store::rename : &store::Store::set_tags;
  if (!change([&](store::Store& store) { (store.*edit)(run, text); })) return false;
  refresh();
  return true;
}

QStringList RunsModel::mimeTypes() const {
  return {run_mime_type()};
}

QMimeData* RunsModel::mimeData(const QModelIndexList& indexes) const {
  std::vector<store::RunId> runs;
  for (const QModelIndex& at : indexes)
    if (at.column() == indexes.front().column()) runs.push_back(row(at.row()).id);  // whole rows are selected
  return run_mime(runs);
}

RunsFilter::RunsFilter(QObject* parent) : QSortFilterProxyModel(parent) {
  setSortRole(sort_role);
  setDynamicSortFilter(true);
}

void RunsFilter::set_words(const QString& words) {
  words_ = words.toLower().split(u' ', Qt::SkipEmptyParts);
  invalidateFilter();
}

bool RunsFilter::filterAcceptsRow(int row, const QModelIndex&) const {
  if (words_.isEmpty()) return true;
  const QString& all = static_cast<const RunsModel*>(sourceModel())->search_text(row);
  return std::all_of(words_.begin(), words_.end(), [&](const QString& word) { return all.contains(word); });
}

bool RunsFilter::lessThan(const QModelIndex& a, const QModelIndex& b) const {
  const QVariant x = a.data(sort_role), y = b.data(sort_role);
  if (x == y) return a.row() > b.row();  // the older run
  return QSortFilterProxyModel::lessThan(a, b);
}

}  // namespace mw::ui

#include "moc_runs_model.cpp"
