// SPDX-License-Identifier: Apache-2.0
#include "core/import/found_models.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "core/base/files.h"
#include "core/store/store.h"
#include "tests/base/scratch.h"

namespace mw::importing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kCommit = "0123456789abcdef0123456789abcdef01234567";

fs::path fixture_of(const char* name) {
  return fs::path(MW_FIXTURES) / name;
}

// A cache as huggingface_hub writes it: files are links to blobs.
class HubCache {
 public:
  explicit HubCache(const test::Scratch& scratch) : scratch_(scratch) {}
  fs::path path() const { return scratch_ / "hub"; }
  fs::path repository(const std::string& name) const { return path() / ("models--" + name); }
  fs::path snapshot(const std::string& name, const std::string& commit = kCommit) const {
    return repository(name) / "snapshots" / commit;
  }
  void put(const std::string& name, const std::string& file, const fs::path& from,
           const std::string& commit = kCommit) const {
    fs::create_directories(repository(name) / "blobs");
    fs::create_directories(snapshot(name, commit));
    const fs::path blob = repository(name) / "blobs" / (commit.substr(0, 6) + file);
    fs::copy_file(from, blob);
    fs::create_symlink(fs::path("../../blobs") / blob.filename(), snapshot(name, commit) / file);
  }
  void put_model(const std::string& name, const std::string& commit = kCommit) const {
    for (const char* file : {"config.json", "model.safetensors"})
      put(name, file, fixture_of("gemma3_tiny") / file, commit);
    scratch_.put("hub/models--" + name + "/refs/main", kCommit);
  }
  FoundModels find() const { return find_models({.hugging_face = path(), .kaggle = {}, .runs = {}}); }

 private:
  const test::Scratch& scratch_;
};

TEST(FoundModels, ListsSnapshotsOfTheHuggingFaceCache) {
  const test::Scratch scratch;
  const HubCache cache(scratch);
  cache.put_model("google--gemma-3-tiny");
  cache.put_model("google--gemma-3-tiny", "fedcba9876543210");
  scratch.put("hub/datasets--org--rows/refs/main", kCommit);
  const FoundModels found = cache.find();
  ASSERT_THAT(found.models, SizeIs(2));
  const FoundModel& model = found.models[0];
  EXPECT_EQ(model.name, "google/gemma-3-tiny");
  EXPECT_EQ(found.models[1].name, "google/gemma-3-tiny@fedcba9");
  EXPECT_EQ(model.folder, cache.snapshot("google--gemma-3-tiny"));
  EXPECT_EQ(model.family, "gemma3_text");
  EXPECT_EQ(model.dtype, "f32");
  EXPECT_GT(model.parameters, 0);
  EXPECT_EQ(model.bytes, 4 * static_cast<std::uint64_t>(model.parameters));
  EXPECT_TRUE(model.runs_in_engine);
  EXPECT_THAT(found.skipped, IsEmpty());
}

TEST(FoundModels, SkipsIncompleteDownloadsWithTheReason) {
  const test::Scratch scratch;
  const HubCache cache(scratch);
  cache.put("org--no-weights", "config.json", fixture_of("gemma3_tiny") / "config.json");
  scratch.put("hub/models--org--started/blobs/abc.incomplete", "part");
  cache.put("org--tokenizer", "tokenizer.json", fixture_of("gemma3_tiny") / "config.json");
  cache.put("org--one-of-two", "config.json", fixture_of("gemma3_tiny") / "config.json");
  write_file_atomically(cache.snapshot("org--one-of-two") / "model.safetensors.index.json",
                        R"({"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}})");
  cache.put("org--one-of-two", "model-1.safetensors", fixture_of("gemma3_tiny") / "model.safetensors");
  cache.put_model("org--truncated");
  fs::resize_file(cache.snapshot("org--truncated") / "model.safetensors", 4000);
  cache.put_model("org--other");
  write_file_atomically(cache.snapshot("org--other") / "config.json", R"({"model_type": "bert", "hidden_size": 8})");
  const FoundModels found = cache.find();
  EXPECT_THAT(found.models, IsEmpty());
  const auto reason = [&](const std::string& name) {
    for (const Problem& problem : found.skipped)
      if (problem.file.starts_with(cache.repository(name).string())) return problem.message;
    return std::string("not skipped");
  };
  EXPECT_THAT(reason("org--no-weights"), HasSubstr("no weights"));
  EXPECT_THAT(reason("org--started"), HasSubstr("download is incomplete"));
  EXPECT_THAT(reason("org--tokenizer"), HasSubstr("neither config.json nor adapter_config.json"));
  EXPECT_THAT(reason("org--one-of-two"), HasSubstr("1 of 2 weight files are missing"));
  EXPECT_THAT(reason("org--truncated"), HasSubstr("model.safetensors"));
  EXPECT_THAT(reason("org--other"), HasSubstr("bert"));
  EXPECT_THAT(found.skipped, SizeIs(6));
}

