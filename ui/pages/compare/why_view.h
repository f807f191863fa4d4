// SPDX-License-Identifier: GPL-3.0-or-later
// Explains the gap between the baseline and another run in one cell by a waterfall of simulated factors. Computes it on
// a worker thread; a new request replaces an older one. GUI thread.
#pragma once
#include <QWidget>
#include <optional>

#include "core/base/latest_task_worker.h"
#include "core/base/mailbox.h"
#include "core/compare/waterfall.h"
#include "ui/pages/compare/compare_charts.h"

class QComboBox;

namespace mw::ui {

class WaterfallBars;

class WhyView : public QWidget {
  Q_OBJECT
 public:
  WhyView(const std::vector<compare::ComparedRun>& runs, hardware::LoadCatalogue catalogue, QWidget* parent = nullptr);
  void show_cell(int input_len, const std::string& load);  // computes the waterfall if the cell changed
  void drain();
  bool busy() const { return asked_ != answered_; }
  const std::optional<compare::Waterfall>& shown() const { return shown_; }
  QString said() const;  // why there is no waterfall
  QComboBox& other() { return *other_; }
  QComboBox& metric() { return *metric_; }

 private:
  struct Question {
    std::uint64_t number = 0;
    experiment::Experiment baseline, other;
    compare::LoadPoint point;
    compare::WaterfallMetric metric{};
    compare::WaterfallEnds ends;
  };
  struct Answer {
    std::uint64_t question = 0;
    std::optional<compare::Waterfall> waterfall;
    Problem problem;
  };
  void ask();
  void say(const QString& text);
  const std::vector<compare::ComparedRun>& runs_;
  hardware::LoadCatalogue catalogue_;
  int input_len_ = 0;
  std::string load_, last_asked_;
  std::uint64_t asked_ = 0, answered_ = 0;
  std::optional<compare::Waterfall> shown_;
  QComboBox *other_, *metric_;
  WaterfallBars* bars_;
  Mailbox<Answer> answers_;
  LatestTaskWorker<Question> worker_;  // last: it uses the other members
};

}  // namespace mw::ui
