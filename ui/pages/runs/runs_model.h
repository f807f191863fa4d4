// SPDX-License-Identifier: GPL-3.0-or-later
// Table model of the runs in the store: sortable, filterable, with editable names and tags. GUI thread.
#pragma once
#include <QAbstractTableModel>
#include <QSortFilterProxyModel>
#include <memory>

#include "core/store/store.h"

namespace mw::ui {

class RunsModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column {
    name,
    state,
    created,
    model,
    method,
    steps,
    train_loss,
    eval_loss,
    duration,
    tokens,
    peak,
    tags,
    source,
    columns
  };
  enum Role { sort_role = Qt::UserRole, id_role };

  RunsModel(std::filesystem::path folder, QObject* parent = nullptr);
  void refresh();  // emits changes of rows that differ, and problems
  void set_trash(store::Trash trash);
  store::Trash trash() const { return trash_; }
  const store::RunRow& row(int row) const { return rows_[static_cast<size_t>(row)]; }
  int row_of(const store::RunId& run) const;  // -1: none
  // Both can be undone, because rows and files stay in the store.
  void set_deleted(const std::vector<store::RunId>& which, store::Trash trash);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;
  QStringList mimeTypes() const override;
  QMimeData* mimeData(const QModelIndexList& indexes) const override;

 signals:
  void problem(const mw::Problem& problem);

 private:
  store::Store& store();
  QVariant shown(const store::RunRow& row, int column) const;
  QVariant sort_value(const store::RunRow& row, int column) const;
  std::filesystem::path folder_;
  std::unique_ptr<store::Store> store_;
  std::vector<store::RunRow> rows_;
  store::Trash trash_ = store::Trash::kept;
};

// A row matches if it contains all words.
class RunsFilter : public QSortFilterProxyModel {
  Q_OBJECT
 public:
  explicit RunsFilter(QObject* parent);
  void set_words(const QString& words);

 protected:
  bool filterAcceptsRow(int row, const QModelIndex& parent) const override;
  bool lessThan(const QModelIndex& a, const QModelIndex& b) const override;

 private:
  QStringList words_;
};

}  // namespace mw::ui
