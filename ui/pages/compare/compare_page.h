// SPDX-License-Identifier: GPL-3.0-or-later
// The Compare page: a tray of runs and results, whether they may be compared, the table of what differs, and charts of
// all of them. The first is the baseline.
#pragma once
#include <QWidget>

#include "ui/pages/compare/compare_charts.h"
#include "ui/pages/compare/compare_tray.h"
#include "ui/pages/compare/compared_reader.h"
#include "ui/pages/compare/comparison_model.h"
#include "ui/pages/compare/replay_dialog.h"

class QLabel;
class QLineEdit;
class QPushButton;
class QScrollArea;
class QSplitter;
class QTableView;
class QToolButton;

namespace mw::ui {

class ComparePage : public QWidget {
  Q_OBJECT
 public:
  explicit ComparePage(ComparedReader::Folders folders, QWidget* parent = nullptr);
  void add_run(const store::RunId& run);  // one that is there is read again
  void add_file(const std::filesystem::path& file);
  void remove(int at);
  void move(int from, int to);
  void clear();
  // Asks which server its requests are to be replayed on; the result joins the tray. `point`: an index into its set.
  void replay(const compare::ComparedRun& run, std::optional<size_t> point);
  void drain();
  void restyle();
  void choose_export();
  void export_to(const std::filesystem::path& file);  // by its extension
  bool busy() const { return reader_.pending() > 0; }
  const std::vector<compare::ComparedRun>& runs() const { return runs_; }
  const compare::Comparison& comparison() const { return *comparison_; }
  CompareTray& tray() { return *tray_; }
  ComparisonModel& model() { return model_; }
  QTableView& table() { return *table_; }
  CompareCharts& charts() { return *charts_; }
  ReplayDialog& replay_dialog() { return *replay_; }
  QString verdict() const;  // with every confounder
  serve::Slo slo() const;
  QLineEdit& slo_field(size_t at) { return *slo_[at]; }  // TTFT, TPOT, E2E
  QByteArray save_layout() const;
  void restore_layout(const QByteArray& state);

 signals:
  void problem(const mw::Problem& problem);
  void runs_wanted();
  void open_wanted(const QString& run);
  void replayed();  // and is being read

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  // compare_page_build.cpp
  void build();
  QWidget* verdict_line();
  QWidget* table_side();
  QWidget* empty_page();
  // compare_page.cpp
  hardware::LoadCatalogue catalogue() const;
  void take(std::vector<compare::ComparedRun>& runs);
  void fill_add_menu();
  void changed();
  void show_verdict();
  void light(int column);
  void fit_columns();
  void copy_markdown();

  ComparedReader reader_;
  store::RunId replayed_of_;  // empty: of a file
  std::vector<compare::ComparedRun> runs_;
  ComparisonModel::Ptr comparison_;
  ComparisonModel model_;
  CompareTray* tray_;
  QMenu* add_menu_;
  QLabel *verdict_, *alone_;
  QScrollArea* verdict_area_;
  QWidget* empty_;
  QSplitter* across_;
  QTableView* table_ = nullptr;  // events are filtered before it is there
  QToolButton* differing_;
  QLineEdit* slo_[3];
  QPushButton *export_, *copy_;
  CompareCharts* charts_;
  ReplayDialog* replay_;
};

}  // namespace mw::ui
