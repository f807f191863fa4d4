// SPDX-License-Identifier: Apache-2.0
#include "core/store/store.h"
#include "core/base/file_system.h"
#include "core/base/text.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <mutex>
#include <set>
#include <stop_token>
#include <thread>

#include "core/base/atomic_file.h"
#include "core/base/files.h"
#include "core/experiment/bound_experiment.h"
#include "core/store/chain.h"
#include "core/store/store_rows.h"
#include "core/store/store_sqlite.h"

namespace mw::store {

namespace fs = std::filesystem;
namespace {

constexpr auto kCommitAfter =
    std::chrono::milliseconds(150);            // telemetry is committed within 200 ms; this leaves 50 ms for the commit
constexpr std::int64_t kAbandonedAfterS = 60;  // a queued run that stays unlocked for so long is dead

constexpr size_t kLocksAtOnce = 100;  // open files

constexpr const char* kTrashFolder = "trash";

fs::path folder_of(const fs::path& store, const RunId& run, Trash trash) {
  return trash == Trash::deleted ? store / kTrashFolder / run : store / run;
}

// Moves the folder of a run to where `trash` says. Does nothing if it is there or nowhere.
void move_folder(const fs::path& store, const RunId& run, Trash trash) {
  const fs::path to = folder_of(store, run, trash);
  const fs::path from = folder_of(store, run, trash == Trash::deleted ? Trash::kept : Trash::deleted);
  if (!path_exists(from)) return;
  if (trash == Trash::deleted) make_folders(to.parent_path());
  if (file_system().rename(from.c_str(), to.c_str()) != 0)
    throw system_error("cannot move the files of " + run, from.string(), errno);
}

// A checkpoint in the run's own folder is recorded with the hashes of its files.
std::string event_json(const Event& event, const RunId& run, const fs::path& run_folder) {
  Json json = to_json(event, run);
  const auto* checkpoint = std::get_if<event::Checkpoint>(&event.body);
  if (const fs::path folder = checkpoint ? fs::path(checkpoint->path) : fs::path();
      checkpoint && !run_folder.empty() && folder.parent_path() == run_folder && is_folder(folder)) {
    try {
      json["files"] = hashed_files(folder);
    } catch (const std::exception& error) {  // the run goes on; `verify` shows the reason
      json["files"] = nullptr;
      json["reason"] = error.what();
    }
  }
  return dump_utf8(json);
}

// Runs contain dataset text and prompts, so new folders are readable only by the owner.
fs::path database_file(const fs::path& folder) {
  if (folder.empty())
    throw Error("STORE-FOLDER", "the run store has no folder",
                {.fix = "set one with --runs-dir or $MESHWRIGHT_RUNS, or set HOME to your home folder"});
  keep_private(folder);
  make_folders(folder);
  return folder / "runs.sqlite";
}

Error store_gone(const fs::path& folder, const std::string& consequence, const std::string& fix) {
  return Error("STORE-GONE", "the runs folder was deleted, moved or replaced while it was in use; " + consequence,
               {.file = folder.string(), .fix = fix}, Error::Kind::failed);
}

Error read_only(const fs::path& folder) {
  return Error("STORE-UNWRITABLE", "the run store is read-only",
               {.file = folder.string(),
                .fix = "allow writing there, or choose another folder for the runs (--runs-dir or $MESHWRIGHT_RUNS)"});
}

fs::path variable(const char* name) {
  const char* value = std::getenv(name);
  return {value ? value : ""};
}

// Returns the parents of a possible rescue folder: the parent of the lost folder, then the user's state folder.
std::vector<fs::path> rescue_parents(const fs::path& lost) {
  std::vector<fs::path> parents;
  if (is_folder(lost.parent_path())) parents.push_back(lost.parent_path());
  if (const fs::path state = variable("XDG_STATE_HOME"); state.is_absolute())
    parents.push_back(state / "meshwright");
  else if (const fs::path home = variable("HOME"); home.is_absolute())
    parents.push_back(home / ".local/state/meshwright");
  return parents;
}

// Creates an empty folder "runs-rescued", "runs-rescued-2" ... Throws STORE-GONE if none can be created.
fs::path make_rescue_folder(const fs::path& lost) {
  std::error_code none;
  fs::path whole = fs::absolute(lost, none).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  for (const fs::path& parent : rescue_parents(whole)) try {
      make_folders(parent);
      for (int n = 1; n <= 1000; ++n) {
        fs::path folder =
            parent / (whole.filename().string() + "-rescued" + (n > 1 ? "-" + std::to_string(n) : std::string()));
        keep_private(folder);
        if (make_new_folder(folder)) return folder;
      }
    } catch (const Error&) {  // the next parent may be writable
    }
  throw store_gone(lost, "no folder could be created to rescue the record", "start again; the record is lost");
}

}  // namespace

// Lock order: database, then queue. Appending telemetry locks only the queue, so it never waits for the disk.
struct Store::Impl {
  struct Pending {
    std::int64_t run;
    Event event;
    EventColumns columns;
    std::string json, cursor;
  };

