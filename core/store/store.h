// SPDX-License-Identifier: Apache-2.0
// The run store: an SQLite database in WAL mode in one folder, plus a folder of artefacts per run. All committed data
// survives kill -9. Several processes may use one store; each run has one writing process at a time.
// A Store object belongs to one thread; open another one for another thread. A store without write permission can be
// read. Errors: STORE-BUSY (another process locks the database for too long), STORE-FULL, STORE-IO, STORE-UNWRITABLE,
// STORE-GONE (the folder was deleted, moved or replaced while this store was open), STORE-NOT-A-DATABASE,
// STORE-DAMAGED, STORE-NEWER, RUN-LOCKED, RUN-UNKNOWN.
#pragma once
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/event.h"
#include "core/experiment/experiment.h"

namespace mw::store {

// How many held-out prompts a model answered correctly, by step. Thread-safe.

struct ScoredAnswers {
  long step = 0, right = 0, scored = 0;
  double share() const { return static_cast<double>(right) / static_cast<double>(scored); }
  // The 95 % Wilson score interval of the share.
  std::pair<double, double> interval() const {
    const double n = static_cast<double>(scored), z2 = 1.96 * 1.96, p = share();
    const double middle = (p + z2 / (2 * n)) / (1 + z2 / n);
    const double half = 1.96 * std::sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n);
    return {middle - half, middle + half};
  }
  bool operator==(const ScoredAnswers&) const = default;
};
inline std::string to_text(const ScoredAnswers& answers) {
  return std::to_string(answers.right) + " of " + std::to_string(answers.scored);
}

// Ascending by step. `samples` have step, prompt and verdict; those without a verdict are ignored. A prompt that was
// answered twice after the same step counts once, with its last verdict.
template <class Samples>
std::vector<ScoredAnswers> scored_answers(const Samples& samples) {
  std::map<long, std::map<std::string, bool>> by_step;
  for (const auto& s : samples)
    if (!s.verdict.empty()) by_step[s.step][s.prompt] = s.verdict == "right";
  std::vector<ScoredAnswers> out;
  for (const auto& [step, prompts] : by_step) {
    ScoredAnswers at{step, 0, static_cast<long>(prompts.size())};
    for (const auto& [prompt, right] : prompts) at.right += right;
    out.push_back(at);
  }
  return out;
}

using RunId = std::string;  // "run-12"

// Error text of a run whose process died before the run ended; recover() writes it.
inline constexpr std::string_view kInterrupted = "interrupted: its process ended before the run did";

struct RunRow {  // one line of the Runs table
  RunId id;
  std::string name, created;  // created: ISO 8601 UTC
  RunState state = RunState::queued;
  std::string model, method;  // display text: "gemma3-1b", "lora r16"
  std::string source;         // measured (engine), predicted, imported
  long steps_done = 0, steps_total = 0;
  std::optional<double> train_loss, eval_loss;  // latest values
  double seconds = 0;
  std::int64_t tokens = 0;
  Bytes peak;
  std::string tags, error;
  bool interrupted() const { return state == RunState::failed && error == kInterrupted; }
  bool operator==(const RunRow&) const = default;
};

// How a run ended. `error` is set only for a failed run: it tells a usage error from a failure of the environment or
// the program.
struct RunOutcome {
  event::Finished finished;
  std::optional<Error::Kind> error;
};

struct StoredEvent {
  std::int64_t sequence;
  Event event;
};

enum class Trash { kept, deleted };  // runs shown in the table, or runs in the trash

// Prevents other processes from writing the same run. Released on destruction or process death. Implemented as a flock
// on <folder>/lock, which contains the owner's pid while it is locked.
class RunLock {
 public:
  RunLock(const std::filesystem::path& run_folder, const RunId& run);  // throws RUN-LOCKED if another process holds it
  static std::unique_ptr<RunLock> try_lock(
      const std::filesystem::path& run_folder);  // null if another process holds it
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  explicit RunLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

class Store {
 public:
  // Creates the folder and the schema if they are missing, readable only by the owner. Throws STORE-FOLDER for an empty
  // path. Opens an existing store without write permission read-only: functions that write then throw
  // STORE-UNWRITABLE. `patience` limits how long a call waits for the lock of another process.
  explicit Store(std::filesystem::path folder, std::chrono::milliseconds patience = std::chrono::seconds(5));
  ~Store();
  const std::filesystem::path& folder() const;

