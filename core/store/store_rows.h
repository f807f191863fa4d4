// SPDX-License-Identifier: Apache-2.0
// The schema of the run store and the rows of its runs table; converts run ids between text and number. Callers hold
// the lock of the database.
#pragma once
#include <optional>
#include <vector>

#include "core/store/store.h"
#include "core/store/store_sqlite.h"

namespace mw::store {

// Creates the tables if the database is empty and writable. Throws STORE-NOT-A-DATABASE for another program's database
// and STORE-NEWER for a newer schema.
void prepare_schema(Database& db);

Error unknown_run(const RunId& run, const std::filesystem::path& folder);  // RUN-UNKNOWN

RunId run_id(std::int64_t number);             // "run-12"
std::int64_t run_number(std::string_view id);  // 0 if the text is not a run id

class StoreRows {
 public:
  explicit StoreRows(Database& db);  // the schema must exist; `db` must outlive this object
  std::optional<RunRow> find(std::int64_t run);
  std::vector<RunRow> all(Trash trash);             // newest first
  void write(std::int64_t run, const RunRow& row);  // not name, tags, model, method, created: events do not change them

 private:
  Database& db_;
  Statement select_, update_;
};

}  // namespace mw::store
