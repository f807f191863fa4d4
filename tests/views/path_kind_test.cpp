// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/views/path_kind.h"
#include "core/views/run_list.h"

#include <gmock/gmock.h>

#include "tests/base/scratch.h"

namespace mw::views {
namespace {

namespace fs = std::filesystem;

fs::path fixture(const char* name) {
  return fs::path(MW_FIXTURES) / name;
}

PathKind kind(const fs::path& path) {
  return classify_path(path).kind;
}

TEST(PathKind, ToldByContent) {
  const test::Scratch scratch;
  EXPECT_EQ(kind(fs::path(MW_RESOURCES) / "examples" / "tiny-lora.json"), PathKind::experiment);
  EXPECT_EQ(kind(scratch.put("broken.json", "{")), PathKind::experiment) << "which reports the fault";
  EXPECT_EQ(kind(fixture("gemma3_tiny")), PathKind::model);
  EXPECT_EQ(kind(fixture("gemma3_tiny") / "lora"), PathKind::adapter);
  EXPECT_EQ(kind(fixture("orbax") / "ocdbt"), PathKind::orbax);
  EXPECT_EQ(kind(fixture("bench") / "vllm_appended.json"), PathKind::result);
  EXPECT_EQ(kind(scratch.put("train.py", "import trl")), PathKind::script);
  EXPECT_EQ(kind(scratch.put("rows.jsonl.gz", "")), PathKind::dataset);
  EXPECT_EQ(kind(scratch.put("rows.json", R"([{"text": "a"}])")), PathKind::dataset);
  EXPECT_EQ(kind(scratch.put("rows.csv", "prompt,completion\na,b\n")), PathKind::dataset);
  EXPECT_EQ(kind(scratch.put("log/trainer_state.json", R"({"log_history": []})")), PathKind::other);
  EXPECT_EQ(kind(scratch / "log"), PathKind::other);
  EXPECT_EQ(kind(scratch / "missing"), PathKind::other);
}

TEST(PathKind, OpensAFolderOfDataFilesAsAPattern) {
  const test::Scratch scratch;
  scratch.put("rows/a.jsonl.gz", "");
  scratch.put("rows/b.jsonl.gz", "");
  const ClassifiedPath rows = classify_path(scratch / "rows");
  EXPECT_EQ(rows.kind, PathKind::dataset);
  EXPECT_EQ(rows.path, scratch / "rows/*.jsonl.gz");
  scratch.put("rows/c.csv", "prompt,completion\n");
  EXPECT_EQ(kind(scratch / "rows"), PathKind::other) << "two kinds of rows";
  scratch.put("logs/trainer_log.jsonl", R"({"current_steps": 1, "total_steps": 2, "loss": 1.5})");
  EXPECT_EQ(kind(scratch / "logs"), PathKind::other);
  fs::create_directory(scratch / "empty");
  EXPECT_EQ(kind(scratch / "empty"), PathKind::other);
}

TEST(PathKind, OpensTheSnapshotOfACachedModel) {
  const test::Scratch scratch;
  const fs::path cached = scratch / "models--google--gemma-3-1b-it";
  scratch.put("models--google--gemma-3-1b-it/refs/main", "0a1b2c");
  EXPECT_EQ(kind(cached), PathKind::other) << "the snapshot is missing";
  scratch.put("models--google--gemma-3-1b-it/snapshots/0a1b2c/config.json", R"({"model_type": "gemma3_text"})");
  const ClassifiedPath model = classify_path(cached);
  EXPECT_EQ(model.kind, PathKind::model);
  EXPECT_EQ(model.path, cached / "snapshots" / "0a1b2c");
}

TEST(PathKind, OpensTheFolderOfAModelFileAndTheExperimentOfAnExport) {
  const test::Scratch scratch;
  for (const char* file : {"model.safetensors", "config.json"}) {
    const ClassifiedPath model = classify_path(fixture("gemma3_tiny") / file);
    EXPECT_EQ(model.kind, PathKind::model) << file;
    EXPECT_EQ(model.path, fixture("gemma3_tiny"));
  }
  scratch.put("recipe/settings.json", "{}");
  const fs::path experiment = scratch.put("recipe/experiment.json", R"({"schema": 1})");
  const ClassifiedPath exported = classify_path(scratch / "recipe");
  EXPECT_EQ(exported.kind, PathKind::recipe_export);
  EXPECT_EQ(exported.path, experiment);
}

}  // namespace
}  // namespace mw::views
