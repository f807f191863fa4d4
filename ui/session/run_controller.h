// SPDX-License-Identifier: GPL-3.0-or-later
// Controls the live run, on this or another machine, and holds the displayed run of each kind. The job runs on threads
// of its own and posts events to a mailbox; drain() processes them. GUI thread.
#pragma once
#include <array>

#include "core/base/mailbox.h"
#include "core/plan/calibration/plan_context.h"
#include "core/views/run_view.h"
#include "ui/session/document.h"
#include "ui/session/run_kind.h"
#include "ui/session/store_reader.h"

namespace mw::experiment {
enum class Kind;
}
namespace mw::importing {
struct FollowRequest;
}
namespace mw::jobs {
class Job;
struct JobRequest;
}  // namespace mw::jobs
namespace mw::launch {
class LaunchJob;
struct LaunchRequest;
}  // namespace mw::launch

namespace mw::ui {

RunKind kind_of(const experiment::Experiment& experiment);
RunKind kind_of(const store::RunRow& row);
experiment::Kind experiment_kind(RunKind kind);  // of an experiment that makes such a run

struct RunData {
  store::RunId id;
  std::string name;
  experiment::Experiment record;  // frozen at the start of the run
  views::RunView view;
  bool is_live = false;  // its job was started by this window and has not ended
  RunKind kind() const { return kind_of(record); }
};

// An experiment that a dialog offers: that of the form, or the frozen one of a run.
struct NamedExperiment {
  QString name;  // "Form: tiny-lora.json", "Run: run-3"
  experiment::Experiment experiment;
  QString file{};      // argument of the command line
  store::RunId run{};  // empty: from the form
};

NamedExperiment form_experiment(const Document& document);
NamedExperiment run_experiment(const RunData& run);

class RunController : public QObject {
  Q_OBJECT
 public:
  // `hardware_folder`: JobRequest::hardware_folder.
  explicit RunController(std::filesystem::path runs_folder, plan::LoadContext context = {},
                         std::filesystem::path hardware_folder = {});
  ~RunController() override;  // stops the job and waits for it

  const std::filesystem::path& runs_folder() const { return store_.folder(); }
  StoreReader& store() { return store_; }
  const plan::LoadContext& context() const { return context_; }
  RunPtr live() const { return is_busy() ? live_ : nullptr; }
  RunPtr shown() const { return shown_; }  // displayed last, of any kind
  RunPtr shown(RunKind kind) const { return by_kind_[static_cast<size_t>(kind)]; }
  bool is_busy() const { return job_ || launched_; }
  bool is_remote() const { return launched_ && !attached_; }   // the live run was launched on another machine
  bool is_attached() const { return launched_ && attached_; }  // the live run is another program's
  bool is_stopping() const { return stopping_; }
  // The live run is a remote job that has started, or another program's, and continues without this window.
  bool continues_without_window() const { return launched_ && (remote_started_ || attached_); }

  void start(const experiment::Experiment& experiment);  // freezes a copy; ignored while a run is live
  void continue_run(const store::RunId& run);            // from its last checkpoint
  void pause();
  void resume();
  void stop();  // also ends a remote job
  // Copies a recipe to another machine and starts it; the run is shown once it exists. While another run is live, the
  // job is detached as soon as it has started. One launch at a time.
  void launch(launch::LaunchRequest request);
  // Follows a run that another program is making; the run is shown once it exists. Ignored while a run is live.
  void attach(importing::FollowRequest request);
  bool is_launching_beside() const { return beside_ != nullptr; }  // a live run
  void cancel_launch();
  void reattach(const store::RunId& run, const std::filesystem::path& resources);
  void detach();                       // stops following a remote job, which continues
  void open(const store::RunId& run);  // loads its record on a worker thread, unless it is live
  void show_live();
  void activate(RunKind kind);                // makes the run that the page shows the displayed one
  void close_shown(const store::RunId& run);  // after the run was deleted
  void drain();

 signals:
  void state_changed();  // started, paused, resumed, stopping or ended
  void shown_changed();  // another run is displayed
  void shown_updated();  // it has new events; at most once per frame
  void live_updated();
  void ended(const QString& run);                  // the live run's record is complete
  void launched(const QString& run);               // its run exists and is displayed
  void launched_beside(const QString& run);        // its job has started and is detached
  void launch_failed(const mw::Problem& problem);  // before its run existed; empty message: cancelled
  void problem(const mw::Problem& problem);

 private:
  struct Inbox;  // shared with the thread of the job
  enum class Purpose { show, resume, reattach };
  void load(const store::RunId& run, Purpose purpose);
  void take_loaded();
  void begin(jobs::JobRequest request);
  EventSink begin();  // creates the inbox of a job
  void finish_launch();
  void apply_event(const Event& event);
  void drain_beside();
  bool has_remote_started(const store::RunId& run) const;
  void finish_job();
  void reload_live();
  void show(RunPtr run);

  StoreReader store_;
  plan::LoadContext context_;  // for sweeps and plans of time
  std::filesystem::path hardware_folder_;
  std::shared_ptr<Inbox> inbox_;
  std::unique_ptr<jobs::Job> job_;  // at most one of these is set
  std::unique_ptr<launch::LaunchJob> launched_;
  struct LaunchBeside;
  std::unique_ptr<LaunchBeside> beside_;  // a live run
  std::filesystem::path resources_;       // for reattaching, while the run is being loaded
  RunPtr live_, shown_;
  std::array<RunPtr, kRunKinds> by_kind_;
  bool stopping_ = false, remote_started_ = false, attached_ = false;
  std::uint64_t dropped_ = 0;
  Purpose purpose_ = Purpose::show;  // of the run that is being loaded
  BackgroundTask<RunPtr> loading_;
};

// Reads the record of a run from the store. Throws Error.
RunPtr load_run(const std::filesystem::path& runs_folder, const store::RunId& run, std::stop_token stop = {});

}  // namespace mw::ui