  Impl(fs::path where, std::chrono::milliseconds patience)
      : folder(std::move(where)), db(database_file(folder), static_cast<int>(patience.count())) {
    prepare();
  }

  void prepare() {
    // NORMAL: a commit reaches the kernel before it returns, so it survives kill -9 of every process; only a power
    // failure may take the last moments (never the database's integrity). FULL would fsync on each commit, tens of
    // milliseconds on a busy disk, in the middle of training; checkpoint files, which a resume needs, are fsynced.
    if (!db.read_only()) db.use_wal();
    db.exec("PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON");
    prepare_schema(db);
    if (!db.read_only())
      insert.emplace(db, "INSERT INTO events(run, kind, step, name, value, json, link) VALUES(?,?,?,?,?,?,?)");
    rows.emplace(db);
  }
  void drop_statements() {
    insert.reset();
    rows.reset();
  }

  void require_writable() const {
    if (db.read_only()) throw read_only(folder);
  }
  // Needs the database.
  void require_in_place() const {
    require_writable();
    if (db.has_moved()) throw store_gone(folder, "it cannot record any more events", "start again");
  }

  // Goes on in a rescue folder, with all records, where the store's own is gone. Needs the database, on the store's
  // thread.
  void rescue_if_gone() {
    if (!db.has_moved()) return;
    const fs::path lost = folder, rescued = make_rescue_folder(lost);
    drop_statements();
    try {
      db.copy_to(rescued / "runs.sqlite");
    } catch (const Error& error) {
      prepare();
      remove_tree(rescued);
      throw store_gone(lost, "the record could not be copied to " + rescued.string() + ": " + error.what(),
                       "start again; the record is lost");
    }
    prepare();
    folder = rescued;
    for (const RunId& run : appended) rescued_locks.push_back(std::make_unique<RunLock>(folder / run, run));
    rescue = store_gone(lost, "the record and later checkpoints are in " + rescued.string(),
                        "open them with --runs-dir " + rescued.string())
                 .problem();
  }

  void insert_event(const Pending& p, std::optional<ChainEnd>& chain) {
    insert->reset();
    insert->bind(p.run).bind(std::string_view(p.columns.kind)).bind(p.columns.step);
    if (p.columns.name.empty())
      insert->bind_null();
    else
      insert->bind(std::string_view(p.columns.name));
    insert->bind(p.columns.value).bind(std::string_view(p.json));
    if (chain) {
      *chain = {chain->events + 1, next_link(sha, chain->link, p.columns, p.json)};
      insert->bind_blob({reinterpret_cast<const char*>(chain->link.data()), chain->link.size()});
    }
    insert->run();
  }

  void write_cursors(const std::vector<Pending>& taken) {
    std::map<std::int64_t, std::string_view> last;
    for (const Pending& p : taken)
      if (!p.cursor.empty()) last[p.run] = p.cursor;
    for (const auto& [run, cursor] : last)
      SqlStatement(db, "INSERT OR REPLACE INTO cursors(run, cursor) VALUES(?,?)").bind(run).bind(cursor).run();
  }

