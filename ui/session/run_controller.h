// SPDX-License-Identifier: GPL-3.0-or-later
// The run that goes, here or elsewhere, and the runs that are looked at: one of each kind, each in the page of its
// kind. Jobs and loaders work on their own threads and leave what they have in mailboxes; drain() takes it on the GUI
// thread.
#pragma once
#include <QObject>
#include <array>
#include <memory>
#include <thread>

#include "core/base/mailbox.h"
#include "core/jobs/job.h"
#include "core/launch/launch_job.h"
#include "core/views/run_view.h"

namespace mw::ui {

enum class RunKind { train, size, sweep };
inline constexpr size_t kRunKinds = 3;
RunKind kind_of(const experiment::Experiment& experiment);
RunKind kind_of(const store::RunRow& row);

struct RunData {
  store::RunId id;
  std::string name;
  experiment::Experiment record;  // as frozen at its start
  views::RunView view;
  bool live = false;  // its job belongs to this window and has not ended
  RunKind kind() const { return kind_of(record); }
};
using RunPtr = std::shared_ptr<RunData>;

class RunController : public QObject {
  Q_OBJECT
 public:
  explicit RunController(std::filesystem::path runs_folder, hardware::LoadCatalogue catalogue = {});
  ~RunController() override;  // stops the job and waits for it

  const std::filesystem::path& runs_folder() const { return runs_folder_; }
  const hardware::LoadCatalogue& catalogue() const { return catalogue_; }
  RunPtr live() const { return busy() ? live_ : nullptr; }
  RunPtr shown() const { return shown_; }  // looked at last, of whatever kind
  RunPtr shown(RunKind kind) const { return by_kind_[static_cast<size_t>(kind)]; }
  bool busy() const { return job_ || launched_; }
  bool elsewhere() const { return launched_ != nullptr; }  // the live one was launched
  bool stopping() const { return stopping_; }
  // The live one is a job elsewhere that has been started there: it goes on without this window.
  bool goes_on_alone() const { return launched_ && started_there_; }

  void start(const experiment::Experiment& experiment);  // freezes a copy; ignored while a run goes
  void continue_run(const store::RunId& run);            // from its last checkpoint
  void pause();
  void resume();
  void stop();  // of a job elsewhere: it is ended there
  // Copies and starts a recipe elsewhere; shown once its run exists. Ignored while a run goes.
  void launch(launch::LaunchRequest request);
  void reattach(const store::RunId& run, const std::filesystem::path& resources);
  void detach();                       // leaves a job elsewhere alone
  void open(const store::RunId& run);  // loads its record on a worker; the live one is simply shown again
  void show_live();
  void look_at(RunKind kind);                 // again at what its page shows
  void close_shown(const store::RunId& run);  // the run was put away
  void drain();

 signals:
  void state_changed();  // started, paused, resumed, stopping, ended: buttons follow
  void shown_changed();  // another run is looked at
  void shown_grew();     // new events in it, at most once per frame
  void live_grew();
  void ended(const QString& run);                  // the live run's record is complete
  void launched(const QString& run);               // its run exists, and is shown
  void launch_failed(const mw::Problem& problem);  // before that; no message: it was cancelled
  void problem(const mw::Problem& problem);
  void log_line(const QString& level, const QString& text);

 private:
  struct Inbox;  // shared with the job's thread
  struct Loader;
  enum class Purpose { show, resume, reattach };
  void load(const store::RunId& run, Purpose purpose);
  void begin(jobs::JobRequest request);
  EventSink begin();  // what any job needs: an inbox
  void finish_launch();
  void take(const Event& event);
  bool was_started_there() const;
  void finish_job();
  void reload_live();
  void show(RunPtr run);

  std::filesystem::path runs_folder_;
  hardware::LoadCatalogue catalogue_;  // for sweeps
  std::shared_ptr<Inbox> inbox_;
  std::unique_ptr<jobs::Job> job_;  // at most one of the two
  std::unique_ptr<launch::LaunchJob> launched_;
  std::filesystem::path resources_;  // of a run that is being loaded, to reattach
  std::unique_ptr<Loader> loader_;
  RunPtr live_, shown_;
  std::array<RunPtr, kRunKinds> by_kind_;
  bool stopping_ = false, started_there_ = false;
  std::uint64_t dropped_ = 0;
};

// Reads a run's record from the store. Throws Error.
RunPtr load_run(const std::filesystem::path& runs_folder, const store::RunId& run, std::stop_token stop = {});

}  // namespace mw::ui
