// SPDX-License-Identifier: GPL-3.0-or-later
// Planning-only models can be inspected and planned, but not run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/files.h"
#include "tests/cli/process.h"
#include "tests/cli/project.h"

namespace mw::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

using Texts = std::vector<std::string>;

Texts of_catalogue(const std::string& id, Texts more = {}) {
  Texts sets{"--set", "model.path=", "--set", "model.id=" + id};
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

TEST(PlanningModels, ArePlannedWithANote) {
  const Project p;
  for (const char* id : {"llama2-70b", "llama3.2-3b", "qwen3-32b"}) {
    const Result r = meshwright(p.command("plan", of_catalogue(id, {"--set", "train.dtype=bf16"})));
    ASSERT_EQ(r.exit_code, 0) << r.err;
    const Json plan = parse_json(r.out, "plan");
    EXPECT_GT(plan["devices"][0]["memory"]["weights"], 6'000'000'000) << id;
    bool noted = false;
    for (const Json& d : plan["diagnostics"])
      noted = noted || (d["id"] == "PLANNING-ONLY" && d["severity"] == "warning");
    EXPECT_TRUE(noted) << id;
  }
}

TEST(PlanningModels, AreInspectedAndPlannedFromConfigJson) {
  const Project p;
  const fs::path file = p.folder / "tiny-llama" / "config.json";
  fs::create_directories(file.parent_path());
  write_file_atomically(file, R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000})");
  const auto parameters = 2 * 1000 * 64 + 64 + 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128 + 2 * 64);
  for (const fs::path& path : {file, file.parent_path()}) {
    const Result r = meshwright({"inspect", path.string(), "--json"});
    ASSERT_EQ(r.exit_code, 0) << r.err;
    const Json found = parse_json(r.out, "inspect");
    EXPECT_EQ(found["parameters"], parameters);
    EXPECT_EQ(found["planning_only"], true);
    EXPECT_EQ(found["weights"], "absent");
    const Result plan = meshwright(p.command("plan", {"--set", "model.path=" + path.string()}));
    ASSERT_EQ(plan.exit_code, 0) << plan.err;
    EXPECT_GE(parse_json(plan.out, "plan")["devices"][0]["memory"]["weights"], parameters * 4);
  }
}

TEST(PlanningModels, AreRejectedBeforeCreatingARun) {
  const Project p;
  const auto refused = [](const Result& r) {
    EXPECT_EQ(r.exit_code, 2);
    EXPECT_THAT(r.err, AllOf(HasSubstr("planning only"), HasSubstr("the engine runs Gemma")));
  };
  refused(meshwright(p.command("run", of_catalogue("llama3.1-8b"))));
  refused(meshwright(p.command("run", of_catalogue("qwen3-32b", {"--set", "model.init=random"}))));
  refused(meshwright(p.command("size", of_catalogue("llama2-7b", {"--set", "model.init=random"}))));
  refused(meshwright(p.command("run", of_catalogue("gemma3n-e4b"))));
  refused(meshwright(p.command("generate", of_catalogue("llama2-7b", {"--prompt", "Hello"}))));
  write_file_atomically(p.model / "config.json", R"({"model_type": "qwen3", "hidden_size": 64, "intermediate_size": 128,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000})");
  refused(meshwright(p.command("run")));
  refused(meshwright(p.command("generate", {"--prompt", "Hello"})));
  refused(meshwright(p.command("size")));
  EXPECT_FALSE(fs::exists(p.runs / "run-1"));
}

}  // namespace
}  // namespace mw::test
