// SPDX-License-Identifier: Apache-2.0
#include "core/import/import_files.h"

#include <gmock/gmock.h>

#include "core/base/files.h"
#include "core/compare/comparison.h"
#include "tests/store/store_fixture.h"

namespace mw::importing {
namespace {

namespace fs = std::filesystem;

fs::path fixture(const char* name) {
  return fs::path(MW_FIXTURES) / "bench" / name;
}

TEST(ImportResults, SetsRoundTripAsFinishedRuns) {
  const test::Scratch folder;
  store::Store store(folder.path());
  const auto ids = import_sets(store, formats::read_bench(fixture("vllm_appended.json")));
  ASSERT_EQ(ids.size(), 2u);
  const store::RunRow row = *store.find(ids[0]);
  EXPECT_EQ(row.state, RunState::done);
  EXPECT_EQ(row.source, "imported");
  EXPECT_EQ(row.method, "sweep");
  EXPECT_EQ(row.model, "google/gemma-3-1b-it");
  EXPECT_EQ(row.steps_done, 3);
  EXPECT_GT(row.tokens, 0);
  const compare::ComparedRun run = compare::compared(store, ids[0]);
  ASSERT_TRUE(run.sweep);
  EXPECT_EQ(run.provenance, formats::ResultProvenance::imported);
  EXPECT_EQ(run.sweep->ignored, 0u);
  EXPECT_EQ(run.sweep->set.conditions.at("tp"), "1");
  const auto read = formats::read_bench(fixture("vllm_appended.json")).at(0);
  ASSERT_EQ(run.sweep->set.points.size(), read.points.size());
  for (size_t i = 0; i < read.points.size(); ++i)
    EXPECT_EQ(to_json(run.sweep->set.points[i], formats::Detail::requests),
              to_json(read.points[i], formats::Detail::requests));
  const compare::Comparison both = compare::compare({run, compare::compared(store, ids[1])});
  EXPECT_FALSE(both.rows.empty());
  EXPECT_THROW(compare::compared(store, "run-99"), Error);
}

TEST(ImportResults, PointsKeepTheirRequests) {
  const test::Scratch folder;
  store::Store store(folder.path());
  const auto ids = import_sets(store, formats::read_bench(fixture("guidellm_failing.json")));
  const compare::ComparedRun run = compare::compared(store, ids.at(0));
  EXPECT_EQ(run.sweep->set.points.at(0).requests.size(), 6u);
  EXPECT_EQ(run.sweep->set.definitions.tpot, formats::Definitions::Tpot::with_first);
}

TEST(ImportResults, MeasuredSetsAreImportedAndPredictionsStayPredicted) {
  const test::Scratch folder;
  formats::BenchSet set{
      .name = "a", .provenance = formats::ResultProvenance::measured, .points = {formats::BenchPoint{}}};
  store::Store store(folder.path());
  const auto provenance = [&] {
    return compare::compared(store, import_sets(store, {set}).at(0)).sweep->set.provenance;
  };
  EXPECT_EQ(provenance(), formats::ResultProvenance::imported);
  set.provenance = formats::ResultProvenance::predicted;
  EXPECT_EQ(provenance(), formats::ResultProvenance::predicted);
}

TEST(ImportResults, ABadFileDoesNotChangeTheStore) {
  const test::Scratch folder;
  store::Store store(folder.path());
  write_file_atomically(folder.path() / "bad.json", "{\"output_throughput\": 1, \"completed\": -1}");
  EXPECT_THROW(import_sets(store, formats::read_bench(folder.path() / "bad.json")), Error);
  EXPECT_TRUE(store.list().empty());
}

}  // namespace
}  // namespace mw::importing
