// SPDX-License-Identifier: GPL-3.0-or-later
// `inspect` of datasets and of files that other programs write during training: Orbax checkpoints and logs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "core/base/files.h"
#include "core/base/json.h"
#include "tests/base/scratch.h"
#include "tests/cli/process.h"

namespace mw::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

Json inspected(const fs::path& path) {
  const Result r = meshwright({"inspect", path.string(), "--json"});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  return r.exit_code == 0 ? parse_json(r.out, "inspect") : Json();
}

fs::path fixture(const std::string& name) {
  return fs::path(MW_FIXTURES) / name;
}

const Json* named(const Json& list, const std::string& name) {
  for (const Json& one : list)
    if (one["name"] == name) return &one;
  return nullptr;
}

TEST(Inspect, OrbaxRootListsStepsAndArraysOfTheLastStep) {
  const Json found = inspected(fixture("orbax/steps"));
  EXPECT_EQ(found["kind"], "orbax");
  EXPECT_EQ(found["step"], 3);
  ASSERT_EQ(found["steps"].size(), 2u);
  EXPECT_EQ(found["steps"][0]["step"], 1);
  EXPECT_EQ(found["steps"][1]["items"], Json::array({"model_params"}));
  EXPECT_EQ(found["items"][0]["layout"], "OCDBT");
  const Json made = read_json(fixture("orbax/made.json"));
  ASSERT_EQ(found["tensors"].size(), made["arrays"].size());
  std::int64_t parameters = 0;
  for (const auto& [name, spec] : made["arrays"].items()) {
    const Json* tensor = named(found["tensors"], "model_params/" + name);
    ASSERT_NE(tensor, nullptr) << name;
    EXPECT_EQ((*tensor)["shape"], spec["shape"]);
    std::int64_t n = 1;
    for (const Json& size : spec["shape"]) n *= size.get<std::int64_t>();
    EXPECT_EQ((*tensor)["bytes"], n * (spec["dtype"] == "bfloat16" ? 2 : 4)) << name;
    parameters += n;
  }
  EXPECT_EQ(found["parameters"], parameters);
}

TEST(Inspect, OrbaxItemWithoutDatabaseIsMarked) {
  const Json found = inspected(fixture("orbax/files_zarr3"));
  EXPECT_EQ(found["items"][0]["layout"], "a folder an array");
  EXPECT_EQ((*named(found["tensors"], "zeros"))["zarr"], 3);
  const Result text = meshwright({"inspect", fixture("orbax/files_zarr3").string()});
  EXPECT_THAT(text.out, HasSubstr("kind: orbax"));
  EXPECT_THAT(text.out, HasSubstr("zeros"));
}

TEST(Inspect, ListsSeriesOfEveryKindOfLog) {
  for (const auto& [path, tool] : {std::pair("logs/tensorboardx", "TensorBoard"), std::pair("logs/wandb", "W&B"),
                                   std::pair("logs/transformers", "transformers"),
                                   std::pair("logs/transformers/checkpoint-9/trainer_state.json", "transformers")}) {
    const Json found = inspected(fixture(path));
    EXPECT_EQ(found["kind"], "log") << path;
    EXPECT_EQ(found["tool"], tool);
    const Json* loss = named(found["series"], "train/loss");
    ASSERT_NE(loss, nullptr) << path;
    EXPECT_EQ((*loss)["points"], 9);
    EXPECT_EQ((*loss)["first_step"], 1);
    EXPECT_EQ((*loss)["last_step"], 9);
    EXPECT_NEAR((*loss)["last"].get<double>(), 3.0 / 9, 1e-6);
    EXPECT_NEAR((*loss)["most"].get<double>(), 3.0, 1e-6);
  }
  const Result text = meshwright({"inspect", fixture("logs/wandb").string()});
  EXPECT_THAT(text.out, HasSubstr("9 values, steps 1 to 9, last 0.333"));
}

