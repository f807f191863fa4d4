// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/jobs/merge_adapter.h"

#include <gtest/gtest.h>

#include "core/base/files.h"
#include "tests/formats/test_files.h"

namespace mw::jobs {
namespace {

namespace fs = std::filesystem;

MergeRequest request(const fs::path& out) {
  const fs::path fixtures = MW_FIXTURES;
  return {fixtures / "gemma3_tiny", fixtures / "orbax" / "tunix_gemma3_tiny", out, 6.0f};
}

TEST(MergeAdapter, ChecksByPartsAndWritesTheVerdict) {
  formats::Scratch folder;
  long last = -1, all = 0;
  const MergeResult result = merge_adapter(
      request(folder / "merged"), [](const std::string&) {}, [](long, long) {},
      [&](long done, long of) {
        EXPECT_GT(done, last);
        last = done, all = of;
      },
      {});
  EXPECT_GT(all, 6) << "three models, each by layers and pieces of the head";
  EXPECT_EQ(last, all);
  EXPECT_EQ(result.parity.verdict, train::Parity::Verdict::passed) << result.parity.reason;
  EXPECT_EQ(read_json(folder / "merged/merge.json"), result.answer);
}

TEST(MergeAdapter, AStopDuringTheCheckIsRecorded) {
  formats::Scratch folder;
  std::stop_source stop;
  const MergeResult result = merge_adapter(
      request(folder / "merged"), [](const std::string&) {}, [](long, long) {},
      [&](long done, long) {
        if (done > 1) stop.request_stop();
      },
      stop.get_token());
  EXPECT_EQ(result.parity.verdict, train::Parity::Verdict::not_run);
  EXPECT_EQ(read_json(folder / "merged/merge.json")["parity"]["reason"], "it was stopped");
  EXPECT_TRUE(fs::exists(folder / "merged/config.json"));
}

}  // namespace
}  // namespace mw::jobs