  std::int64_t known(const RunId& run) {  // the caller holds the database lock
    const std::int64_t number = run_number(run);
    if (number == 0 || !rows->find(number)) throw unknown_run(run, folder);
    return number;
  }

  // Returns the last event that a resume from `step` keeps: the checkpoint or the sweep point of that step.
  std::optional<std::int64_t> last_kept(std::int64_t run, long step) {
    if (step == 0) return 0;
    SqlStatement s(db, "SELECT max(sequence) FROM events WHERE run=? AND step=? AND kind IN ('checkpoint', 'point')");
    s.bind(run).bind(std::int64_t{step});
    const std::int64_t sequence = s.step() ? s.integer(0) : 0;
    return sequence > 0 ? std::optional(sequence) : std::nullopt;
  }

  // Writes all queued events in one transaction; queues them again on failure. The caller holds the database lock.
  void commit_pending() {
    std::vector<Pending> taken;
    {
      const std::lock_guard lock(queue_mutex);
      taken.swap(pending);
    }
    if (taken.empty()) return;
    try {
      require_in_place();
      Transaction transaction(db);
      struct Changed {
        RunRow row;
        std::optional<ChainEnd> chain;
      };
      std::map<std::int64_t, Changed> changed;
      for (const Pending& p : taken) {
        auto at = changed.find(p.run);
        if (at == changed.end())
          at = changed.emplace(p.run, Changed{rows->find(p.run).value_or(RunRow()), chain_end(db, p.run)}).first;
        insert_event(p, at->second.chain);
        apply(at->second.row, p.event);
      }
      for (const auto& [run, one] : changed) {
        rows->write(run, one.row);
        if (one.chain) write_chain_end(db, run, *one.chain);
      }
      write_cursors(taken);
      transaction.commit();
      failing = false;
    } catch (...) {
      failing = true;
      const std::lock_guard lock(queue_mutex);
      taken.insert(taken.end(), std::make_move_iterator(pending.begin()), std::make_move_iterator(pending.end()));
      pending = std::move(taken);
      throw;
    }
  }
  void commit_pending_if_possible() noexcept {  // remembers a failure; the next append reports it
    try {
      commit_pending();
      if (!db.needs_reopening()) return;
      drop_statements();
      db.reopen();
      prepare();
    } catch (const std::exception&) {
    }
  }

  // Commits queued telemetry in the background.
  void run_committer(const std::stop_token& stop) {
    std::unique_lock queue(queue_mutex);
    while (!stop.stop_requested()) {
      wake.wait(queue, stop, [this] { return !pending.empty(); });
      if (stop.stop_requested()) return;
      wake.wait_for(queue, stop, kCommitAfter, [] { return false; });  // collects a batch
      queue.unlock();
      {
        const std::lock_guard lock(db_mutex);
        commit_pending_if_possible();
      }
      queue.lock();
      if (failing) wake.wait_for(queue, stop, std::chrono::seconds(1), [] { return false; });
    }
  }

