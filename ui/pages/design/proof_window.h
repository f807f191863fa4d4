// SPDX-License-Identifier: GPL-3.0-or-later
// Modeless window of a proof: progress with remaining time and a stop button, then the verdict and a table for each
// kind of result with the first failure selected; can be copied and saved. GUI thread.
#pragma once
#include <QDialog>

#include "core/experiment/experiment.h"
#include "core/views/proof_view.h"
#include "ui/session/background_task.h"

class QLabel;
class QProgressBar;
class QPushButton;
class QTabWidget;

namespace mw::ui {

using ProofPtr = std::shared_ptr<const views::ProofView>;

class ProofWindow : public QDialog {
  Q_OBJECT
 public:
  // Computes the proof on the worker thread; throws Error.
  using Prove = std::function<views::ProofView(const experiment::Experiment&, const ReportProgress&,
                                               const std::stop_token& stop)>;
  ProofWindow(Prove prove, QWidget* parent);
  void start(const QString& name, const experiment::Experiment& experiment);
  void show_frame();  // updates the remaining time while the proof runs
  BackgroundWork& task() { return task_; }
  ProofPtr proof() { return task_.result().value_or(nullptr); }  // of the last task
  QString verdict();
  QProgressBar& bar() { return *bar_; }
  QTabWidget& tabs() { return *tabs_; }
  void export_to(const std::filesystem::path& file);  // .md: Markdown, else CSV; a failure is a problem
  void restyle() { show_state(); }

 signals:
  void again_wanted();
  void tensor_chosen(const QString& name);  // first cell of a row of the first table
  void problem(const mw::Problem& problem);

 private:
  void build();
  void show_state();
  void show_proof();
  void choose_file();
  Prove prove_;
  BackgroundTask<ProofPtr> task_{"PROOF"};
  ProofPtr shown_;
  QLabel *title_, *message_;
  QProgressBar* bar_;
  QTabWidget* tabs_;
  QPushButton *cancel_, *again_, *copy_, *save_;
};

}  // namespace mw::ui
