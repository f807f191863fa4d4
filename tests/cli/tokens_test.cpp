// SPDX-License-Identifier: GPL-3.0-or-later
// `tokens`: one row of the data, with its losses under the base model and a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/files.h"
#include "tests/cli/process.h"
#include "tests/cli/project.h"

namespace mw::test {
namespace {

using testing::HasSubstr;

Json answer(const Project& p, std::vector<std::string> more) {
  const Result r = meshwright(p.command("tokens", std::move(more)));
  EXPECT_EQ(r.exit_code, 0) << r.err;
  return parse_json(r.out, "standard output");
}

TEST(TokensCommand, ShowsARowWithTheLossesOfBaseAndRun) {
  const Project p;
  const Json plain = answer(p, {"--row", "2"});
  EXPECT_EQ(plain["row"], 2);
  ASSERT_GT(plain["tokens"].size(), 3U);
  EXPECT_FALSE(plain["tokens"][1].contains("base_nll"));
  EXPECT_EQ(plain["tokens"][2]["sees_from"]["global"], 0);

  const Json base = answer(p, {"--row", "2", "--losses"});
  EXPECT_TRUE(base["tokens"][0]["base_nll"].is_null());
  EXPECT_GT(base["tokens"][1]["base_nll"].get<double>(), 0);
  EXPECT_FALSE(base["tokens"][1].contains("nll"));

  ASSERT_EQ(meshwright(p.command("run")).exit_code, 0);
  const Json both = answer(p, {"--row", "2", "--run", "run-1"});
  double before = 0, after = 0;
  for (const Json& t : both["tokens"])
    if (t["loss"].get<bool>() && t["nll"].is_number())
      before += t["base_nll"].get<double>(), after += t["nll"].get<double>();
  EXPECT_LT(after, before) << "20 steps of training lower the loss of a training row";
}

TEST(TokensCommand, RefusesWhatIsNotThere) {
  const Project p;
  const Result row = meshwright(p.command("tokens", {"--row", "100000"}));
  EXPECT_EQ(row.exit_code, 2);
  EXPECT_THAT(row.err, HasSubstr("no such row"));
  const Result run = meshwright(p.command("tokens", {"--run", "run-7"}));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("no checkpoint"));
  const Result data = meshwright(p.command("tokens", {"--set", "data.path=", "--set", "kind=size"}));
  EXPECT_EQ(data.exit_code, 2) << data.out;
}

}  // namespace
}  // namespace mw::test