TEST(Models, ListsFoldersWithTheirPredictionAndWhatIsSkipped) {
  const Scratch folder;
  fs::create_directories(folder / "mine/broken");
  fs::copy(fs::path(MW_RESOURCES) / "base-model", folder / "mine/small");
  folder.put("mine/broken/config.json", "{\"model_type\": \"gemma3_text\"");
  const std::vector<std::string> command{"models", "--folder", (folder / "mine").string(), "--runs-dir",
                                         (folder / "runs").string()};
  std::vector<std::string> json = command;
  json.push_back("--json");
  const Result r = meshwright(json);
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const Json found = parse_json(r.out, "models");
  const auto small = std::find_if(found["models"].begin(), found["models"].end(), [&](const Json& m) {
    return m["path"].get<std::string>() == (folder / "mine/small").string();
  });
  ASSERT_NE(small, found["models"].end()) << r.out;
  EXPECT_EQ((*small)["kind"], "model");
  EXPECT_EQ((*small)["place"], "folder");
  const Json& predicted = (*small)["predicted"];
  EXPECT_EQ(predicted["fits"], true) << small->dump();
  EXPECT_LE(predicted["tokens_per_second_low"], predicted["tokens_per_second"]);
  EXPECT_LE(predicted["tokens_per_second"], predicted["tokens_per_second_high"]);
  const bool names_broken = std::any_of(found["skipped"].begin(), found["skipped"].end(), [&](const Json& s) {
    return s["path"].get<std::string>().find("mine/broken") != std::string::npos;
  });
  EXPECT_TRUE(names_broken) << r.out;
  const Result text = meshwright(command);
  EXPECT_THAT(text.out, HasSubstr((folder / "mine/small").string()));
  EXPECT_THAT(text.err, HasSubstr("mine/broken"));
}

TEST(Inspect, CountsRepeatedRowsAndEvaluationRowsInTraining) {
  const Scratch folder;
  folder.put("a-1.csv", "prompt,completion\na,b\nc,d\n");
  folder.put("a-2.csv", "prompt,completion\na,b\n");
  const std::string eval = folder.put("eval.csv", "prompt,completion\nc,d\nc,e\nf,g\n").string();
  const Json alone = inspected(folder / "a-*.csv");
  EXPECT_EQ(alone["rows"], 3);
  EXPECT_EQ(alone["repeats"], Json::parse(R"([{"row": 3, "same_as": 1}])"));
  EXPECT_FALSE(alone.contains("evaluation"));
  const Result r = meshwright({"inspect", (folder / "a-*.csv").string(), "--eval", eval, "--json"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const Json found = parse_json(r.out, "inspect")["evaluation"];
  EXPECT_EQ(found["rows"], 3);
  EXPECT_EQ(found["in_training"], 1);
  EXPECT_EQ(found["rows_in_training"], Json::parse(R"([{"row": 4, "same_as": 2}])"));
  EXPECT_EQ(found["rows_with_prompts_in_training"], Json::parse(R"([{"row": 5, "same_as": 2}])"));
}

TEST(Inspect, RejectsUnknownFolderAndDamagedCheckpoint) {
  const Scratch folder;
  fs::create_directories(folder / "empty");
  const Result nothing = meshwright({"inspect", (folder / "empty").string()});
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("the folder has no known contents"));
  fs::copy(fixture("orbax/ocdbt"), folder / "7", fs::copy_options::recursive);
  std::string manifest = read_file(folder / "7/manifest.ocdbt");
  manifest[30] = static_cast<char>(manifest[30] ^ 1);
  write_file_atomically(folder / "7/manifest.ocdbt", manifest);
  const Result damaged = meshwright({"inspect", (folder / "7").string(), "--json"});
  EXPECT_EQ(damaged.exit_code, 2);
  EXPECT_THAT(damaged.err, HasSubstr("checksum"));
}

}  // namespace
}  // namespace mw::test
