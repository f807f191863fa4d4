// SPDX-License-Identifier: Apache-2.0
// The schema of the run store and the rows of its runs table; converts run ids between text and number. Callers hold
// the lock of the database.
#pragma once
#include <optional>
#include <vector>

#include "core/base/event.h"
#include "core/formats/results/bench_result.h"
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
  SqlStatement select_, update_;
};

// Converts the points of a sweep to and from the stored event::ResultPoint of kind "sweep". Thread-safe.

// Limits the size of the record: drops first the inter-token times, then the per-request results, and thins the
// timeline to 2,000 samples.
formats::BenchPoint as_recorded(formats::BenchPoint point);

// Throws Error if an event is not a valid point of a sweep.
std::vector<formats::BenchPoint> points_of(const std::vector<event::ResultPoint>& points);

}  // namespace mw::store
