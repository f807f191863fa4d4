// SPDX-License-Identifier: GPL-3.0-or-later
// The views of the Compare page as tabs, with the controls that they share. GUI thread.
#pragma once
#include "ui/pages/compare/compare_view.h"

class QComboBox;
class QLabel;
class QStackedWidget;
class QTabBar;

namespace mw::ui {

class RunsAtPlayhead;

class CompareCharts : public QWidget {
  Q_OBJECT
 public:
  // The runs are of one kind, which decides which views are offered.
  CompareCharts(const std::vector<compare::ComparedRun>& runs, plan::LoadContext context, QWidget* parent = nullptr);
  void refresh();           // call it when the runs have changed
  bool has_curves() const;  // whether a chart of any view has a line of several points
  void set_slo(const options::Slo& slo);
  void set_emphasis(int run);
  void show_view(const QString& id);
  QString view() const { return spec().id; }  // id
  QStringList views() const;                  // ids of those that are offered for the runs
  CompareView& view_of(const QString& id) const;
  void choose_cell(int input_len, const QString& load);
  QComboBox& lengths() { return *length_; }
  QComboBox& loads() { return *load_; }
  RunsAtPlayhead& playhead() { return *playhead_; }

 signals:
  void hovered(int run);

 private:
  void add_view(const CompareViewSpec& spec);
  void fill_choices();
  void read_choices();
  void fill_shown();
  bool is_offered(const CompareViewSpec& spec) const;
  const CompareViewSpec& spec() const;  // of the current view
  CompareView& at(size_t place) const { return *views_[place]; }

  const std::vector<compare::ComparedRun>& runs_;
  QStringList names_;
  RunsAtPlayhead* playhead_;
  CompareInput input_;
  bool chosen_ = false;              // the user has chosen the view
  std::vector<CompareView*> views_;  // in the order of compare_views()
  QTabBar* tabs_;
  QComboBox *length_, *load_, *metric_;
  QLabel *length_label_, *load_label_, *metric_label_;
  QStackedWidget* stack_;
};

}  // namespace mw::ui
