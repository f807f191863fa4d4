// SPDX-License-Identifier: GPL-3.0-or-later
// A table model that is described by a list of columns, and the common setup of all tables. GUI thread.
#pragma once
#include <QAbstractTableModel>
#include <QCoreApplication>
#include <QHeaderView>
#include <QLabel>
#include <QTableView>
#include <algorithm>
#include <cmath>
#include <functional>
#include <type_traits>
#include <vector>

#include "core/base/units.h"
#include "ui/theme/text.h"

namespace mw::ui {

enum TableRole { sort_role = Qt::UserRole, first_own_role };  // sort_role: the value behind the text

// Takes functions that return a QString itself: an expression of + is a QStringBuilder, which refers to temporaries
// that are gone when it is converted. Such a lambda names its type: -> QString.
template <class Row>
struct CellText : std::function<QString(const Row&)> {
  CellText() = default;
  CellText(std::string Row::*member)
      : std::function<QString(const Row&)>([member](const Row& row) { return qs(row.*member); }) {}
  template <class F>
  requires(std::is_same_v<std::remove_cvref_t<std::invoke_result_t<F, const Row&>>, QString>) CellText(F text)
      : std::function<QString(const Row&)>(std::move(text)) {}
};

template <class Row>
struct TableColumn {
  QString title{};
  QString unit{};     // of the sort keys; part of the column's name in csv()
  QString tooltip{};  // of the header
  Qt::AlignmentFlag alignment = Qt::AlignLeft;
  CellText<Row> text{};
  std::function<QVariant(const Row&)> sort_key{};  // empty: the text
};

// The sort key of a number.
inline QVariant sort_key_of(Bytes value) {
  return static_cast<qlonglong>(value.value);
}
template <class Number>
QVariant sort_key_of(Number value) {
  if constexpr (std::is_integral_v<Number>)
    return static_cast<qlonglong>(value);
  else
    return value;
}

template <class Row>
class TableModel : public QAbstractTableModel {
 public:
  using Column = TableColumn<Row>;
  using Columns = std::vector<Column>;
  using SortKey = std::function<QVariant(const Row&)>;
  // Data of other roles, or in place of the column's own; an invalid value means that there is none.
  using Cell = std::function<QVariant(const Row&, int column, int role)>;
  explicit TableModel(Columns columns = {}, Cell cell = {}, QObject* parent = nullptr)
      : QAbstractTableModel(parent), columns_(std::move(columns)), cell_(std::move(cell)) {}

  // A right-aligned column.
  static Column number(const QString& title, CellText<Row> text, SortKey sort_key = {}) {
    return {.title = title, .alignment = Qt::AlignRight, .text = std::move(text), .sort_key = std::move(sort_key)};
  }
  // A right-aligned column of a member or a function of the row, which is the sort key; `text` shows its value.
  template <class Value, class Text>
  static Column number_of(const QString& title, Value value, Text text) {
    return number(
        title, [=](const Row& row) -> QString { return text(std::invoke(value, row)); },
        [=](const Row& row) { return sort_key_of(std::invoke(value, row)); });
  }

