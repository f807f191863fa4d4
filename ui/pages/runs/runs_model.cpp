// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/runs/runs_model.h"

#include <QDateTime>
#include <algorithm>
#include <cmath>

#include "ui/run_views/run_header.h"
#include "ui/run_views/run_mime.h"
#include "ui/theme/text.h"
#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

bool same(const store::RunRow& a, const store::RunRow& b) {
  const auto all = [](const store::RunRow& r) {
    return std::tie(r.id, r.name, r.created, r.state, r.model, r.method, r.source, r.steps_done, r.steps_total,
                    r.train_loss, r.eval_loss, r.seconds, r.tokens, r.peak, r.tags, r.error);
  };
  return all(a) == all(b);
}

QVariant loss_text(const std::optional<double>& loss) {
  return loss ? QVariant(QString::number(*loss, 'f', 4)) : QVariant();
}

QVariant number_or_last(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? *value : 1e300;
}

// Local time, with the year if it is not the current one.
QString when_text(const std::string& utc, bool brief) {
  const QDateTime at = QDateTime::fromString(qs(utc), Qt::ISODate).toLocalTime();
  const bool this_year = at.date().year() == QDate::currentDate().year();
  return at.toString(!brief ? u"yyyy-MM-dd HH:mm:ss"_s : this_year ? u"MM-dd HH:mm"_s : u"yyyy-MM-dd"_s);
}

// Natural order: run-12 follows run-9.
qlonglong run_number(const std::string& id) {
  const size_t dash = id.rfind('-');
  return dash == std::string::npos ? 0 : qs(id.substr(dash + 1)).toLongLong();
}

}  // namespace

RunsModel::RunsModel(std::filesystem::path folder, QObject* parent)
    : QAbstractTableModel(parent), folder_(std::move(folder)) {}

store::Store& RunsModel::store() {
  if (store_ && store_->gone()) store_.reset();
  if (!store_) {
    store_ = std::make_unique<store::Store>(folder_);
    store_->recover();  // marks runs whose process died as interrupted
  }
  return *store_;
}

void RunsModel::set_trash(store::Trash trash) {
  trash_ = trash;
  refresh();
}

void RunsModel::refresh() {
  std::vector<store::RunRow> now;
  try {
    now = store().list(trash_);
  } catch (const Error& error) {
    emit problem(error.problem());
    return;
  }
  const bool same_runs = now.size() == rows_.size() && std::equal(now.begin(), now.end(), rows_.begin(),
                                                                  [](auto& a, auto& b) { return a.id == b.id; });
  if (same_runs) {
    for (size_t i = 0; i < now.size(); ++i) {
      if (same(now[i], rows_[i])) continue;
      rows_[i] = now[i];
      emit dataChanged(index(static_cast<int>(i), 0), index(static_cast<int>(i), columns - 1));
    }
    return;
  }
  // Rows can appear and disappear anywhere: removes old rows, then inserts new ones in the order of the store.
  for (size_t i = rows_.size(); i-- > 0;) {
    if (std::any_of(now.begin(), now.end(), [&](auto& r) { return r.id == rows_[i].id; })) continue;
    beginRemoveRows({}, static_cast<int>(i), static_cast<int>(i));
    rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(i));
    endRemoveRows();
  }
  for (size_t i = 0; i < now.size(); ++i) {
    if (i < rows_.size() && rows_[i].id == now[i].id) {
      if (same(now[i], rows_[i])) continue;
      rows_[i] = now[i];
      emit dataChanged(index(static_cast<int>(i), 0), index(static_cast<int>(i), columns - 1));
      continue;
    }
    beginInsertRows({}, static_cast<int>(i), static_cast<int>(i));
    rows_.insert(rows_.begin() + static_cast<std::ptrdiff_t>(i), now[i]);
    endInsertRows();
  }
}

int RunsModel::row_of(const store::RunId& run) const {
  for (size_t i = 0; i < rows_.size(); ++i)
    if (rows_[i].id == run) return static_cast<int>(i);
  return -1;
}

void RunsModel::set_deleted(const std::vector<store::RunId>& which, store::Trash trash) {
  try {
    for (const auto& run : which) store().set_deleted(run, trash);
  } catch (const Error& error) {
    emit problem(error.problem());
  }
  refresh();
}

int RunsModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int RunsModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : columns;
}

QVariant RunsModel::shown(const store::RunRow& r, int column) const {
  switch (column) {
    case name:
      return qs(r.name.empty() ? r.id : r.name);
    case state:
      return r.interrupted() ? tr("Interrupted") : state_text(r.state);
    case created:
      return when_text(r.created, true);
    case model:
      return qs(r.model);
    case method:
      return qs(r.method);
    case steps:
      return r.steps_total > 0 ? tr("%1 / %2").arg(r.steps_done).arg(r.steps_total) : QString::number(r.steps_done);
    case train_loss:
      return loss_text(r.train_loss);
    case eval_loss:
      return loss_text(r.eval_loss);
    case duration:
      return r.seconds > 0 ? QVariant(qs(to_text(Seconds(r.seconds)))) : QVariant();
    case tokens:
      return r.tokens > 0 ? QVariant(qs(count_text(static_cast<double>(r.tokens)))) : QVariant();
    case peak:
      return r.peak.value > 0 ? QVariant(qs(to_text(r.peak))) : QVariant();
    case tags:
      return qs(r.tags);
    case source:
      return qs(r.source);
  }
  return {};
}

