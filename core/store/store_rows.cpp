// SPDX-License-Identifier: Apache-2.0
#include "core/store/store_rows.h"

#include <algorithm>
#include <string>

#include "core/base/text.h"
#include "core/store/chain.h"

namespace mw::store {
namespace {

constexpr std::int64_t kSchemaVersion = 1;
constexpr std::int64_t kApplicationId = 0x4d577231;  // "MWr1"

// The row of a run is updated in the transaction that adds its events. events.sequence increases over all runs and is
// never reused, so a reader that has read up to n queries for sequence > n.
constexpr const char* kTables = R"sql(
CREATE TABLE runs(
  id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, created TEXT NOT NULL, trash INTEGER NOT NULL DEFAULT 0,
  experiment TEXT NOT NULL, experiment_folder TEXT NOT NULL,
  state TEXT NOT NULL, model TEXT NOT NULL, method TEXT NOT NULL, source TEXT NOT NULL,
  steps_done INTEGER NOT NULL, steps_total INTEGER NOT NULL, train_loss REAL, eval_loss REAL,
  seconds REAL NOT NULL, tokens INTEGER NOT NULL, peak INTEGER NOT NULL,
  tags TEXT NOT NULL DEFAULT '', error TEXT NOT NULL DEFAULT '');
CREATE TABLE events(
  sequence INTEGER PRIMARY KEY AUTOINCREMENT, run INTEGER NOT NULL REFERENCES runs(id),
  kind TEXT NOT NULL, step INTEGER, name TEXT, value REAL, json TEXT NOT NULL);
CREATE INDEX events_of_run ON events(run);
CREATE INDEX metrics ON events(run, name, step, value) WHERE name IS NOT NULL;
)sql";

// Added later; older versions ignore it.
constexpr const char* kCursors =
    "CREATE TABLE IF NOT EXISTS cursors(run INTEGER PRIMARY KEY REFERENCES runs(id), cursor TEXT NOT NULL)";

// For the queries that want a few of the events of a run, which may have millions.
constexpr const char* kFewEvents =
    "CREATE INDEX IF NOT EXISTS few_events ON events(run, kind, step) "
    "WHERE kind='started' OR kind='sample' OR kind='point'";

void prepare_later_tables(Database& db) {
  db.exec(kCursors);
  db.exec(kFewEvents);
  prepare_chain(db);
}

constexpr const char* kColumns =
    "id, name, created, state, model, method, source, steps_done, steps_total, train_loss, eval_loss, seconds, tokens, "
    "peak, tags, error";

RunRow read_row(const SqlStatement& s) {
  RunRow row;
  row.id = run_id(s.integer(0));
  row.name = s.text(1);
  row.created = s.text(2);
  row.state = parse_run_state(s.text(3));
  row.model = s.text(4);
  row.method = s.text(5);
  row.source = s.text(6);
  row.steps_done = static_cast<long>(s.integer(7));
  row.steps_total = static_cast<long>(s.integer(8));
  row.train_loss = s.optional_number(9);
  row.eval_loss = s.optional_number(10);
  row.seconds = s.number(11);
  row.tokens = s.integer(12);
  row.peak = Bytes(s.integer(13));
  row.tags = s.text(14);
  row.error = s.text(15);
  return row;
}

}  // namespace