  fs::path folder;
  std::mutex db_mutex;
  Database db;
  std::optional<SqlStatement> insert;
  std::optional<StoreRows> rows;
  Sha256 sha;                // of the database's thread
  std::set<RunId> appended;  // runs known to exist
  std::mutex queue_mutex;
  std::condition_variable_any wake;
  std::vector<Pending> pending;
  std::atomic<bool> failing = false;
  std::optional<Problem> rescue;
  bool rescue_told = false;
  std::vector<std::unique_ptr<RunLock>> rescued_locks;  // of the appended runs, in the rescue folder
  std::jthread committer;                               // last member: stops first
};

Store::Store(fs::path folder, std::chrono::milliseconds patience)
    : impl_(std::make_unique<Impl>(std::move(folder), patience)) {}

Store::~Store() {
  impl_->committer = {};
  impl_->commit_pending_if_possible();
}

const fs::path& Store::folder() const {
  return impl_->folder;
}

RunId Store::create(const experiment::Experiment& experiment, const std::string& name) {
  Json document = experiment.json();
  remove_url_secrets(document);
  const experiment::Experiment frozen = experiment::Experiment::from_json(std::move(document), experiment.folder());
  for (const Problem& p : frozen.validate())
    if (p.id == "TYPE") throw Error(p);
  const RunRow row = row_from(frozen);
  const std::lock_guard lock(impl_->db_mutex);
  impl_->require_in_place();
  Database& db = impl_->db;
  Transaction transaction(db);
  std::int64_t number = db.integer("SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name='runs'), 0) + 1");
  // An existing folder belongs to a run of an earlier database, whose checkpoints must not be mixed with this run's.
  while (path_exists(folder_of(impl_->folder, run_id(number), Trash::deleted)) ||
         !make_new_folder(folder_of(impl_->folder, run_id(number), Trash::kept)))
    ++number;
  const fs::path artefacts = impl_->folder / run_id(number);
  try {
    const std::string chosen = !name.empty() ? without_url_secrets(name) : frozen.valid_values().name;
    SqlStatement insert(
        db,
        "INSERT INTO runs(id, name, created, experiment, experiment_folder, state, model, method, source, "
        "steps_done, steps_total, seconds, tokens, peak) VALUES(?,?,?,?,?,'queued',?,?,?,0,?,0,0,0)");
    insert.bind(number).bind(std::string_view(chosen.empty() ? run_id(number) : chosen)).bind(now_utc());
    insert.bind(std::string_view(frozen.text())).bind(std::string_view(frozen.folder().string()));
    insert.bind(std::string_view(row.model)).bind(std::string_view(row.method)).bind(std::string_view(row.source));
    insert.bind(std::int64_t{row.steps_total}).run();
    begin_chain(db, number, frozen.text(), frozen.folder().string());
    transaction.commit();
  } catch (...) {
    remove_tree(artefacts);
    throw;
  }
  return run_id(number);
}

std::unique_ptr<RunLock> Store::lock(const RunId& run) {
  {
    const std::lock_guard lock(impl_->db_mutex);
    impl_->known(run);
    impl_->require_in_place();
  }
  auto held = std::make_unique<RunLock>(run_folder(run), run);
  remove_stale_parts_in(run_folder(run));  // left by a process that was killed
  return held;
}

void Store::append(const RunId& run, const Event& event, const std::string& cursor) {
  if (!impl_->appended.contains(run)) {
    const std::lock_guard lock(impl_->db_mutex);
    impl_->known(run);
    impl_->require_writable();
    impl_->appended.insert(run);
  }
  Impl::Pending p{
      run_number(run), event, columns_of(event),
      event_json(event, run, std::holds_alternative<event::Checkpoint>(event.body) ? run_folder(run) : fs::path()),
      cursor};
  bool first = false;
  {
    const std::lock_guard lock(impl_->queue_mutex);
    first = impl_->pending.empty();
    impl_->pending.push_back(std::move(p));
  }
  if (!is_telemetry(event) || impl_->failing) {
    flush();
    return;
  }
  if (!impl_->committer.joinable())
    impl_->committer = std::jthread([impl = impl_.get()](const std::stop_token& stop) { impl->run_committer(stop); });
  if (first) impl_->wake.notify_one();
}

void Store::flush() {
  const std::lock_guard lock(impl_->db_mutex);
  if (!impl_->appended.empty()) impl_->rescue_if_gone();
  impl_->commit_pending();
}

event::Finished Store::finish(const RunId& run, double time_s, event::Finished finished, const std::string& cursor) {
  for (;;) {
    flush();
    const bool rescued = impl_->rescue.has_value();
    if (rescued) {
      finished.state = RunState::failed;
      finished.error += (finished.error.empty() ? "" : "; ") + to_text(*impl_->rescue);
    }
    append(run, {time_s, finished}, cursor);
    flush();
    if (rescued || !impl_->rescue) return finished;
  }
}

bool Store::gone() const {
  const std::lock_guard lock(impl_->db_mutex);
  return impl_->db.has_moved();
}

const std::optional<Problem>& Store::rescue() const {
  return impl_->rescue;
}

std::optional<Event> Store::rescue_notice(double time_s) {
  if (!impl_->rescue || std::exchange(impl_->rescue_told, true)) return std::nullopt;
  return Event{time_s, event::Log{"error", to_text(*impl_->rescue)}};
}

std::optional<std::string> Store::cursor(const RunId& run) const {
  const std::lock_guard lock(impl_->db_mutex);
  impl_->commit_pending_if_possible();
  SqlStatement s(impl_->db, "SELECT cursor FROM cursors WHERE run=?");
  s.bind(impl_->known(run));
  return s.step() ? std::optional(std::string(s.text(0))) : std::nullopt;
}

bool Store::rewind(const RunId& run, long step) {
  const std::lock_guard lock(impl_->db_mutex);
  const std::int64_t number = impl_->known(run);
  impl_->require_in_place();
  impl_->commit_pending();
  Database& db = impl_->db;
  Transaction transaction(db);
  const std::optional<std::int64_t> last = impl_->last_kept(number, step);
  SqlStatement remove(db,
                      last ? "DELETE FROM events WHERE run=?1 AND sequence > ?2"
                           : "DELETE FROM events WHERE run=?1 AND sequence >= (SELECT min(sequence) FROM events WHERE "
                             "run=?1 AND (step > ?2 OR kind = 'finished'))");
  remove.bind(number).bind(last.value_or(step)).run();
  rewind_chain(db, number);
  // Recomputes the row from the remaining events.
  RunRow row = row_from(experiment_of(number));
  SqlStatement left(db, "SELECT json FROM events WHERE run=? ORDER BY sequence");
  left.bind(number);
  while (left.step()) apply(row, event_from_text(left.text(0), run));
  row.state = RunState::running;
  row.error.clear();
  impl_->rows->write(number, row);
  transaction.commit();
  return last.has_value();
}

experiment::Experiment Store::experiment_of(std::int64_t number) const {
  SqlStatement s(impl_->db, "SELECT experiment, experiment_folder FROM runs WHERE id=?");
  s.bind(number);
  if (!s.step()) throw unknown_run(run_id(number), impl_->folder);
  return experiment::Experiment::from_json(parse_json(s.text(0), "experiment of " + run_id(number)),
                                           std::string(s.text(1)));
}

std::optional<Store::Version> Store::version() const {
  const std::lock_guard lock(impl_->db_mutex);
  impl_->commit_pending_if_possible();
  return impl_->db.version();
}

std::vector<RunRow> Store::list(Trash trash) const {
  const std::lock_guard lock(impl_->db_mutex);
  impl_->commit_pending_if_possible();
  return impl_->rows->all(trash);
}

std::optional<RunRow> Store::find(const RunId& run) const {
  const std::lock_guard lock(impl_->db_mutex);
  impl_->commit_pending_if_possible();
  return impl_->rows->find(run_number(run));
}

experiment::Experiment Store::experiment(const RunId& run) const {
  const std::lock_guard lock(impl_->db_mutex);
  return experiment_of(impl_->known(run));
}

std::vector<StoredEvent> Store::events(const RunId& run, std::int64_t after_sequence) const {
  std::vector<StoredEvent> found;
  read_events(
      run, [&](const StoredEvent& event) { found.push_back(event); }, after_sequence);
  return found;
}

void Store::read_events(const RunId& run, const std::function<void(const StoredEvent&)>& use,
                        std::int64_t after_sequence) const {
  const std::lock_guard lock(impl_->db_mutex);
  impl_->commit_pending_if_possible();
  const std::int64_t number = impl_->known(run);
  SqlStatement s(impl_->db, "SELECT sequence, json FROM events WHERE run=? AND sequence>? ORDER BY sequence");
  s.bind(number).bind(after_sequence);
  while (s.step()) use({s.integer(0), event_from_text(s.text(1), run + ", event " + std::to_string(s.integer(0)))});
}

fs::path Store::run_folder(const RunId& run) const {
  if (run_number(run) == 0) throw unknown_run(run, impl_->folder);  // never build a path from unchecked input
  const fs::path trashed = folder_of(impl_->folder, run, Trash::deleted);
  return path_exists(trashed) ? trashed : folder_of(impl_->folder, run, Trash::kept);
}

std::vector<std::pair<long, double>> Store::metric(const RunId& run, const std::string& name) const {
  const std::lock_guard lock(impl_->db_mutex);
  impl_->commit_pending_if_possible();
  SqlStatement s(impl_->db, "SELECT step, value FROM events WHERE run=? AND name=? ORDER BY step");
  s.bind(impl_->known(run)).bind(std::string_view(name));
  std::vector<std::pair<long, double>> out;
  while (s.step())
    if (const auto value = s.optional_number(1)) out.emplace_back(static_cast<long>(s.integer(0)), *value);
  return out;
}

double Store::sum_of_points(const RunId& run, const std::string& key) const {
  const std::lock_guard lock(impl_->db_mutex);
  impl_->commit_pending_if_possible();
  SqlStatement s(
      impl_->db,
      "SELECT sum(iif(json_valid(json), json_extract(json, '$.values.' || ?2), 0)) FROM events WHERE run=?1 AND "
      "kind='point'");
  s.bind(impl_->known(run)).bind(std::string_view(key));
  return s.step() ? s.number(0) : 0;
}

std::optional<ScoredAnswers> Store::last_answers(const RunId& run) const {
  const std::lock_guard lock(impl_->db_mutex);
  impl_->commit_pending_if_possible();
  SqlStatement s(impl_->db,
                 "SELECT json FROM events WHERE run=?1 AND kind='sample' AND "
                 "step=(SELECT max(step) FROM events WHERE run=?1 AND kind='sample') ORDER BY sequence");
  s.bind(impl_->known(run));
  std::vector<event::Sample> samples;
  while (s.step())
    if (const Event e = event_from_text(s.text(0), run); const auto* sample = std::get_if<event::Sample>(&e.body))
      samples.push_back(*sample);
  const auto answers = scored_answers(samples);
  return answers.empty() ? std::nullopt : std::optional(answers.back());
}

Json Store::started_info(const RunId& run) const {
  const std::lock_guard lock(impl_->db_mutex);
  impl_->commit_pending_if_possible();
  SqlStatement s(impl_->db, "SELECT json FROM events WHERE run=? AND kind='started' ORDER BY +sequence DESC LIMIT 1");
  s.bind(impl_->known(run));
  if (!s.step()) return nullptr;
  const Event e = event_from_text(s.text(0), run);
  const auto* started = std::get_if<event::Started>(&e.body);
  return started ? started->info : Json(nullptr);
}

void Store::change(const RunId& run, const char* sql, std::string_view value) {
  const std::lock_guard lock(impl_->db_mutex);
  impl_->require_in_place();
  SqlStatement s(impl_->db, sql);
  s.bind(without_url_secrets(value)).bind(run_number(run)).run();
  if (impl_->db.changes() == 0) throw unknown_run(run, impl_->folder);
}

void Store::rename(const RunId& run, const std::string& name) {
  change(run, "UPDATE runs SET name=? WHERE id=?", name);
}
void Store::set_tags(const RunId& run, const std::string& tags) {
  change(run, "UPDATE runs SET tags=? WHERE id=?", tags);
}
void Store::set_created(const RunId& run, const std::string& utc) {
  change(run, "UPDATE runs SET created=? WHERE id=?", utc);
}

void Store::set_deleted(std::span<const RunId> runs, Trash trash) {
  while (!runs.empty()) {
    const auto some = runs.first(std::min(runs.size(), kLocksAtOnce));
    std::vector<std::unique_ptr<RunLock>> locks;
    std::exception_ptr failure;
    try {
      for (const RunId& run : some) locks.push_back(lock(run));
    } catch (const Error&) {
      failure = std::current_exception();
    }
    move_locked(some.first(locks.size()), trash);
    if (failure) std::rethrow_exception(failure);
    runs = runs.subspan(some.size());
  }
}

// Rows and folders change in one transaction. The row decides: complete_moves() moves the folder of a run whose process
// died before the commit.
void Store::move_locked(std::span<const RunId> runs, Trash trash) {
  const std::lock_guard lock(impl_->db_mutex);
  Transaction transaction(impl_->db);
  SqlStatement update(impl_->db, "UPDATE runs SET trash=? WHERE id=?");
  std::exception_ptr failure;
  for (const RunId& run : runs) {
    try {
      move_folder(impl_->folder, run, trash);
    } catch (const Error&) {
      failure = std::current_exception();
      break;
    }
    update.bind(std::int64_t{trash == Trash::deleted}).bind(run_number(run)).run();
  }
  transaction.commit();  // also after a failure: the folders of the runs before it are moved
  if (failure) std::rethrow_exception(failure);
}

void Store::purge(const RunId& run) {
  const auto lock = this->lock(run);
  const std::lock_guard db_lock(impl_->db_mutex);
  impl_->commit_pending();
  Transaction transaction(impl_->db);
  SqlStatement deleted(impl_->db, "SELECT 1 FROM runs WHERE id=? AND trash=1");
  if (!deleted.bind(run_number(run)).step())
    throw Error("RUN-KEPT", run + " is not deleted, so it cannot be removed for good",
                {.file = impl_->folder.string(), .fix = "delete the run first"});
  deleted.reset();
  for (const char* sql : {"DELETE FROM events WHERE run=?", "DELETE FROM cursors WHERE run=?",
                          "DELETE FROM chains WHERE run=?", "DELETE FROM runs WHERE id=?"})
    SqlStatement(impl_->db, sql).bind(run_number(run)).run();
  // Files first: a run whose files remain must stay listed.
  const fs::path files = folder_of(impl_->folder, run, Trash::deleted);
  if (!remove_tree(files)) throw system_error("cannot remove the files of " + run, files.string(), errno);
  transaction.commit();
}

void Store::complete_moves() {
  const std::lock_guard lock(impl_->db_mutex);
  const auto misplaced = [this] {
    std::vector<std::pair<RunId, Trash>> found;
    for (const Trash trash : {Trash::kept, Trash::deleted})
      for (const RunRow& row : impl_->rows->all(trash))
        if (path_exists(folder_of(impl_->folder, row.id, trash == Trash::kept ? Trash::deleted : Trash::kept)))
          found.emplace_back(row.id, trash);
    return found;
  };
  if (misplaced().empty()) return;
  Transaction transaction(impl_->db);  // no other process moves folders meanwhile
  for (const auto& [run, trash] : misplaced()) move_folder(impl_->folder, run, trash);
  transaction.commit();
}

std::vector<RunId> Store::recover() {
  std::vector<RunId> suspects;
  {
    const std::lock_guard lock(impl_->db_mutex);
    if (impl_->db.read_only()) return {};
    SqlStatement s(impl_->db,
                   "SELECT id FROM runs WHERE (state IN ('running', 'paused') OR (state = 'queued' AND "
                   "strftime('%s', 'now') - strftime('%s', created) > ?)) AND id NOT IN (SELECT run FROM cursors)");
    s.bind(kAbandonedAfterS);
    while (s.step()) suspects.push_back(run_id(s.integer(0)));
  }
  std::vector<RunId> recovered;
  for (const RunId& run : suspects) {
    const auto lock =
        RunLock::try_lock(run_folder(run));  // held while marking, so that no process resumes the run meanwhile
    if (!lock) continue;
    const auto row = find(run);
    if (!row || row->state == RunState::done || row->state == RunState::failed || row->state == RunState::cancelled)
      continue;
    append(run, {row->seconds, event::Finished{RunState::failed, row->steps_done, static_cast<long>(row->tokens),
                                               row->seconds, row->peak, std::string(kInterrupted), Json()}});
    recovered.push_back(run);
  }
  remove_parts_of_interrupted_runs();
  complete_moves();
  return recovered;
}

void Store::remove_parts_of_interrupted_runs() const {
  const std::lock_guard lock(impl_->db_mutex);
  SqlStatement s(impl_->db, "SELECT id FROM runs WHERE state='failed' AND error=?");
  s.bind(kInterrupted);
  while (s.step()) remove_stale_parts_in(impl_->folder / run_id(s.integer(0)));
}

fs::path default_folder() {
  if (fs::path chosen = variable("MESHWRIGHT_RUNS"); !chosen.empty()) return chosen;
  if (const fs::path data = variable("XDG_DATA_HOME"); data.is_absolute()) return data / "meshwright";
  if (const fs::path home = variable("HOME"); home.is_absolute()) return home / ".local/share/meshwright";
  return {};  // no fallback to a shared folder, where other users can plant links
}

namespace {

struct Apply {
  RunRow& row;

