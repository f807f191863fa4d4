// SPDX-License-Identifier: GPL-3.0-or-later
// `calibrate`: prints a calibration, keeps it only with --accept, and returns to the shipped one with --remove.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/base/files.h"
#include "core/base/json.h"
#include "tests/base/scratch.h"
#include "tests/cli/process.h"

namespace mw::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct CalibrateCommand : testing::Test {
  const Scratch scratch;
  const fs::path& folder = scratch.path();
  const fs::path kept = folder / "meshwright" / "hardware" / "calibration.json";

  CalibrateCommand() { setenv("XDG_CONFIG_HOME", folder.c_str(), 1); }
  ~CalibrateCommand() override { unsetenv("XDG_CONFIG_HOME"); }

  Json row(int batch, double value) const {
    return {{"id", "step " + std::to_string(batch)},
            {"use", "calibration"},
            {"value", value},
            {"unit", "s/step"},
            {"model", "gemma3-1b"},
            {"target", "v5e-1"},
            {"stack", "tunix"},
            {"mesh", {{"fsdp", 1}}},
            {"method", "lora"},
            {"batch", batch},
            {"max_len", 1024},
            {"source", "my own steps"}};
  }
  fs::path write(const Json& rows) const {
    std::ofstream(folder / "steps.json") << Json{{"rows", rows}}.dump(1);
    return folder / "steps.json";
  }
  // Step times that are `times` times those planned now.
  fs::path steps(double times) const {
    Json rows = Json::array({row(1, 1), row(2, 1), row(4, 1)});
    const Json now = answer({"calibrate", write(rows), "--json"});
    for (size_t i = 0; i < rows.size(); ++i)
      rows[i]["value"] = now["rows"][i]["predicted_before"].get<double>() * times;
    return write(rows);
  }
  static Json answer(const std::vector<std::string>& arguments) {
    const Result r = meshwright(arguments);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    return parse_json(r.out, "standard output");
  }
  static Json plan() {
    return answer({"plan", std::string(MW_RESOURCES) + "/examples/gemma3-1b-sizing-v5e.json", "--json", "--set",
                   "kind=train", "--set", "target.id=v5e-1", "--set", "mesh.fsdp=1", "--set", "mesh.tp=1", "--set",
                   "train.stack=tunix"});
  }
};

TEST_F(CalibrateCommand, WritesOnlyWhenAccepted) {
  const fs::path file = steps(1.4);
  const Json looked = answer({"calibrate", file, "--json"});
  EXPECT_FALSE(looked["accepted"].get<bool>());
  EXPECT_EQ(looked["rows"].size(), 3U);
  EXPECT_LT(looked["step_time_of_fitted_rows"]["held_out"]["mean"].get<double>(),
            looked["step_time_of_fitted_rows"]["before"]["mean"].get<double>());
  EXPECT_FALSE(fs::exists(folder / "meshwright"));
  const double before = plan()["step"]["seconds"].get<double>();
  const Json accepted = answer({"calibrate", file, "--accept", "--json"});
  EXPECT_TRUE(accepted["accepted"].get<bool>());
  EXPECT_EQ(accepted["file"], kept.string());
  const Json after = plan();
  EXPECT_GT(after["step"]["seconds"].get<double>(), before * 1.05);
  EXPECT_THAT(after["sources"].dump(), HasSubstr("calibrated by you, "));
  EXPECT_THAT(after["sources"].dump(), HasSubstr("steps.json"));
  const Json removed = answer({"calibrate", "--remove", "--json"});
  EXPECT_TRUE(removed["removed"].get<bool>());
  EXPECT_FALSE(fs::exists(kept));
  EXPECT_DOUBLE_EQ(plan()["step"]["seconds"].get<double>(), before);
}

TEST_F(CalibrateCommand, PrintsCurrentHeldOutAndFittedErrors) {
  const Result r = meshwright({"calibrate", steps(1.4)});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  for (const char* text : {"step 4", "held out", "matmul", "the program's held-out rows", "nothing is written"})
    EXPECT_THAT(r.out, HasSubstr(text));
}

TEST_F(CalibrateCommand, BadRowIsBadInputAndWritesNothing) {
  Json rows = Json::array({row(1, 0.5), row(2, 0.9)});
  rows[1]["target"] = "v5e-9999";
  const Result r = meshwright({"calibrate", write(rows), "--accept"});
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.err, HasSubstr("steps.json, rows.step 2.target"));
  EXPECT_THAT(r.out, HasSubstr("nothing is written"));
  EXPECT_FALSE(fs::exists(kept));
}

TEST_F(CalibrateCommand, NeverFitsHeldOutRows) {
  const Json shipped = answer({"calibrate", std::string(MW_RESOURCES) + "/hardware/measurements.json", "--json"});
  // A row of the file with several values counts as several rows: "id, unit".
  std::set<std::string> fitted, marked, single_users;
  const Json file = parse_json(read_file(std::string(MW_RESOURCES) + "/hardware/measurements.json"), "measurements");
  for (const Json& r : file["rows"]) {
    const auto id = r["id"].get<std::string>();
    if (r["use"] == "calibration") marked.insert(id);
    if (r.value("concurrency", 0) == 1) single_users.insert(id);
  }
  for (const Json& r : shipped["rows"]) {
    const auto id = r["id"].get<std::string>();
    const std::string row = id.substr(0, id.find(", "));
    if (r["use"] == "calibration") fitted.insert(row);
    // Memory and the TTFT of several users give intervals, but nothing is fitted to them.
    const bool gives_intervals =
        id.find(", GiB") != std::string::npos || (id.find("TTFT") != std::string::npos && !single_users.contains(row));
    EXPECT_EQ(r["use"] == "calibration" && !gives_intervals, r.contains("error_held_out")) << r["id"];
  }
  EXPECT_EQ(fitted, marked);
  // Those of servers are fitted to the simulator, and by this command to the steady state.
  const std::set<std::string> servers{"vllm-tpu", "vllm-gpu", "tensorrt-llm", "sglang"};
  for (const Json& e : shipped["efficiencies"]) {
    if (servers.contains(e["stack"].get<std::string>())) continue;
    EXPECT_NEAR(e["after"].get<double>() / e["before"].get<double>(), 1, 5e-3) << e;
  }
}

TEST_F(CalibrateCommand, RejectsBadUsage) {
  const std::string file = steps(1.4);
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"calibrate"},
                                                    {"calibrate", "missing.json"},
                                                    {"calibrate", file, "--remove"},
                                                    {"calibrate", file, "--accept", "--remove"},
                                                    {"calibrate", file, "--fit", "matmull"},
                                                    {"calibrate", file, "--fit", "runtime_bytes"},
                                                    {"calibrate", "--run", "run-77", "--runs-dir", folder / "runs"}}) {
    const Result r = meshwright(arguments);
    EXPECT_EQ(r.exit_code, 2) << r.out;
    EXPECT_FALSE(r.err.empty());
  }
  EXPECT_FALSE(fs::exists(kept));
}

}  // namespace
}  // namespace mw::test
