// SPDX-License-Identifier: GPL-3.0-or-later
// What a proof does and what came out: progress with what is left and a way to stop it, then the verdict, a table of
// each kind of evidence with the first that breaks selected, to copy and to keep. Not modal. GUI thread.
#pragma once
#include <QDialog>

#include "ui/pages/design/proof_model.h"

class QLabel;
class QProgressBar;
class QPushButton;
class QTableView;
class QTabWidget;

namespace mw::ui {

class ProofWindow : public QDialog {
  Q_OBJECT
 public:
  ProofWindow(Prover& prover, QWidget* parent);
  void show_frame();                      // time goes on while it proves
  void set_subject(const QString& name);  // whose proof is shown
  QString verdict() const;
  QPushButton& cancel_button() { return *cancel_; }
  QPushButton& copy_button() { return *copy_; }
  QProgressBar& bar() { return *bar_; }
  QTabWidget& tabs() { return *tabs_; }
  QTableView* table(int tab) const;
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
  Prover& prover_;
  ProofPtr shown_;
  QLabel *title_, *said_;
  QProgressBar* bar_;
  QTabWidget* tabs_;
  QPushButton *cancel_, *again_, *copy_, *save_;
};

}  // namespace mw::ui
