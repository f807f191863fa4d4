// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/pages/data/rows_model.h"

#include "ui/theme/theme.h"

namespace mw::ui {
namespace {

using data::RowState;

bool matches(const data::DataRow& row, RowFilter filter) {
  if (filter == RowFilter::held_out) return row.used > 0 && row.split == data::Split::held_out;
  return filter == RowFilter::all || static_cast<int>(filter) == static_cast<int>(row.state) + 1;
}

QString explained(const data::DataRow& row) {
  switch (row.state) {
    case RowState::ok:
      return row.split == data::Split::held_out ? QObject::tr("Kept for evaluation, not trained on")
                                                : QObject::tr("Trained on");
    case RowState::truncated:
      return QObject::tr("Longer than data.max_len: the first %1 of %2 token(s) are used", nullptr,
                         plural_count(row.tokens))
          .arg(grouped(row.used), grouped(row.tokens));
    case RowState::too_long:
      return QObject::tr("Dropped: longer than data.max_len");
    case RowState::no_loss:
      return QObject::tr("Dropped: none of the used tokens carries loss");
    case RowState::bad:
      return QObject::tr("Cannot be read: select the row to see the error");
    case RowState::repeated:
      return QObject::tr("Dropped by data.dedup: equal to an earlier training row");
    case RowState::in_held_out:
      return QObject::tr("Dropped by data.dedup: equal to a held-out row");
  }
  return {};
}

QColor state_color(RowState state) {
  return state == RowState::bad ? theme().bad : state == RowState::ok ? theme().text : theme().warn;
}

QVariant row_cell(const data::DataRow& r, int column, int role) {
  if (role == Qt::ToolTipRole) return QString(place_text(r) + u"\n"_s + explained(r));
  if (role != Qt::ForegroundRole) return {};
  if (column == DataRowsModel::number) return theme().muted;
  return column == DataRowsModel::state ? state_color(r.state) : r.used > 0 ? theme().text : theme().muted;
}

TableModel<data::DataRow>::Columns row_columns() {
  return {
      {.title = QObject::tr("Row"),
       .tooltip = QObject::tr("In the order of the file"),
       .alignment = Qt::AlignRight,
       .text =
           [](const data::DataRow& r) {
             return r.row >= 0 ? grouped(r.row + 1) : QObject::tr("line %1").arg(grouped(r.place.line));
           }},
      {.title = QObject::tr("State"), .tooltip = QObject::tr("What training does with the row"), .text = state_text},
      {.title = QObject::tr("Tokens"),
       .tooltip = QObject::tr("Tokens of the whole row, including beginning and end markers"),
       .alignment = Qt::AlignRight,
       .text = [](const data::DataRow& r) { return r.state == RowState::bad ? QString() : grouped(r.tokens); }},
      {.title = QObject::tr("Loss"),
       .tooltip = QObject::tr("Tokens that carry loss"),
       .alignment = Qt::AlignRight,
       .text = [](const data::DataRow& r) { return r.state == RowState::bad ? QString() : grouped(r.loss_tokens); }}};
}

}  // namespace

QString filter_text(RowFilter filter) {
  static constexpr const char* kTexts[kRowFilters] = {
      QT_TRANSLATE_NOOP("QObject", "All"),       QT_TRANSLATE_NOOP("QObject", "OK"),
      QT_TRANSLATE_NOOP("QObject", "Truncated"), QT_TRANSLATE_NOOP("QObject", "Too long"),
      QT_TRANSLATE_NOOP("QObject", "No loss"),   QT_TRANSLATE_NOOP("QObject", "Bad"),
      QT_TRANSLATE_NOOP("QObject", "Repeated"),  QT_TRANSLATE_NOOP("QObject", "Also held out"),
      QT_TRANSLATE_NOOP("QObject", "Held out")};
  return QObject::tr(kTexts[static_cast<size_t>(filter)]);
}

QString state_text(const data::DataRow& row) {
  static constexpr const char* kTexts[] = {QT_TRANSLATE_NOOP("QObject", "ok"),
                                           QT_TRANSLATE_NOOP("QObject", "truncated"),
                                           QT_TRANSLATE_NOOP("QObject", "long, dropped"),
                                           QT_TRANSLATE_NOOP("QObject", "no loss, dropped"),
                                           QT_TRANSLATE_NOOP("QObject", "bad"),
                                           QT_TRANSLATE_NOOP("QObject", "repeated, dropped"),
                                           QT_TRANSLATE_NOOP("QObject", "also held out, dropped")};
  const QString text = QObject::tr(kTexts[static_cast<size_t>(row.state)]);
  return matches(row, RowFilter::held_out) ? QObject::tr("%1, held out").arg(text) : text;
}

QString place_text(const data::DataRow& row) {
  if (row.row < 0) return QObject::tr("Line %1").arg(grouped(row.place.line));
  return QObject::tr("Row %1, line %2").arg(grouped(row.row + 1), grouped(row.place.line));
}

DataRowsModel::DataRowsModel(const std::vector<data::DataRow>& rows)
    : TableModel(row_columns(), row_cell), all_(rows) {}

void DataRowsModel::restart() {
  beginResetModel();
  order_.clear();
  counts_ = {};
  seen_ = 0;
  endResetModel();
  grow();
}

void DataRowsModel::grow() {
  std::vector<std::uint32_t> more;
  for (; seen_ < all_.size(); ++seen_) {
    for (int f = 0; f < kRowFilters; ++f)
      counts_[static_cast<size_t>(f)] += matches(all_[seen_], static_cast<RowFilter>(f));
    if (matches(all_[seen_], filter_)) more.push_back(static_cast<std::uint32_t>(seen_));
  }
  if (more.empty()) return;
  if (sorted_by_ != number || direction_ != Qt::AscendingOrder) {
    arrange();
    return;
  }
  beginInsertRows({}, rowCount(), rowCount() + static_cast<int>(more.size()) - 1);
  order_.insert(order_.end(), more.begin(), more.end());
  endInsertRows();
}

void DataRowsModel::set_filter(RowFilter filter) {
  if (filter == filter_) return;
  filter_ = filter;
  arrange();
}

void DataRowsModel::sort(int column, Qt::SortOrder order) {
  sorted_by_ = column < 0 ? int{number} : column;
  direction_ = order;
  arrange();
}

void DataRowsModel::arrange() {
  beginResetModel();
  order_.clear();
  for (size_t i = 0; i < seen_; ++i)
    if (matches(all_[i], filter_)) order_.push_back(static_cast<std::uint32_t>(i));
  const auto key = [this](std::uint32_t i) -> std::int64_t {
    const data::DataRow& r = all_[i];
    return sorted_by_ == tokens ? r.tokens : sorted_by_ == loss ? r.loss_tokens : static_cast<std::int64_t>(r.state);
  };
  if (sorted_by_ != number)
    std::stable_sort(order_.begin(), order_.end(), [&](auto a, auto b) {
      return direction_ == Qt::AscendingOrder ? key(a) < key(b) : key(b) < key(a);
    });
  else if (direction_ == Qt::DescendingOrder)
    std::reverse(order_.begin(), order_.end());
  endResetModel();
}

int DataRowsModel::find(std::int64_t row) const {
  for (size_t i = 0; i < order_.size(); ++i)
    if (all_[order_[i]].row == row) return static_cast<int>(i);
  return -1;
}

// The indicator of the order is at the right.
QVariant DataRowsModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role == Qt::TextAlignmentRole && orientation == Qt::Horizontal && section != state)
    return static_cast<int>(Qt::AlignHCenter | Qt::AlignVCenter);
  return TableModel::headerData(section, orientation, role);
}

}  // namespace mw::ui
