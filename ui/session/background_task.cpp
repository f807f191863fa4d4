// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/session/background_task.h"

#include <sys/resource.h>
#include <unistd.h>

#include <QFutureWatcher>
#include <QtConcurrent/QtConcurrentRun>
#include <algorithm>
#include <mutex>
#include <utility>

namespace mw::ui {

void lower_thread_priority() {
  constexpr int kNice = 5;
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);  // failure leaves the priority unchanged
}

// Shared with the worker thread.
struct BackgroundWork::Run {
  std::stop_source stop;
  std::optional<Problem> problem;        // written by the worker before it ends
  bool cancelled = false;                // likewise
  std::mutex mutex;                      // guards the progress
  std::optional<TaskProgress> progress;  // not yet taken by the GUI thread
};

BackgroundWork::~BackgroundWork() {
  if (run_) run_->stop.request_stop();
  pool_.waitForDone();
}

void BackgroundWork::run(Work work, std::function<void()> keep) {
  if (run_) run_->stop.request_stop();
  run_ = std::make_shared<Run>();
  progress_ = {};
  problem_.reset();
  cancelled_ = false;
  clock_.start();
  pool_.setMaxThreadCount(1);  // the abandoned work ends first
  const auto report = [this, run = run_](const TaskProgress& progress) {
    const std::lock_guard lock(run->mutex);
    if (std::exchange(run->progress, progress)) return;  // the GUI thread will take the newest
    QMetaObject::invokeMethod(
        this,
        [this, run] {
          {
            const std::lock_guard taking(run->mutex);
            if (run == run_) progress_ = *run->progress;
            run->progress.reset();
          }
          if (run == run_) emit changed();
        },
        Qt::QueuedConnection);
  };
  auto* watcher = new QFutureWatcher<void>(this);
  connect(watcher, &QFutureWatcherBase::finished, this, [this, watcher, run = run_, keep = std::move(keep)] {
    watcher->deleteLater();
    if (run != run_) return;
    run_.reset();
    problem_ = run->problem;
    cancelled_ = run->cancelled;
    keep();
    emit changed();
    emit ended();
  });
  watcher->setFuture(QtConcurrent::run(&pool_, [run = run_, work = std::move(work), report, id = problem_id_] {
    lower_thread_priority();
    run->cancelled = run->stop.stop_requested();  // before the work started
    if (run->cancelled) return;
    try {
      work(report, run->stop.get_token());
    } catch (const Error& error) {
      run->cancelled = error.kind() == Error::Kind::cancelled;
      if (!run->cancelled) run->problem = error.problem();
    } catch (const std::exception& error) {
      run->problem = Problem{.id = id, .message = error.what()};
    }
  }));
  emit changed();
}

void BackgroundWork::cancel() {
  if (!is_busy() || is_cancelling()) return;
  run_->stop.request_stop();
  emit changed();
}

void BackgroundWork::abandon() {
  if (run_) run_->stop.request_stop();
  run_.reset();
  emit changed();
}

bool BackgroundWork::is_cancelling() const {
  return is_busy() && run_->stop.stop_requested();
}

int BackgroundWork::percent() const {
  return static_cast<int>(100 * progress_.done / std::max(1L, progress_.total));
}

std::optional<double> BackgroundWork::eta_seconds() const {
  if (!is_busy() || progress_.done <= 0 || progress_.total <= progress_.done) return std::nullopt;
  const double seconds = static_cast<double>(clock_.elapsed()) / 1000;
  return seconds * static_cast<double>(progress_.total - progress_.done) / static_cast<double>(progress_.done);
}

}  // namespace mw::ui

#include "moc_background_task.cpp"
