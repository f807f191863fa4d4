// SPDX-License-Identifier: GPL-3.0-or-later
// Table model of the runs in the store: sortable, filterable, with editable names and tags. GUI thread.
#pragma once
#include <QSortFilterProxyModel>
#include <memory>

#include "core/views/run_list.h"
#include "ui/theme/table_model.h"

namespace mw::ui {

class RunsModel : public TableModel<views::ListedRun> {
  Q_OBJECT
 public:
  enum Column {
    id,
    name,
    state,
    target,
    changed,
    train_loss,
    eval_loss,
    right,
    steps,
    duration,
    usd,
    speed,
    peak,
    tags,
    created,
    model,
    method,
    tokens,
    trained,
    source
  };
  enum Role { id_role = first_own_role };

  RunsModel(std::filesystem::path folder, hardware::LoadCatalogue catalogue = {}, QObject* parent = nullptr);
  void refresh();  // emits changes of rows that differ, and problems
  void set_trash(store::Trash trash);
  store::Trash trash() const { return trash_; }
  int row_of(const store::RunId& run) const;  // -1: none
  // Can be undone, because rows and files stay in the store.
  void set_deleted(const std::vector<store::RunId>& which, store::Trash trash);
  void purge(const std::vector<store::RunId>& which);  // deleted runs; cannot be undone
  views::RunPreview preview(int row);
  std::filesystem::path folder_of(const store::RunId& run);

  Qt::ItemFlags flags(const QModelIndex& index) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;
  QStringList mimeTypes() const override;
  QMimeData* mimeData(const QModelIndexList& indexes) const override;

 signals:
  void problem(const mw::Problem& problem);

 private:
  store::Store& store();
  bool change(const std::function<void(store::Store&)>& change);  // emits problem() and returns false if it fails
  views::RunList list_;
  std::filesystem::path folder_;
  std::unique_ptr<store::Store> store_;
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