TEST(FoundModels, ListsCompleteVersionsOfTheKaggleCache) {
  const test::Scratch scratch;
  const fs::path models = scratch / "models", variation = models / "google" / "gemma" / "transformers" / "1b";
  fs::create_directories(variation);
  for (const char* version : {"1", "2"})
    fs::copy(fixture_of("gemma3_tiny"), variation / version, fs::copy_options::recursive);
  scratch.put("models/google/gemma/transformers/1b/1.complete", "");
  const fs::path flax = models / "google" / "gemma" / "flax" / "2b" / "1";
  fs::create_directories(flax);
  fs::copy(fixture_of("orbax") / "ocdbt", flax / "2b-it", fs::copy_options::recursive);
  scratch.put("models/google/gemma/flax/2b/1.complete", "");
  const FoundModels found = find_models({.hugging_face = {}, .kaggle = models, .runs = {}});
  ASSERT_THAT(found.models, SizeIs(2));
  EXPECT_EQ(found.models[0].name, "google/gemma/flax/2b/1") << "the root of its checkpoint";
  EXPECT_EQ(found.models[0].kind, ModelKind::orbax);
  EXPECT_GT(found.models[0].bytes, 0u);
  EXPECT_EQ(found.models[1].name, "google/gemma/transformers/1b/1");
  ASSERT_THAT(found.skipped, SizeIs(1));
  EXPECT_EQ(found.skipped[0].file, (variation / "2").string());
}

TEST(FoundModels, ListsCheckpointsOfRunsAndFoldersBesideThem) {
  const test::Scratch scratch;
  store::Store store(scratch.path() / "runs");
  const store::RunId run = store.create(experiment::Experiment(), "tuned");
  fs::create_directories(store.run_folder(run));
  fs::copy(fixture_of("gemma3_tiny") / "lora", store.run_folder(run) / "checkpoint-40", fs::copy_options::recursive);
  fs::create_directories(scratch / "merged");
  fs::copy(fixture_of("gemma3_tiny"), scratch / "merged" / "first", fs::copy_options::recursive);
  fs::create_directory_symlink(scratch.path(), scratch / "merged" / "circle");
  const FoundModels found =
      find_models({.hugging_face = {}, .kaggle = {}, .runs = scratch / "runs", .others = {scratch / "merged"}});
  ASSERT_THAT(found.models, SizeIs(2));
  EXPECT_EQ(found.models[0].name, run + " tuned, checkpoint-40");
  EXPECT_EQ(found.models[0].kind, ModelKind::adapter);
  EXPECT_FALSE(found.models[0].family.empty()) << "the base model";
  EXPECT_EQ(found.models[1].name, "merged/first");
  EXPECT_THAT(found.skipped, IsEmpty());
}

TEST(FoundModels, ListsOrbaxCheckpointsBesideEachOtherButNotTheStepsOfARun) {
  const FoundModels found =
      find_models({.hugging_face = {}, .kaggle = {}, .runs = {}, .others = {fixture_of("orbax")}});
  std::vector<std::string> names;
  for (const FoundModel& model : found.models) names.push_back(model.name);
  EXPECT_THAT(names, ::testing::IsSupersetOf({"orbax/files", "orbax/ocdbt", "orbax/steps", "orbax/tunix_run"}));
}

TEST(FoundModels, NamesFoldersThatCannotBeRead) {
  const test::Scratch scratch;
  const fs::path file = scratch.put("hub", "a file in the place of the cache");
  const FoundModels found = find_models({.hugging_face = file, .kaggle = {}, .runs = {}});
  ASSERT_THAT(found.skipped, SizeIs(1));
  EXPECT_EQ(found.skipped[0].file, file.string());
  EXPECT_THAT(found.skipped[0].message, HasSubstr("cannot list"));
}

TEST(FoundModels, StopsWhenAsked) {
  const test::Scratch scratch;
  const HubCache cache(scratch);
  cache.put_model("google--gemma-3-tiny");
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THAT(find_models({.hugging_face = cache.path(), .kaggle = {}, .runs = {}}, stop.get_token()).models,
              IsEmpty());
}

TEST(FoundModels, ChooseTheCachesAsTheirProgramsDo) {
  const auto with = [](const char* name, const char* value) { ::setenv(name, value, 1); };
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "KAGGLEHUB_CACHE"})
    ::unsetenv(name);
  with("HOME", "/home/ada");
  EXPECT_EQ(model_folders({}).hugging_face, "/home/ada/.cache/huggingface/hub");
  EXPECT_EQ(model_folders({}).kaggle, "/home/ada/.cache/kagglehub/models");
  with("XDG_CACHE_HOME", "/cache");
  EXPECT_EQ(model_folders({}).hugging_face, "/cache/huggingface/hub");
  EXPECT_EQ(model_folders({}).kaggle, "/home/ada/.cache/kagglehub/models") << "kagglehub ignores XDG_CACHE_HOME";
  with("HF_HOME", "/hf");
  EXPECT_EQ(model_folders({}).hugging_face, "/hf/hub");
  with("HF_HUB_CACHE", "/hub");
  with("KAGGLEHUB_CACHE", "/kaggle");
  EXPECT_EQ(model_folders({}).hugging_face, "/hub");
  EXPECT_EQ(model_folders({}).kaggle, "/kaggle/models");
}

}  // namespace
}  // namespace mw::importing
