// SPDX-License-Identifier: GPL-3.0-or-later
// Table model of the runs in the store: sortable, filterable, with editable names and tags. GUI thread.
#pragma once
#include <QSortFilterProxyModel>
#include <memory>

#include "core/views/run_list.h"
#include "ui/session/store_reader.h"
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

  RunsModel(std::filesystem::path folder, plan::LoadContext context = {}, QObject* parent = nullptr);
  // If the records have changed: emits changes of ranges of rows that differ, then refreshed(), and problems. The
  // details of runs that are not known yet are read for the newest runs at once, and for the others on another thread,
  // followed by another refresh; those that could not be read are read again by the next call.
  void refresh();
  bool is_refreshing() const { return is_refreshing_; }  // between the changes of one refresh
  void set_trash(store::Trash trash);
  store::Trash trash() const { return trash_; }
  int row_of(const store::RunId& run) const;  // -1: none
  const views::ListedRun& row(int at) const override { return runs_[static_cast<size_t>(at)]->run; }
  const QString& search_text(int row) const;  // all texts of the row in lower case
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
  void about_to_refresh();
  void refreshed();
  void problem(const mw::Problem& problem);

 protected:
  int size() const override { return static_cast<int>(runs_.size()); }

 private:
  struct Entry {
    views::ListedRun run;
    mutable QString search_text{};  // empty: not made yet
  };
  void show_list();
  void remove_all_but(const std::vector<views::ListedRun>& runs);
  void insert_and_update(std::vector<views::ListedRun> runs);
  void read_details();
  bool change(const std::function<void(store::Store&)>& change);  // emits problem() and returns false if it fails
  views::RunList list_;
  std::vector<std::unique_ptr<Entry>> runs_;  // newest first
  bool is_refreshing_ = false;
  BackgroundTask<std::vector<views::RunDetails>> details_;
  size_t requested_ = 0;  // runs of details_
  KeptStore store_;
  store::Trash trash_ = store::Trash::kept;
  std::optional<store::Store::Version> shown_;  // of the records; empty: they are read again
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