  // Creates a queued run. An empty `name` selects the experiment's name, or the id if that is empty. Ids are unique
  // even if several processes create runs at once. Credentials in URLs are removed (without_url_secrets()). Throws
  // TYPE for a value of the wrong type.
  RunId create(const experiment::Experiment& experiment, const std::string& name);
  // Locks the run for writing. Throws RUN-LOCKED, naming the process that holds the lock.
  std::unique_ptr<RunLock> lock(const RunId& run);
  // Adds an event. Telemetry is committed within 200 ms by a thread of the store, other events at once; flush() commits
  // immediately. After an Error the events stay queued, and the next successful append or flush commits them.
  // `cursor` is the position in the source of the run's events, in a format that the reader chooses. It is committed in
  // the same transaction as the event, so a reader that was killed continues exactly after the last stored event.
  void append(const RunId& run, const Event& event, const std::string& cursor = {});
  std::optional<std::string> cursor(const RunId& run) const;  // the last committed cursor
  void flush();
  // Records how the run ended, commits, and returns the recorded event. If the store was rescued, the recorded state is
  // failed.
  event::Finished finish(const RunId& run, double time_s, event::Finished finished, const std::string& cursor = {});
  // Prepares a resume from `step`: in one transaction, removes all events after the checkpoint or sweep point of that
  // step (all events if step is 0) and reopens the run. Returns false if the record has neither; it is then cut at the
  // first event of a later step or at the Finished event. The next Started event should set info.resumed_from.
  bool rewind(const RunId& run, long step);

  // Returns whether the folder was deleted, moved or replaced since it was opened. Reads still return the old records.
  bool gone() const;
  // If gone() becomes true while events are written, append() or flush() copies all records to a rescue folder, which
  // folder() and run_folder() return from then on, and sets rescue() to a description with the new location.
  const std::optional<Problem>& rescue() const;
  // Returns rescue() as a log event, the first time only.
  std::optional<Event> rescue_notice(double time_s);

  // Reads include events that are appended but not yet committed.
  // Differs from an earlier value of this object if the records have changed in between; empty: not known.
  using Version = std::pair<std::int64_t, std::int64_t>;
  std::optional<Version> version() const;
  std::vector<RunRow> list(Trash trash = Trash::kept) const;  // newest first
  std::optional<RunRow> find(const RunId& run) const;
  experiment::Experiment experiment(const RunId& run) const;
  std::vector<StoredEvent> events(const RunId& run, std::int64_t after_sequence = 0) const;
  // Calls `use`, which must not use this store, with each of events(), without keeping them: a run may have millions.
  void read_events(const RunId& run, const std::function<void(const StoredEvent&)>& use,
                   std::int64_t after_sequence = 0) const;
  // Returns {step, value} of a metric in order of recording. Quick, also for long runs.
  std::vector<std::pair<long, double>> metric(const RunId& run, const std::string& name) const;
  // Returns the sum of a value of all points of a sweep; points without it count nothing.
  double sum_of_points(const RunId& run, const std::string& key) const;
  // Returns the scored answers after the last step that has any.
  std::optional<ScoredAnswers> last_answers(const RunId& run) const;
  // Returns the info of the last Started event; null before the first.
  Json started_info(const RunId& run) const;
  std::filesystem::path run_folder(const RunId& run) const;  // artefacts; of a deleted run, in the trash folder
  void rename(const RunId& run, const std::string& name);
  void set_tags(const RunId& run, const std::string& tags);
  void set_created(const RunId& run, const std::string& utc);  // of a run that another store recorded
  // Deletes or restores a run. A deleted run keeps its record, and its folder moves to the folder "trash". Throws
  // RUN-LOCKED while a process writes the run.
  void set_deleted(const RunId& run, Trash trash) { set_deleted(std::span(&run, 1), trash); }
  // Deletes or restores many runs. An Error leaves the runs before the one that caused it deleted or restored.
  void set_deleted(std::span<const RunId> runs, Trash trash);
  // Removes the record and the files of a deleted run for good. Throws RUN-KEPT for a run that is not deleted.
  void purge(const RunId& run);
  // Ends runs whose process died (unfinished and not locked) with a Finished event: failed, kInterrupted. Skips runs
  // with a cursor, whose job runs elsewhere. Removes partial checkpoints of interrupted runs and completes deletions
  // that a process did not complete. Returns the ended runs.
  std::vector<RunId> recover();

 private:
  void remove_parts_of_interrupted_runs() const;
  void complete_moves();  // of deleted and restored runs
  void move_locked(std::span<const RunId> runs, Trash trash);
  experiment::Experiment experiment_of(std::int64_t number) const;
  void change(const RunId& run, const char* sql, std::string_view value);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Returns $MESHWRIGHT_RUNS, else $XDG_DATA_HOME/meshwright, else ~/.local/share/meshwright; empty without $HOME.
std::filesystem::path default_folder();

// Sets the columns that depend on the experiment: model, method, source, steps_total.
RunRow row_from(const experiment::Experiment& experiment);
// Updates the row with one event: state, steps, losses, seconds, tokens, peak, error.
void apply(RunRow& row, const Event& event);

// Values of the indexed columns of the events table; an empty optional is NULL.
struct EventColumns {
  std::string kind, name;
  std::optional<std::int64_t> step;
  std::optional<double> value;
};
EventColumns columns_of(const Event& event);

std::string now_utc();    // "2026-01-31T12:00:00Z"
std::string today_utc();  // "2026-01-31"

}  // namespace mw::store