  // Resets the model.
  void set_rows(std::vector<Row> rows) {
    beginResetModel();
    rows_ = std::move(rows);
    endResetModel();
  }
  // Keeps the view's place where the first of the new rows are the `same` as the present ones: these are updated and
  // the others inserted after them. Resets the model otherwise.
  template <class Same>
  void set_rows(std::vector<Row> rows, Same same) {
    const int before = rowCount(), after = static_cast<int>(rows.size());
    if (before == 0 || after < before || !std::equal(rows_.begin(), rows_.end(), rows.begin(), same))
      return set_rows(std::move(rows));
    if (after > before) beginInsertRows({}, before, after - 1);
    rows_ = std::move(rows);
    if (after > before) endInsertRows();
    emit dataChanged(index(0, 0), index(before - 1, columnCount() - 1));
  }
  // Appends those of `rows` that follow the present ones, which have not changed.
  void append_rows(const std::vector<Row>& rows) {
    const auto before = static_cast<std::ptrdiff_t>(rows_.size());
    if (rows.size() <= rows_.size()) return;
    beginInsertRows({}, rowCount(), static_cast<int>(rows.size()) - 1);
    rows_.insert(rows_.end(), rows.begin() + before, rows.end());
    endInsertRows();
  }
  virtual const Row& row(int at) const { return rows_[static_cast<size_t>(at)]; }
  QString text(const Row& row, int column) const { return columns_[static_cast<size_t>(column)].text(row); }
  // RFC 4180 with full precision: the sort keys where they are finite numbers or names, else the texts.
  QString csv() const {
    QStringList names;
    for (const auto& column : columns_) {
      QString name = column.title.toLower().replace(u' ', u'_').replace(u"/"_s, u"_per_"_s);
      names << csv_cell(column.unit.isEmpty() ? name : QString(name + u'_' + column.unit));
    }
    QString out = names.join(u',') + u"\r\n"_s;
    for (int r = 0; r < rowCount(); ++r) {
      QStringList cells;
      for (const auto& column : columns_) {
        const QVariant key = column.sort_key ? column.sort_key(row(r)) : QVariant();
        const bool name = key.typeId() == QMetaType::QString;
        const bool finite = key.isValid() && !name && std::isfinite(key.toDouble());
        cells << (finite ? QString::number(key.toDouble(), 'g', 17)
                         : csv_cell(name ? key.toString() : column.text(row(r))));
      }
      out += cells.join(u',') + u"\r\n"_s;
    }
    return out;
  }

  int rowCount(const QModelIndex& parent = {}) const override { return parent.isValid() ? 0 : size(); }
  int columnCount(const QModelIndex& parent = {}) const override {
    return parent.isValid() ? 0 : static_cast<int>(columns_.size());
  }
  QVariant data(const QModelIndex& index, int role) const override {
    if (!index.isValid() || index.row() >= size()) return {};
    const Row& r = row(index.row());
    if (QVariant own = cell_ ? cell_(r, index.column(), role) : QVariant(); own.isValid()) return own;
    const auto& column = columns_[static_cast<size_t>(index.column())];
    switch (role) {
      case Qt::DisplayRole:
      case Qt::EditRole:
      case Qt::ToolTipRole:
        return column.text(r);
      case Qt::TextAlignmentRole:
        return static_cast<int>(column.alignment | Qt::AlignVCenter);
      case sort_role:
        return column.sort_key ? column.sort_key(r) : QVariant(column.text(r));
      default:
        return {};
    }
  }
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override {
    if (orientation != Qt::Horizontal || section >= columnCount()) return {};
    const auto& column = columns_[static_cast<size_t>(section)];
    if (role == Qt::DisplayRole) return column.title;
    if (role == Qt::ToolTipRole && !column.tooltip.isEmpty()) return column.tooltip;
    if (role == Qt::TextAlignmentRole) return static_cast<int>(column.alignment | Qt::AlignVCenter);
    return {};
  }

 protected:
  virtual int size() const { return static_cast<int>(rows_.size()); }
  void set_table(Columns columns, std::vector<Row> rows) {
    beginResetModel();
    columns_ = std::move(columns);
    rows_ = std::move(rows);
    endResetModel();
  }
  void announce_all() {
    if (rowCount() > 0) emit dataChanged(index(0, 0), index(rowCount() - 1, columnCount() - 1));
  }
  std::vector<Row> rows_;

 private:
  Columns columns_;
  Cell cell_;
};

// Selects whole rows of one line each, without grid and row numbers; Tab leaves the table.
QTableView* make_table(QAbstractItemModel& model, const QString& name, QWidget* parent = nullptr);
// The selected rows and the header as displayed, with tabs between cells for spreadsheets.
QString selected_rows(const QTableView& view);
void copy_on_ctrl_c(QTableView& view);  // copies selected_rows()
// Keeps the first columns visible beside a horizontal scroll bar: a second view of the same rows lies over them. Call
// it once, after the model is set. Returns that view, which is hidden while all columns fit.
QTableView* freeze_columns(QTableView& view, int count = 1);
// Shows a text in the middle of the view while it has no rows.
QLabel* show_when_empty(QAbstractItemView& view, const QString& text);

}  // namespace mw::ui