void prepare_schema(Database& db) {
  if (db.integer("PRAGMA user_version") == kSchemaVersion && db.integer("PRAGMA application_id") == kApplicationId)
    return db.read_only() ? void() : prepare_later_tables(db);
  std::optional<Transaction> transaction;  // one of several processes that open a new store creates it
  if (!db.read_only()) transaction.emplace(db);
  const std::int64_t version = db.integer("PRAGMA user_version");
  const std::int64_t application = db.integer("PRAGMA application_id");
  const bool fresh =
      transaction && version == 0 && application == 0 && db.integer("SELECT count(*) FROM sqlite_schema") == 0;
  if (fresh) {
    db.exec(kTables);
    db.exec(("PRAGMA user_version=" + std::to_string(kSchemaVersion)).c_str());
    db.exec(("PRAGMA application_id=" + std::to_string(kApplicationId)).c_str());
    transaction->commit();
    return prepare_later_tables(db);
  }
  if (application != kApplicationId)
    throw Error("STORE-NOT-A-DATABASE", "the run store is a database of another program",
                {.file = db.file().string(),
                 .found = "application id " + std::to_string(application),
                 .expected = "application id " + std::to_string(kApplicationId),
                 .fix = "move that file away, or choose another folder for the runs (--runs-dir or $MESHWRIGHT_RUNS)"});
  if (version > kSchemaVersion)
    throw Error("STORE-NEWER", "the run store was written by a newer Meshwright",
                {.file = db.file().string(),
                 .found = "schema " + std::to_string(version),
                 .expected = "schema " + std::to_string(kSchemaVersion) + " or older",
                 .fix = "update Meshwright, or choose another folder for the runs"});
  // The process that created the store meanwhile may not have added these yet.
  transaction.reset();
  if (!db.read_only()) prepare_later_tables(db);
}

Error unknown_run(const RunId& run, const std::filesystem::path& folder) {
  return Error("RUN-UNKNOWN", "the run does not exist",
               {.file = folder.string(),
                .found = run,
                .expected = "an id of the Runs table, such as run-1",
                .fix = "list the runs with: meshwright runs"});
}

RunId run_id(std::int64_t number) {
  return "run-" + std::to_string(number);
}

std::int64_t run_number(std::string_view id) {
  if (!id.starts_with("run-")) return 0;
  return std::max(parse_number<std::int64_t>(id.substr(4)).value_or(0), std::int64_t{0});
}

StoreRows::StoreRows(Database& db)
    : db_(db),
      select_(db, std::string("SELECT ") + kColumns + " FROM runs WHERE id=?"),
      update_(db,
              "UPDATE runs SET state=?, source=?, steps_done=?, steps_total=?, train_loss=?, eval_loss=?, "
              "seconds=?, tokens=?, peak=?, error=? WHERE id=?") {}

std::optional<RunRow> StoreRows::find(std::int64_t run) {
  select_.reset();
  select_.bind(run);
  if (!select_.step()) return std::nullopt;
  RunRow found = read_row(select_);
  select_.reset();
  return found;
}

std::vector<RunRow> StoreRows::all(Trash trash) {
  SqlStatement s(db_, std::string("SELECT ") + kColumns + " FROM runs WHERE trash=? ORDER BY id DESC");
  s.bind(std::int64_t{trash == Trash::deleted});
  std::vector<RunRow> rows;
  while (s.step()) rows.push_back(read_row(s));
  return rows;
}

void StoreRows::write(std::int64_t run, const RunRow& r) {
  update_.reset();
  update_.bind(to_string(r.state)).bind(std::string_view(r.source));
  update_.bind(std::int64_t{r.steps_done}).bind(std::int64_t{r.steps_total});
  update_.bind(r.train_loss).bind(r.eval_loss).bind(r.seconds).bind(r.tokens).bind(r.peak.value);
  update_.bind(std::string_view(r.error)).bind(run).run();
}

namespace {

constexpr size_t kMostGaps = 200'000, kMostRequests = 20'000, kMostSamples = 2'000;

}  // namespace

formats::BenchPoint as_recorded(formats::BenchPoint point) {
  size_t gaps = 0;
  for (const auto& r : point.requests) gaps += r.gaps_ms.size();
  if (gaps > kMostGaps)
    for (auto& r : point.requests) r.gaps_ms.clear();
  if (point.requests.size() > kMostRequests) point.requests.clear();
  if (const size_t every = (point.timeline.size() + kMostSamples - 1) / kMostSamples; every > 1) {
    size_t kept = 0;
    for (size_t i = 0; i < point.timeline.size(); i += every) point.timeline[kept++] = point.timeline[i];
    point.timeline.resize(kept);
  }
  return point;
}

std::vector<formats::BenchPoint> points_of(const std::vector<event::ResultPoint>& points) {
  std::vector<formats::BenchPoint> all;
  for (const event::ResultPoint& p : points)
    if (p.kind == "sweep") all.push_back(formats::bench_point(p.values));
  return all;
}

}  // namespace mw::store
