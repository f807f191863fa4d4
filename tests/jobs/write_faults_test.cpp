// SPDX-License-Identifier: GPL-3.0-or-later
// The run store and exported recipes under every fault of the file system at every change on disk.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>

#include "core/base/files.h"
#include "core/jobs/recipe_export.h"
#include "core/recipes/recipe.h"
#include "core/store/store.h"
#include "core/train/settings.h"
#include "tests/base/file_faults.h"
#include "tests/shipped.h"
#include "tests/store/store_fixture.h"

namespace mw::jobs {
namespace {
namespace fs = std::filesystem;

void append_line(const fs::path& folder, const std::string& line) {
  store::Store store(folder / "store");
  const auto rows = store.list();
  const store::RunId run = rows.empty() ? store.create(experiment::Experiment(), "one") : rows[0].id;
  const auto lock = store.lock(run);
  for (long step = 1; step <= 3; ++step) store.append(run, test::metric(step, 0.5));
  store.append(run, {1, event::Log{"info", line}});
  store.flush();
}

bool has_line(const fs::path& folder, const std::string& line) {
  store::Store store(folder / "store");
  const auto rows = store.list();
  if (rows.size() != 1) return false;
  for (const store::StoredEvent& e : store.events(rows[0].id))
    if (const auto* log = std::get_if<event::Log>(&e.event.body); log && log->text == line) return true;
  return false;
}

TEST(WriteFaults, TheStoreKeepsWhatWasCommitted) {
  test::try_every_fault(
      {.prepare = [](const fs::path& f) { append_line(f, "before"); },
       .write = [](const fs::path& f) { append_line(f, "after"); },
       .check_written = [](const fs::path& f) { EXPECT_TRUE(has_line(f, "before") && has_line(f, "after")); },
       .check_unwritten = [](const fs::path& f) { EXPECT_TRUE(has_line(f, "before")); }});
}

TEST(WriteFaults, ANewStoreIsUsableAfterEveryFault) {
  test::try_every_fault({.prepare = [](const fs::path&) {},
                         .write = [](const fs::path& f) { append_line(f, "first"); },
                         .check_written = [](const fs::path& f) { EXPECT_TRUE(has_line(f, "first")); },
                         .check_unwritten = [](const fs::path& f) { append_line(f, "again"); }});
}

recipes::RecipeInput recipe_with(int max_num_seqs) {
  experiment::Experiment e =
      experiment::Experiment::load(fs::path(MW_RESOURCES) / "examples" / "paper-serve-2xh100.json");
  experiment::apply_sets(e, {"serve.max_num_seqs=" + std::to_string(max_num_seqs)});
  return recipe_input(model::Stack::vllm_gpu, e, test::context(), fs::path(MW_RESOURCES) / "recipes");
}

void export_with(const fs::path& folder, int max_num_seqs) {
  static const std::map<int, recipes::RecipeInput> subjects{
      {7, recipe_with(7)}, {8, recipe_with(8)}, {9, recipe_with(9)}};
  recipes::write_recipe(subjects.at(max_num_seqs), fs::path(MW_RESOURCES) / "recipes", folder / "recipe",
                        recipes::Overwrite::refuse);
}

// An export that was interrupted while it replaced another one does not count as edited by hand.
TEST(WriteFaults, AnExportIsReplacedAfterEveryFault) {
  test::try_every_fault({.prepare = [](const fs::path& f) { export_with(f, 7); },
                         .write = [](const fs::path& f) { export_with(f, 8); },
                         .check_written =
                             [](const fs::path& f) {
                               EXPECT_FALSE(read_json(f / "recipe/recipe.json").contains("replaces"));
                               EXPECT_NE(read_file(f / "recipe/settings.sh").find("8"), std::string::npos);
                             },
                         .check_unwritten = [](const fs::path& f) { EXPECT_NO_THROW(export_with(f, 9)); }});
}

unsigned mode_of(const fs::path& path) {
  struct stat st {};
  return ::stat(path.c_str(), &st) == 0 ? st.st_mode & 0777u : 0;
}

TEST(StorePrivacy, FoldersAndFilesAreForTheOwnerOnly) {
  const test::Scratch scratch;
  const mode_t before = ::umask(022);
  append_line(scratch.path(), "secret");
  store::Store open(scratch / "store");  // with its -wal and -shm files
  open.append("run-1", {2, event::Log{"info", "more"}});
  for (const auto& entry : fs::recursive_directory_iterator(scratch / "store"))
    EXPECT_EQ(mode_of(entry.path()), entry.is_directory() ? 0700u : 0600u) << entry.path();
  EXPECT_EQ(mode_of(scratch / "store"), 0700u);
  ::umask(before);
}

TEST(StorePrivacy, WithoutAHomeFolderNoSharedFolderIsUsed) {
  EXPECT_EQ(test::error_id([] { store::Store store(""); }), "STORE-FOLDER");
}

TEST(StaleCheckpoints, OfKilledRunsAreRemovedByTheNextCommand) {
  const test::Scratch scratch;
  const pid_t child = test::fork_child([&] {
    store::Store store(scratch.path());
    const store::RunId run = store.create(experiment::Experiment(), "killed");
    const auto lock = store.lock(run);
    store.append(run, {0, event::Started{Json{{"steps", 9}}}});
    StagedFolder checkpoint(store.run_folder(run) / "checkpoint-5");
    write_file_atomically(checkpoint.path() / "trainer_state.json", "{}");
    ::raise(SIGKILL);
    return 0;
  });
  EXPECT_EQ(test::wait_for(child), -SIGKILL);
  EXPECT_EQ(test::parts_below(scratch.path()).size(), 1u);
  store::Store store(scratch.path());
  EXPECT_EQ(store.recover(), std::vector<store::RunId>{"run-1"});
  EXPECT_TRUE(test::parts_below(scratch.path()).empty());
}

}  // namespace
}  // namespace mw::jobs
