// SPDX-License-Identifier: GPL-3.0-or-later
// The Runs page: sorts, filters, opens, clones, renames, tags, compares, deletes (with undo) and resumes runs; imports
// results of other tools by dialog or drop; exports reports and bundles. GUI thread.
#pragma once
#include <QUndoStack>

#include "core/store/chain.h"
#include "ui/pages/runs/accuracy_dialog.h"
#include "ui/pages/runs/benchmark_dialog.h"
#include "ui/pages/runs/run_preview_panel.h"
#include "ui/pages/runs/runs_model.h"
#include "ui/session/workspace.h"
#include "ui/theme/widgets.h"

class QTableView;

namespace mw::ui {

class RunsPage : public QWidget, public WindowPage {
  Q_OBJECT
 public:
  // `hardware_folder`: of the user, for the rates of a benchmark; empty: none.
  explicit RunsPage(const std::filesystem::path& runs_folder, plan::LoadContext context = {},
                    std::filesystem::path hardware_folder = {}, QWidget* parent = nullptr);
  void attach(Workspace& workspace) override;
  void show_frame() override;  // reads the store again every second or so
  void restyle() override {
    previewed_.clear();
    show_preview();
  }
  void save_state(Session& session) const override;
  void restore_state(const Session& session) override;
  std::vector<store::RunId> runs_to_compare() const override { return selected(); }
  std::vector<PaletteEntry> palette_entries() override;
  QUndoStack* active_undo_stack(Document&) override { return &undo_; }

  RunsModel& model() { return *model_; }
  QTableView& table() { return *table_; }
  QLineEdit& filter() { return *filter_; }
  RunPreviewPanel& preview() { return *preview_; }
  AccuracyDialog* accuracy_dialog() { return accuracy_; }  // null until it was opened
  BenchmarkDialog* benchmark_dialog() { return benchmark_; }
  QMenu* make_menu();  // of the selected runs
  void refresh() { model_->refresh(); }
  std::vector<store::RunId> selected() const;
  void select(const store::RunId& run);
  void delete_selected();
  void undo_delete() { undo_.undo(); }        // undoes the last deletion or restoration
  QUndoStack& undo_stack() { return undo_; }  // of deletions and restorations
  void choose_import();
  void import_files(const std::vector<std::filesystem::path>& files);
  void purge_selected();  // asks first
  bool can_undo_delete() const { return undo_.canUndo(); }
  void verify(const store::RunId& run);  // its hash chain; a toast or a problem has the result
  // Writes the selected runs; a toast or a problem has the result.
  void export_report(const std::filesystem::path& file);
  void export_bundle(const std::filesystem::path& file);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 signals:
  void run_deleted(const QString& run);
  void problem(const mw::Problem& problem);
  void imported(const QStringList& runs);  // import_files() has ended

 private:
  void register_actions(Workspace& workspace);
  void show_benchmark(const Document& document);
  void build_toolbar();
  void build_table();
  void fit_name();
  void fit_numbers();
  void update_buttons();
  void show_preview();
  void open_then(const QString& action);  // triggers it when the selected run is shown
  friend class MoveRuns;
  void move_runs(const std::vector<store::RunId>& runs, store::Trash to);
  store::RunId current() const;
  bool resumable(const store::RunId& run) const;
  bool has_detached_job(const store::RunRow& row) const;

  struct Imported {
    std::vector<store::RunId> runs;
    std::vector<Problem> problems;
  };
  void show_imported();
  void show_verified();
  void show_exported();
  using Export = void (RunsPage::*)(const std::filesystem::path& file);
  void choose_export(const FileDialogOptions& options, Export run);

  std::filesystem::path folder_;
  plan::LoadContext context_;
  std::filesystem::path hardware_folder_;
  AccuracyDialog* accuracy_ = nullptr;
  BenchmarkDialog* benchmark_ = nullptr;
  BackgroundTask<Imported> importing_;
  struct Verified {
    store::RunId run;
    store::ChainReport report;
  };
  BackgroundTask<Verified> verifying_;
  BackgroundTask<std::filesystem::path> exporting_;
  std::vector<std::filesystem::path> to_import_;  // after the files that are being imported
  RunsModel* model_;
  RunsFilter* proxy_;
  RunPreviewPanel* preview_;
  QSplitter* rows_;
  store::RunId previewed_;
  store::RunId top_;  // first visible run before a refresh; empty at the top of the table
  PendingQuestion question_{*this};
  QTableView* table_;
  QLineEdit* filter_;
  QPushButton *open_, *clone_, *resume_, *compare_, *import_, *delete_;
  QToolButton* trash_;
  QFrame* notice_;
  QLabel *notice_text_, *empty_;
  QUndoStack undo_;
  QElapsedTimer refreshed_;  // invalid: the store is to be read again
};

}  // namespace mw::ui