  void operator()(const event::Started& e) {
    row.state = RunState::running;
    row.error.clear();
    if (!e.info.is_object()) return;
    const auto steps = e.info.find("steps");
    if (steps != e.info.end() && steps->is_number_integer()) row.steps_total = steps->get<long>();
    const auto source = e.info.find("source");
    if (source != e.info.end() && source->is_string()) row.source = valid_utf8(source->get_ref<const std::string&>());
  }
  void operator()(const event::Metric& e) {
    if (e.name.starts_with("train/")) row.steps_done = std::max(row.steps_done, e.step);
    if (e.name == "train/loss") row.train_loss = mw::known(e.value);
    if (e.name == "eval/loss") row.eval_loss = mw::known(e.value);
    if (e.name == "train/tokens" && e.value >= 0 && e.value < 9e18) row.tokens = static_cast<std::int64_t>(e.value);
  }
  void operator()(const event::Memory& e) { row.peak = std::max({row.peak, e.peak, e.bytes.total()}); }
  void operator()(const event::ResultPoint& e) { row.steps_done = std::max(row.steps_done, e.step); }
  void operator()(const event::StateChanged& e) { row.state = e.state; }
  void operator()(const event::Finished& e) {
    row.state = e.state;
    row.steps_done = std::max(row.steps_done, e.steps);
    row.tokens = std::max<std::int64_t>(row.tokens, e.tokens);
    if (std::isfinite(e.seconds)) row.seconds = std::max(row.seconds, e.seconds);
    row.peak = std::max(row.peak, e.peak);
    row.error = valid_utf8(e.error);
  }
  template <class Other>
  void operator()(const Other&) {}  // changes no column
};

std::string folder_name(const std::filesystem::path& path) {
  const auto plain = path.lexically_normal();
  return (plain.has_filename() ? plain.filename() : plain.parent_path().filename()).string();
}

}  // namespace

RunRow row_from(const experiment::Experiment& experiment) {
  RunRow row;
  const experiment::BoundExperiment config = experiment.valid_values();
  row.model = config.model.id.empty() ? folder_name(config.model.path) : config.model.id;
  if (config.kind != experiment::Kind::train) {
    row.method = config.kind == experiment::Kind::serve ? "sweep" : "size";
    row.source = "measured";  // the Started event may change it
    return row;
  }
  row.method = to_string(config.train.method);
  if (config.train.method == model::TrainMethod::lora) row.method += " r" + std::to_string(config.lora.rank);
  row.source = "measured";
  // With epochs, the number of steps is known only after reading the data; the Started event sets it.
  row.steps_total = config.train.epochs > 0 ? 0 : config.train.rate.steps;
  return row;
}

void apply(RunRow& row, const Event& event) {
  if (std::isfinite(event.time_s)) row.seconds = std::max(row.seconds, event.time_s);
  std::visit(Apply{row}, event.body);
}

EventColumns columns_of(const Event& event) {
  static constexpr const char* kKinds[] = {"started",  "metric", "memory",   "sample", "checkpoint", "log",
                                           "progress", "state",  "finished", "point",  "traffic"};
  static_assert(std::size(kKinds) == std::variant_size_v<decltype(event.body)>);
  EventColumns columns;
  columns.kind = kKinds[event.body.index()];
  std::visit(
      [&columns](const auto& e) {
        if constexpr (requires { e.step; }) columns.step = e.step;
      },
      event.body);
  if (const auto* metric = std::get_if<event::Metric>(&event.body)) {
    columns.name = valid_utf8(metric->name);
    columns.value = mw::known(metric->value);
  }
  return columns;
}

std::string now_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  const size_t n = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text, n};
}

std::string today_utc() {
  return now_utc().substr(0, std::string_view("2026-01-31").size());
}

}  // namespace mw::store
