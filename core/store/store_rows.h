// SPDX-License-Identifier: Apache-2.0
// The lines of the Runs table as SQLite keeps them, and the ids of runs as text and as number. Needs the database's
// lock.
#pragma once
#include <optional>
#include <vector>

#include "core/store/store.h"
#include "core/store/store_sqlite.h"

namespace mw::store {

RunId run_id(std::int64_t number);             // "run-12"
std::int64_t run_number(std::string_view id);  // 0 for anything that is no run id

class StoreRows {
 public:
  explicit StoreRows(Database& db);  // whose schema is there; it outlives this
  std::optional<RunRow> find(std::int64_t run);
  std::vector<RunRow> all(Trash trash);             // newest first
  void write(std::int64_t run, const RunRow& row);  // what events change: not name, tags, model, method, created

 private:
  Database& db_;
  Statement select_, update_;
};

}  // namespace mw::store