QVariant RunsModel::sort_value(const store::RunRow& r, int column) const {
  switch (column) {
    case created:
      return QVariant::fromValue(run_number(r.id));
    case steps:
      return QVariant::fromValue(static_cast<qlonglong>(r.steps_done));
    case train_loss:
      return number_or_last(r.train_loss);
    case eval_loss:
      return number_or_last(r.eval_loss);
    case duration:
      return r.seconds;
    case tokens:
      return QVariant::fromValue(static_cast<qlonglong>(r.tokens));
    case peak:
      return QVariant::fromValue(static_cast<qlonglong>(r.peak.value));
    default:
      return shown(r, column).toString().toLower();
  }
}

QVariant RunsModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const store::RunRow& r = row(index.row());
  switch (role) {
    case Qt::DisplayRole:
      return shown(r, index.column());
    case Qt::EditRole:
      return index.column() == name ? qs(r.name) : shown(r, index.column());
    case Qt::ToolTipRole:
      if (index.column() == created) return when_text(r.created, false);
      if (index.column() == state && !r.error.empty()) return qs(r.error);
      if (index.column() == name) return tr("%1, %2. Press F2 to rename.").arg(qs(r.id), qs(r.name));
      return shown(r, index.column());
    case Qt::ForegroundRole:
      if (index.column() == state) return theme().state(r.interrupted() ? RunState::cancelled : r.state);
      return {};
    case Qt::TextAlignmentRole:
      return static_cast<int>((index.column() >= steps && index.column() <= peak ? Qt::AlignRight : Qt::AlignLeft) |
                              Qt::AlignVCenter);
    case sort_role:
      return sort_value(r, index.column());
    case id_role:
      return qs(r.id);
  }
  return {};
}

QVariant RunsModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::TextAlignmentRole)
    return static_cast<int>((section >= steps && section <= peak ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  if (role != Qt::DisplayRole && role != Qt::ToolTipRole) return {};
  const bool tip = role == Qt::ToolTipRole;
  switch (section) {
    case name:
      return tr("Name");
    case state:
      return tr("State");
    case created:
      return tr("Created");
    case model:
      return tr("Model");
    case method:
      return tr("Method");
    case steps:
      return tip ? tr("Optimizer steps done, of those asked for") : tr("Steps");
    case train_loss:
      return tip ? tr("Last training loss, nats per token") : tr("Train Loss");
    case eval_loss:
      return tip ? tr("Last held-out loss, nats per token") : tr("Eval Loss");
    case duration:
      return tr("Time");
    case tokens:
      return tip ? tr("Real tokens seen in training, without padding") : tr("Tokens");
    case peak:
      return tip ? tr("Largest memory of the device") : tr("Peak");
    case tags:
      return tip ? tr("Your own words, for filtering; F2 edits") : tr("Tags");
    case source:
      return tip ? tr("Measured here, predicted, or imported from elsewhere") : tr("Source");
  }
  return {};
}

Qt::ItemFlags RunsModel::flags(const QModelIndex& index) const {
  Qt::ItemFlags f = QAbstractTableModel::flags(index);
  if (!index.isValid()) return f;
  f |= Qt::ItemIsDragEnabled;
  if (index.column() == name || index.column() == tags) f |= Qt::ItemIsEditable;
  return f;
}

bool RunsModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (role != Qt::EditRole || !(flags(index) & Qt::ItemIsEditable)) return false;
  const std::string text = ss(value.toString().trimmed());
  const store::RunId run = row(index.row()).id;
  try {
    if (index.column() == name)
      store().rename(run, text);
    else
      store().set_tags(run, text);
  } catch (const Error& error) {
    emit problem(error.problem());
    return false;
  }
  refresh();
  return true;
}

QStringList RunsModel::mimeTypes() const {
  return {run_mime_type()};
}

QMimeData* RunsModel::mimeData(const QModelIndexList& indexes) const {
  std::vector<store::RunId> runs;
  for (const QModelIndex& at : indexes)
    if (const auto& id = row(at.row()).id; std::find(runs.begin(), runs.end(), id) == runs.end()) runs.push_back(id);
  return run_mime(runs);
}

RunsFilter::RunsFilter(QObject* parent) : QSortFilterProxyModel(parent) {
  setSortRole(RunsModel::sort_role);
  setDynamicSortFilter(true);
}

void RunsFilter::set_words(const QString& words) {
  words_ = words.split(u' ', Qt::SkipEmptyParts);
  invalidateFilter();
}

bool RunsFilter::filterAcceptsRow(int row, const QModelIndex& parent) const {
  if (words_.isEmpty()) return true;
  QString all;
  for (int c = 0; c < sourceModel()->columnCount(parent); ++c)
    all += sourceModel()->index(row, c, parent).data().toString() + u' ';
  all += sourceModel()->index(row, 0, parent).data(RunsModel::id_role).toString();
  return std::all_of(words_.begin(), words_.end(),
                     [&](const QString& w) { return all.contains(w, Qt::CaseInsensitive); });
}

bool RunsFilter::lessThan(const QModelIndex& a, const QModelIndex& b) const {
  const QVariant x = a.data(RunsModel::sort_role), y = b.data(RunsModel::sort_role);
  if (x == y) return a.data(RunsModel::id_role).toString() < b.data(RunsModel::id_role).toString();
  return QSortFilterProxyModel::lessThan(a, b);
}

}  // namespace mw::ui
