// SPDX-License-Identifier: GPL-3.0-or-later
// Event lines kept in a file, from wherever they were printed: a run of the store like any other import.
#include "core/import/import_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/files.h"
#include "core/compare/comparison.h"
#include "tests/store/store_fixture.h"

namespace mw::importing {
namespace {
namespace fs = std::filesystem;
using testing::HasSubstr;

struct EventLines : testing::Test {
  test::Scratch folder;
  fs::path write(const std::string& text) const {
    const fs::path file = folder.path() / "lines.jsonl";
    write_file_atomically(file, text);
    return file;
  }
};

constexpr const char* kStarted =
    R"({"event":"started","info":{"name":"A test","software":"tunix","steps":2,"source":"measured","run":"run-7",)"
    R"("experiment":{"schema":1,"name":"Small","lora":{"rank":4},"train":{"steps":2}}},"time_s":0.5})"
    "\n";
constexpr const char* kSteps =
    "{\"event\":\"metric\",\"name\":\"train/loss\",\"step\":1,\"value\":3,\"time_s\":2}\n"
    "Warning: an allocator said something\n"
    "{\"event\":\"metric\",\"name\":\"train/loss\",\"step\":2,\"value\":2.5,\"time_s\":1}\n";
constexpr const char* kEnd =
    "{\"event\":\"finished\",\"state\":\"done\",\"steps\":2,\"tokens\":64,\"seconds\":3,\"time_s\":3}\n";

TEST_F(EventLines, BecomeARunOfTheStoreWithItsSource) {
  const fs::path file = write(std::string(kStarted) + kSteps + kEnd);
  EXPECT_TRUE(is_event_lines(file));
  const auto imported = import_files(folder.path() / "runs", {file});
  ASSERT_EQ(imported.size(), 1u);
  EXPECT_EQ(imported[0].name, "A test, tunix");
  EXPECT_EQ(imported[0].tool, "tunix");
  EXPECT_EQ(imported[0].values, 2u);
  const store::Store store(folder.path() / "runs");
  const store::RunRow row = *store.find(imported[0].run);
  EXPECT_EQ(row.source, "imported") << "whatever the file says of itself";
  EXPECT_EQ(row.state, RunState::done);
  EXPECT_EQ(row.steps_done, 2);
  EXPECT_EQ(store.experiment(row.id).value("lora.rank").get<long long>(), 4);
  const compare::ComparedRun column = compare::compared(store, row.id);
  EXPECT_EQ(column.provenance, formats::ResultProvenance::imported);
  EXPECT_TRUE(column.has_all_settings);
  EXPECT_EQ(column.training->metric("train/loss")->raw.back().y, 2.5);
  double last = 0;
  for (const store::StoredEvent& e : store.events(row.id)) {
    EXPECT_GE(e.event.time_s, last);  // as a run of ours never goes back
    last = e.event.time_s;
  }
}

TEST_F(EventLines, WithoutAnEndBecomeAFailedRun) {
  const EventRecord record = read_event_lines(write(std::string(kStarted) + kSteps + R"({"event":"metric","na)"));
  ASSERT_TRUE(std::holds_alternative<event::Finished>(record.events.back().body));
  const auto& end = std::get<event::Finished>(record.events.back().body);
  EXPECT_EQ(end.state, RunState::failed);
  EXPECT_EQ(end.steps, 2);
  EXPECT_THAT(end.error, HasSubstr("ends before"));
}

TEST_F(EventLines, WithoutADocumentSetOnlyKnownKeys) {
  store::Store store(folder.path() / "runs");
  for (const char* info :
       {R"({"name":"x"})", R"({"name":"x","experiment":{"schema":99}})", R"({"experiment":"words"})"}) {
    const std::string started = std::string(R"({"event":"started","info":)") + info + "}\n";
    const store::RunId run = import_events(store, read_event_lines(write(started + kSteps + kEnd)));
    EXPECT_FALSE(compare::compared(store, run).has_all_settings) << info;
  }
}

TEST_F(EventLines, WithoutARunOrWithTwoRunsAreRejectedBeforeTheStoreOpens) {
  const std::string whole = std::string(kStarted) + kSteps + kEnd;
  for (const std::string& bad : {std::string(kStarted), std::string(kStarted) + kEnd, whole + whole})
    EXPECT_THROW(import_files(folder.path() / "runs", {write(bad)}), Error);
  EXPECT_FALSE(fs::exists(folder.path() / "runs"));
  for (const char* other : {"", "\n", "{}\n", "{\"event\":\"metric\"}\n", "step,loss\n1,2\n", "\xff\xfe{"})
    EXPECT_FALSE(is_event_lines(write(other))) << other;
  EXPECT_FALSE(is_event_lines(folder.path() / "nothing"));
  EXPECT_FALSE(is_event_lines(folder.path()));
}

}  // namespace
}  // namespace mw::importing
