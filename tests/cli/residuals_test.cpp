// SPDX-License-Identifier: GPL-3.0-or-later
// `residuals` of a run that was trained here: the steps are split, memory is as predicted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/files.h"
#include "tests/cli/process.h"
#include "tests/cli/project.h"

namespace mw::test {
namespace {

using testing::HasSubstr;
using Texts = std::vector<std::string>;

Json row(const Json& residuals, const std::string& key) {
  for (const Json& one : residuals["rows"])
    if (one["key"] == key) return one;
  return nullptr;
}

TEST(ResidualsCommand, SplitsTheStepOfATrainedRun) {
  const Project p;
  const Result run = meshwright(p.command("run", {"--set", "train.steps=6"}));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Texts words{"residuals", "latest", "--runs-dir", p.runs.string()};
  Texts json = words;
  json.push_back("--json");
  const Result r = meshwright(json);
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const Json j = parse_json(r.out, "standard output");
  double parts = 0;
  for (const char* key : {"step.compute", "step.memory", "step.host"}) {
    ASSERT_TRUE(row(j, key)["measured"].is_number()) << key << r.out;
    parts += row(j, key)["measured"].get<double>();
  }
  const double ratio = parts / row(j, "step.seconds")["measured"].get<double>();
  EXPECT_GT(ratio, 0.5) << r.out;
  EXPECT_LT(ratio, 1.05) << r.out;
  EXPECT_GT(row(j, "step.compute")["measured"].get<double>(), 0);
  EXPECT_EQ(row(j, "memory.total")["difference"].get<double>(), 0) << r.out;
  // `calibrate` shows the same error of the run, fits nothing to it and accepts nothing.
  const Result shown = meshwright({"calibrate", "--run", "run-1", "--runs-dir", p.runs.string(), "--json"});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  const Json calibrated = parse_json(shown.out, "standard output");
  ASSERT_EQ(calibrated["rows"].size(), 1U);
  EXPECT_TRUE(calibrated["efficiencies"].empty());
  const Json step = row(j, "step.seconds");
  const double speed = step["measured"].get<double>() / step["predicted"].get<double>();
  EXPECT_NEAR(calibrated["rows"][0]["predicted_before"].get<double>() / calibrated["rows"][0]["measured"].get<double>(),
              speed, 0.1 * speed)
      << shown.out;
  const Result accepted = meshwright({"calibrate", "--run", "run-1", "--accept", "--runs-dir", p.runs.string()});
  EXPECT_EQ(accepted.exit_code, 2);
  EXPECT_THAT(accepted.err, HasSubstr("bench --save"));
}

TEST(ResidualsCommand, OnAMeshCollectivesAreATerm) {
  const Project p;
  ASSERT_EQ(meshwright(p.command("run", {"--set", "train.steps=4", "--set", "mesh.fsdp=2"})).exit_code, 0);
  const Result r = meshwright({"residuals", "run-1", "--runs-dir", p.runs.string(), "--json"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const Json j = parse_json(r.out, "standard output");
  EXPECT_GT(row(j, "step.collectives")["measured"].get<double>(), 0) << r.out;
  EXPECT_TRUE(row(j, "step.collectives")["predicted"].is_number());
  EXPECT_TRUE(row(j, "step.queue")["measured"].is_number());
}

TEST(ResidualsCommand, RefusesAnUnknownRun) {
  const Project p;
  const Result r = meshwright({"residuals", "run-9", "--runs-dir", p.runs.string()});
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.err, HasSubstr("run-9"));
}

}  // namespace
}  // namespace mw::test
