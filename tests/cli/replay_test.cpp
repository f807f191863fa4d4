// SPDX-License-Identifier: GPL-3.0-or-later
// `replay` of a recorded run or of a file of requests on another target.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/base/files.h"
#include "tests/cli/process.h"
#include "tests/cli/project.h"

namespace mw::test {
namespace {

using testing::HasSubstr;
using Texts = std::vector<std::string>;

class ReplayCommand : public testing::Test {
 protected:
  Project p;
  std::string workload = (p.folder / "requests.csv").string();
  ReplayCommand() {
    std::ofstream out(workload);
    out << "arrival_s,prompt_tokens,output_tokens\n";
    for (int i = 0; i < 12; ++i) out << 0.1 * i << ',' << 100 + 30 * i << ",16\n";
  }
  Result replay(Texts words) const {
    words.insert(words.begin(), "replay");
    for (const std::string& word : {std::string("--runs-dir"), p.runs.string()}) words.push_back(word);
    return meshwright(words);
  }
};

TEST_F(ReplayCommand, SimulatesAnotherTargetAndStoresTheResult) {
  const std::string out = (p.folder / "predicted.json").string();
  const Texts model{"--set", "model.id=gemma3-4b", "--json"};  // its 8 heads are split over tp 8
  const auto on = [&](Texts more) {
    more.insert(more.begin(), workload);
    more.insert(more.end(), model.begin(), model.end());
    return replay(more);
  };
  const Result fast = on({"--target", "v6e-8", "--set", "mesh.tp=8", "--out", out});
  ASSERT_EQ(fast.exit_code, 0) << fast.err;
  const Json a = parse_json(fast.out, "standard output");
  ASSERT_EQ(a["points"].size(), 1u);
  EXPECT_EQ(a["points"][0]["completed"], 12);
  EXPECT_THAT(a["name"].get<std::string>(), HasSubstr("v6e-8"));
  const Result slow = on({"--target", "v5e-4", "--set", "mesh.tp=4", "--kv-dtype", "fp8", "--prefix-cache", "off"});
  ASSERT_EQ(slow.exit_code, 0) << slow.err;
  const Json b = parse_json(slow.out, "standard output");
  EXPECT_GT(b["points"][0]["median_tpot_ms"].get<double>(), a["points"][0]["median_tpot_ms"].get<double>());
  EXPECT_THAT(b["name"].get<std::string>(), HasSubstr("KV fp8"));

  // compare and replay accept the run and the file.
  const Result compared = meshwright({"compare", a["run"], b["run"], "--runs-dir", p.runs.string(), "--json"});
  ASSERT_EQ(compared.exit_code, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("median_tpot_ms"));
  const Result again = replay({a["run"], "--json"}), from_file = replay({out, "--json"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  ASSERT_EQ(from_file.exit_code, 0) << from_file.err;
  EXPECT_EQ(parse_json(again.out, "")["points"][0]["median_tpot_ms"], a["points"][0]["median_tpot_ms"]);
}

TEST_F(ReplayCommand, PrintsRecordedBesidePredicted) {
  const Result r = replay(
      {workload, p.experiment.string(), "--set", "model.id=gemma3-1b", "--set", "model.path=", "--target", "v5e-1"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  for (const char* text : {"recorded", "predicted", "TTFT p50", "v5e-1"}) EXPECT_THAT(r.out, HasSubstr(text));
}

TEST_F(ReplayCommand, RejectsBadInputWithoutCreatingARun) {
  EXPECT_EQ(replay({"run-99"}).exit_code, 2);
  const Result unknown = replay({workload});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("model.id"));
  const Result target = replay({workload, "--set", "model.id=gemma3-1b", "--target", "v9-1"});
  EXPECT_EQ(target.exit_code, 2);
  EXPECT_THAT(target.err, HasSubstr("v9-1"));
  EXPECT_EQ(replay({workload, "--set", "model.id=gemma3-1b", "--target", "v5e-1", "--kv-dtype", "fp9"}).exit_code, 2);
  EXPECT_EQ(replay({workload, "--prefix-cache", "maybe"}).exit_code, 2);
  std::ofstream(p.folder / "broken.csv") << "arrival_s,prompt_tokens\n0,1\n";
  EXPECT_EQ(replay({(p.folder / "broken.csv").string()}).exit_code, 2);
  const Result runs = meshwright({"runs", "--runs-dir", p.runs.string(), "--json"});
  EXPECT_EQ(parse_json(runs.out, "runs")["rows"].size(), 0u);
}

}  // namespace
}  // namespace mw::test
