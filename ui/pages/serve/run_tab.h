// SPDX-License-Identifier: GPL-3.0-or-later
// A tab of the Serve page: the header of one live or finished run above a bar of buttons, charts and a table, or an
// empty page while there is no such run. GUI thread.
#pragma once
#include <QTableView>

#include "ui/charts/chart.h"
#include "ui/run_views/run_header.h"
#include "ui/session/workspace.h"

class QStackedWidget;

namespace mw::ui {

inline constexpr int kChartHeight = 120;  // pixels, the least with axis titles

class RunTab : public QWidget {
  Q_OBJECT
 public:
  void attach(Workspace& workspace) { workspace_ = &workspace; }
  virtual void show_frame() = 0;  // redraws what changed since the last frame
  virtual void restyle() = 0;     // after a theme change
  RunPtr run() const { return run_; }
  ChartLink& link() { return link_; }
  QTableView& table() { return *table_; }
  RunHeader& header() { return *header_; }
  QByteArray save_layout() const { return rows_->saveState(); }
  void restore_layout(const QByteArray& state) { rows_->restoreState(state); }

 protected:
  struct Texts {
    QString empty_title, empty_text;
    QString show_settings;  // button of the empty page
    QString settings_tip, copy_tip;
    QString start, start_tip, stop_tip;  // buttons beside the settings
    std::string setting;                 // shown by the button for the settings
    QString action;                      // starts a run
  };
  RunTab(RunController& runs, RunKind kind, QWidget* parent);
  // A derived class adds its buttons to bar_, and charts and table to content_. `beside`: left of the buttons that
  // start and stop; null: the header of the run.
  void build(const Texts& texts, QWidget* beside = nullptr);
  // Another run. Called at the end of the constructor of a derived class, too.
  void adopt();
  virtual void reset() = 0;         // forgets the views of the run shown before
  virtual QString csv() const = 0;  // of all rows of the table
  bool show_changes();              // updates header and buttons; false: nothing has changed

  RunController& runs_;
  const RunKind kind_;
  Workspace* workspace_ = nullptr;
  ChartLink link_;
  RunPtr run_;
  bool changed_ = true;
  QString action_;
  QVBoxLayout *column_, *content_;
  QHBoxLayout* bar_;
  RunHeader* header_;
  QStackedWidget* stack_;
  ElidedLabel* label_;  // the first part of the bar
  QPushButton *start_ = nullptr, *stop_ = nullptr;
  QSplitter* rows_ = nullptr;
  QTableView* table_ = nullptr;  // null while events are already filtered
};

}  // namespace mw::ui
