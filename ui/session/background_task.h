// SPDX-License-Identifier: GPL-3.0-or-later
// One piece of work at a time on a thread of its own (QtConcurrent). Progress, result and errors arrive on the GUI
// thread, on which every member function is called; an exception becomes a Problem.
#pragma once
#include <QElapsedTimer>
#include <QObject>
#include <QThreadPool>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

#include "core/base/error.h"
#include "core/base/event.h"

namespace mw::ui {

using TaskProgress = event::Progress;
using ReportProgress = std::function<void(const TaskProgress&)>;  // callable on the worker thread

// Lowers the priority of the calling thread and of the threads that it starts, so that the window stays responsive
// while they use every core.
void lower_thread_priority();

class BackgroundWork : public QObject {
  Q_OBJECT
 public:
  ~BackgroundWork() override;  // cancels and waits
  void cancel();               // the task ends with neither a result nor a problem
  void abandon();              // cancels; ended() is not emitted
  bool is_busy() const { return run_ != nullptr; }
  bool is_cancelling() const;
  bool was_cancelled() const { return cancelled_; }                   // the last task ended this way
  const std::optional<Problem>& problem() const { return problem_; }  // why the last task has no result
  const TaskProgress& progress() const { return progress_; }
  int percent() const;
  std::optional<double> eta_seconds() const;  // extrapolated from the progress so far

 signals:
  void changed();  // started, progressed, is being cancelled or ended
  void ended();    // after changed()

 protected:
  // An exception that is not an Error becomes a Problem with this id.
  explicit BackgroundWork(std::string problem_id) : problem_id_(std::move(problem_id)) {}
  using Work = std::function<void(const ReportProgress&, const std::stop_token&)>;
  // Abandons the previous work; `keep` is called on the GUI thread once `work` has returned.
  void run(Work work, std::function<void()> keep);

 private:
  struct Run;
  std::string problem_id_;
  std::shared_ptr<Run> run_;  // null: idle
  TaskProgress progress_;
  std::optional<Problem> problem_;
  bool cancelled_ = false;
  QElapsedTimer clock_;
  QThreadPool pool_;
};

template <class Result>
class BackgroundTask : public BackgroundWork {
 public:
  using Work = std::function<Result(const ReportProgress&, const std::stop_token&)>;
  explicit BackgroundTask(std::string problem_id = "INTERNAL") : BackgroundWork(std::move(problem_id)) {}
  // Abandons the previous work, and runs after it.
  void start(Work work) {
    result_.reset();
    const auto made = std::make_shared<std::optional<Result>>();
    run([made, work = std::move(work)](const auto& report, const auto& stop) { made->emplace(work(report, stop)); },
        [this, made] { result_ = std::move(*made); });
  }
  std::optional<Result>& result() { return result_; }  // of the last task; may be moved from

 private:
  std::optional<Result> result_;
};

}  // namespace mw::ui
