// SPDX-License-Identifier: Apache-2.0
// The run store: SQLite in WAL mode under one folder, plus a folder of artefacts per run. Everything up to the last
// commit survives kill -9. Several processes may use one store; one run is written by one process at a time.
// A Store object belongs to one thread; open another one for another thread. A store that may not be written to can be
// read. Errors: STORE-BUSY (another process holds the database for too long), STORE-FULL, STORE-IO, STORE-UNWRITABLE,
// STORE-GONE (the folder was deleted, moved or replaced while this store was open), STORE-NOT-A-DATABASE,
// STORE-DAMAGED, STORE-NEWER, RUN-LOCKED, RUN-UNKNOWN.
#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/event.h"
#include "core/experiment/experiment.h"

namespace mw::store {

using RunId = std::string;  // "run-12"

// The error of a run whose process went away under it; recover() writes it.
inline constexpr std::string_view kInterrupted = "interrupted: its process ended before the run did";

struct RunRow {  // one line of the Runs table
  RunId id;
  std::string name, created;  // created: ISO 8601 UTC
  RunState state = RunState::queued;
  std::string model, method;  // for people: "base", "lora r16"
  std::string source;         // measured (engine), predicted, imported
  long steps_done = 0, steps_total = 0;
  std::optional<double> train_loss, eval_loss;  // last
  double seconds = 0;
  std::int64_t tokens = 0;
  Bytes peak;
  std::string tags, error;
  bool interrupted() const { return state == RunState::failed && error == kInterrupted; }
};

struct StoredEvent {
  std::int64_t sequence;
  Event event;
};

enum class Trash { kept, deleted };  // which runs: those in the table, or those put away

// Keeps other processes from writing the same run; released on destruction or process death (flock on <folder>/lock,
// which holds the owner's pid while it is taken).
class RunLock {
 public:
  RunLock(const std::filesystem::path& run_folder, const RunId& run);  // Error("RUN-LOCKED") when another has it
  static std::unique_ptr<RunLock> try_lock(const std::filesystem::path& run_folder);  // nullptr when another has it
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  explicit RunLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

class Store {
 public:
  // Creates folder and schema where they are missing, readable by the owner only. Throws STORE-FOLDER for an empty
  // path. An existing store that cannot be written is opened for reading: the functions that write then throw
  // STORE-UNWRITABLE. patience: how long a call waits for another process's lock.
  explicit Store(std::filesystem::path folder, std::chrono::milliseconds patience = std::chrono::seconds(5));
  ~Store();
  const std::filesystem::path& folder() const;

  // name empty: the experiment's name, else the id. Ids are never used twice, whatever processes create at once.
  // Nothing that is stored contains credentials of URLs (core/base/url_secrets.h).
  RunId create(const experiment::Experiment& experiment, const std::string& name);
  // Takes the run for writing; Error("RUN-LOCKED") names the process that has it.
  std::unique_ptr<RunLock> lock(const RunId& run);
  // Buffered: telemetry is committed at most 200 ms later (by a thread of the store), everything else at once. flush()
  // commits now. After an Error what was appended is kept, and committed by the next append or flush that succeeds.
  // A cursor says how far the source of the run's events has been read, in its reader's own words; it is kept with the
  // event, in one transaction, so that a reader that was killed goes on with the line after the last one kept.
  void append(const RunId& run, const Event& event, const std::string& cursor = {});
  std::optional<std::string> cursor(const RunId& run) const;  // the last one
  void flush();
  // Records how the run ended, commits, and returns what was recorded: a run whose store was rescued has failed.
  event::Finished finish(const RunId& run, double time_s, event::Finished finished, const std::string& cursor = {});
  // Before a resume from `step`: removes everything after the checkpoint or the sweep's point of that step, or
  // everything where step is 0, and reopens the run, in one transaction. False: the record has neither, and was cut at
  // the first event of a later step or at the end of the run. The Started event of the resumed part should carry
  // info.resumed_from.
  bool rewind(const RunId& run, long step);

  // Whether the folder was deleted, moved or replaced since it was opened. Reading still sees the old records.
  bool gone() const;
  // If that happens while events are written, all records are copied to a rescue folder, which folder() and
  // run_folder() name from then on. Set by the append() or flush() that did so: what happened, and where the record is.
  const std::optional<Problem>& rescue() const;
  // The same as a log event, once.
  std::optional<Event> rescue_notice(double time_s);

  // Reading sees what was appended.
  std::vector<RunRow> list(Trash trash = Trash::kept) const;  // newest first
  std::optional<RunRow> find(const RunId& run) const;
  experiment::Experiment experiment(const RunId& run) const;
  std::vector<StoredEvent> events(const RunId& run, std::int64_t after_sequence = 0) const;
  std::filesystem::path run_folder(const RunId& run) const;  // artefacts
  void rename(const RunId& run, const std::string& name);
  void set_tags(const RunId& run, const std::string& tags);
  void set_deleted(const RunId& run, Trash trash);  // undoable: rows and files stay
  // Runs whose process died: unfinished, but nobody holds the lock -> a Finished event is added: failed, "interrupted".
  // Not those with a cursor: what they record goes on elsewhere. Removes unfinished checkpoints of interrupted runs.
  std::vector<RunId> recover();

 private:
  void remove_parts_of_interrupted_runs() const;
  experiment::Experiment experiment_of(std::int64_t number) const;
  void change(const RunId& run, const char* sql, std::string_view value);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// $MESHWRIGHT_RUNS, else $XDG_DATA_HOME/meshwright, else ~/.local/share/meshwright; empty without a home folder.
std::filesystem::path default_folder();

}  // namespace mw::store
