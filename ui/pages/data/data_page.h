// SPDX-License-Identifier: GPL-3.0-or-later
// The Data page: the rows of the document's data, the tokens of one row, the lengths of all, and the cost of padding.
// GUI thread.
#pragma once
#include "ui/pages/data/data_charts.h"
#include "ui/pages/data/rows_model.h"
#include "ui/pages/data/token_view.h"
#include "ui/session/workspace.h"

class QComboBox;
class QProgressBar;
class QStackedWidget;
class QTableView;

namespace mw::ui {

class DataPage : public QWidget, public WindowPage {
  Q_OBJECT
 public:
  DataPage(Document& document, StoreReader& store, QWidget* parent = nullptr);
  void attach(Workspace& workspace) override;
  void show_frame() override;  // reads what the document now says, and redraws what changed
  void restyle() override;
  void save_state(Session& session) const override;
  void restore_state(const Session& session) override;
  bool follow_newest() override;
  DataReader& reader() { return reader_; }
  DataRowsModel& model() { return model_; }
  QTableView& table() { return *table_; }
  TokenView& tokens() { return *tokens_; }
  TokenContext& token_context() { return context_; }
  Chart& lengths() { return *lengths_; }
  ChartLink& link() { return by_length_; }
  EconomyView& economy() { return *economy_; }
  QComboBox& filter() { return *filter_; }
  QString notice() const;  // empty: no problem
  QString row_text() const;
  bool can_save_lengths() const { return reader_.index() && !reader_.index()->lengths.empty(); }
  void choose_lengths_file();
  void save_lengths(const QString& file);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void register_actions(Workspace& workspace);
  void price_tokens(const Predictor& predictor);
  void build();
  QWidget* bar();
  QWidget* rows_side();
  QWidget* token_side();
  QWidget* empty_page();
  void show_current_row();
  void select_first();
  void show_counts();
  void show_state();
  void show_results();
  void fit_columns();
  void show_detail();
  void show_head();
  void show_pointed();
  void show_context();
  QString summary_text() const;
  const Problem* current_problem() const;

  Document& document_;
  DataReader reader_;
  TokenContext context_;
  DataRowsModel model_;
  ChartLink by_length_;
  bool requested_ = false, changed_ = true;
  std::int64_t wanted_row_ = 0;  // keeps the selection over an edit
  QStackedWidget *stack_, *detail_stack_;
  ElidedLabel *name_, *summary_;
  QLabel *eta_, *notice_text_, *row_, *pointed_, *context_note_, *legend_, *bad_, *empty_title_, *empty_text_;
  QProgressBar* progress_;
  QPushButton *stop_, *again_, *save_, *fix_;
  QFrame* notice_;
  QWidget *rows_side_, *token_side_;
  QSplitter *across_, *down_, *bottom_;
  QComboBox* filter_;
  QTableView* table_;
  TokenView* tokens_;
  Chart* lengths_;
  EconomyView* economy_;
};

}  // namespace mw::ui
