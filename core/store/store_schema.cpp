// SPDX-License-Identifier: Apache-2.0
#include "core/store/store_schema.h"

#include <optional>
#include <string>

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

}  // namespace

void prepare_schema(Database& db) {
  if (db.integer("PRAGMA user_version") == kSchemaVersion && db.integer("PRAGMA application_id") == kApplicationId)
    return db.read_only() ? void() : db.exec(kCursors);
  std::optional<Transaction> transaction;  // one of several processes that open a new store creates it
  if (!db.read_only()) transaction.emplace(db);
  const std::int64_t version = db.integer("PRAGMA user_version");
  const std::int64_t application = db.integer("PRAGMA application_id");
  const bool fresh =
      transaction && version == 0 && application == 0 && db.integer("SELECT count(*) FROM sqlite_schema") == 0;
  if (fresh) {
    db.exec(kTables);
    db.exec(kCursors);
    db.exec(("PRAGMA user_version=" + std::to_string(kSchemaVersion)).c_str());
    db.exec(("PRAGMA application_id=" + std::to_string(kApplicationId)).c_str());
    transaction->commit();
    return;
  }
  if (application != kApplicationId)
    throw Error({.id = "STORE-NOT-A-DATABASE",
                 .message = "the run store is a database of another program",
                 .file = db.file().string(),
                 .found = "application id " + std::to_string(application),
                 .expected = "application id " + std::to_string(kApplicationId),
                 .fix = "move that file away, or choose another folder for the runs (--runs-dir or $MESHWRIGHT_RUNS)"});
  if (version > kSchemaVersion)
    throw Error({.id = "STORE-NEWER",
                 .message = "the run store was written by a newer Meshwright",
                 .file = db.file().string(),
                 .found = "schema " + std::to_string(version),
                 .expected = "schema " + std::to_string(kSchemaVersion) + " or older",
                 .fix = "update Meshwright, or choose another folder for the runs"});
}

}  // namespace mw::store
