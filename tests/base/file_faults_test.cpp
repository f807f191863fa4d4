// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/base/file_faults.h"

#include <sys/stat.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "core/base/atomic_file.h"
#include "core/base/files.h"

namespace mw::test {
namespace {
namespace fs = std::filesystem;

const std::string kOld = "old", kNew(3000, 'n');

void expect_content(const fs::path& file, const std::set<std::string>& contents) {
  EXPECT_TRUE(contents.contains(path_exists(file) ? read_file(file) : "")) << file;
}

TEST(FileFaults, AtomicWriteLeavesOldOrNewFile) {
  try_every_fault({.prepare = [](const fs::path& f) { write_file_atomically(f / "file", kOld); },
                   .write = [](const fs::path& f) { write_file_atomically(f / "file", kNew); },
                   .check_written = [](const fs::path& f) { expect_content(f / "file", {kNew}); },
                   .check_unwritten =
                       [](const fs::path& f) {
                         expect_content(f / "file", {kOld, kNew});
                       }});
}

TEST(FileFaults, AtomicWriteInNewFoldersLeavesWholeOrNoFile) {
  try_every_fault({.prepare = [](const fs::path&) {},
                   .write = [](const fs::path& f) { write_file_atomically(f / "a" / "b" / "file", kNew); },
                   .check_written = [](const fs::path& f) { expect_content(f / "a" / "b" / "file", {kNew}); },
                   .check_unwritten =
                       [](const fs::path& f) {
                         expect_content(f / "a" / "b" / "file", {"", kNew});
                       }});
}

TEST(FileFaults, CopyLeavesWholeOrNoFile) {
  try_every_fault({.prepare = [](const fs::path& f) { write_file_atomically(f / "from", kNew); },
                   .write = [](const fs::path& f) { copy_atomically(f / "from", f / "to"); },
                   .check_written = [](const fs::path& f) { expect_content(f / "to", {kNew}); },
                   .check_unwritten =
                       [](const fs::path& f) {
                         expect_content(f / "to", {"", kNew});
                       }});
}

void write_staged(const fs::path& folder, const std::string& content) {
  StagedFolder staged(folder / "out");
  write_file_atomically(staged.path() / "one", content);
  write_file_atomically(staged.path() / "sub" / "two", content);
  make_executable(staged.path() / "one");
  staged.commit();
}

void expect_folder(const fs::path& folder, const std::set<std::string>& contents) {
  const std::string first = path_exists(folder / "out") ? read_file(folder / "out" / "one") : "";
  EXPECT_TRUE(contents.contains(first));
  EXPECT_EQ(path_exists(folder / "out") ? read_file(folder / "out" / "sub" / "two") : "", first);
}

TEST(FileFaults, StagedFolderIsWholeOrMissing) {
  try_every_fault({.prepare = [](const fs::path&) {},
                   .write = [](const fs::path& f) { write_staged(f, kNew); },
                   .check_written = [](const fs::path& f) { expect_folder(f, {kNew}); },
                   .check_unwritten =
                       [](const fs::path& f) {
                         expect_folder(f, {"", kNew});
                       }});
}

TEST(FileFaults, ReplacedFolderIsOldOrNew) {
  try_every_fault({.prepare = [](const fs::path& f) { write_staged(f, kOld); },
                   .write = [](const fs::path& f) { write_staged(f, kNew); },
                   .check_written = [](const fs::path& f) { expect_folder(f, {kNew}); },
                   .check_unwritten =
                       [](const fs::path& f) {
                         expect_folder(f, {kOld, kNew});
                       }});
}

// A file system that cannot swap two folders atomically.
class WithoutExchange : public FileSystem {
  int exchange(const char*, const char*) override {
    errno = EINVAL;
    return -1;
  }
};

TEST(FileFaults, ReplacesFolderWithoutAtomicExchange) {
  const Scratch scratch;
  write_staged(scratch.path(), kOld);
  WithoutExchange system;
  replace_file_system(&system);
  write_staged(scratch.path(), kNew);
  replace_file_system(nullptr);
  expect_folder(scratch.path(), {kNew});
  EXPECT_EQ(parts_below(scratch.path()), std::vector<std::string>());
}

pid_t dead_process() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return child;
}

TEST(StaleParts, RemovesOnlyPartsOfDeadProcesses) {
  const Scratch scratch;
  const std::string dead = std::to_string(dead_process()), alive = std::to_string(::getpid());
  const std::vector<std::string> names{
      "a.part-" + dead + "/x",  "b.part-" + dead, "b.part-" + alive,        "c.part-", "c.part-1x", "plain",
      "old.old-" + dead + "/y", "kept/z",         "kept.old-" + dead + "/z"};
  for (const std::string& name : names) scratch.put(name, "content");
  remove_stale_parts_in(scratch.path());
  std::set<std::string> left;
  for (const auto& entry : fs::directory_iterator(scratch.path())) left.insert(entry.path().filename().string());
  EXPECT_EQ(left, (std::set<std::string>{"b.part-" + alive, "c.part-", "c.part-1x", "plain", "old", "kept"}));
  EXPECT_TRUE(is_file(scratch / "old" / "y"));  // its target was missing: the old content is restored
}

TEST(StaleParts, KeepsLockedPartOfUnknownProcess) {
  const Scratch scratch;  // a writer in another container: unknown process id, lock held
  const fs::path part = scratch.put("file.part-" + std::to_string(dead_process()), "content");
  const int fd = ::open(part.c_str(), O_RDONLY | O_CLOEXEC);
  lock_part(fd);
  remove_stale_parts_in(scratch.path());
  EXPECT_TRUE(path_exists(part));
  ::close(fd);
  remove_stale_parts_in(scratch.path());
  EXPECT_FALSE(path_exists(part));
}

TEST(RemoveTree, RemovesLinksWithoutFollowingThem) {
  const Scratch scratch;
  scratch.put("elsewhere/kept", "content");
  scratch.put("tree/sub/file", "content");
  fs::create_directory_symlink(scratch / "elsewhere", scratch / "tree" / "sub" / "link");
  EXPECT_TRUE(remove_tree(scratch / "tree"));
  EXPECT_FALSE(path_exists(scratch / "tree"));
  EXPECT_TRUE(is_file(scratch / "elsewhere" / "kept"));
  EXPECT_TRUE(remove_tree(scratch / "never there"));
}

TEST(MakeFolders, ReportsExistingFileAsBadInput) {
  const Scratch scratch;
  const fs::path file = scratch.put("file", "content");
  for (const fs::path& folder : {file, file / "below"}) {
    try {
      make_folders(folder);
      ADD_FAILURE() << folder;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), Error::Kind::bad_input) << e.what();
    }
  }
}

unsigned mode_of(const fs::path& path) {
  struct stat st {};
  return ::stat(path.c_str(), &st) == 0 ? st.st_mode & 0777u : 0;
}

TEST(PrivateFolders, CreatesFilesAndFoldersForOwnerOnly) {
  const Scratch scratch;
  const mode_t before = ::umask(022);
  keep_private(scratch / "store/");
  write_file_atomically(scratch / "store" / "run" / "file", "x");
  write_file_atomically(scratch / "storehouse" / "file", "x");
  StagedFolder staged(scratch / "store" / "run" / "folder");
  staged.commit();
  EXPECT_EQ(mode_of(scratch / "store"), 0700u);
  EXPECT_EQ(mode_of(scratch / "store" / "run"), 0700u);
  EXPECT_EQ(mode_of(scratch / "store" / "run" / "file"), 0600u);
  EXPECT_EQ(mode_of(scratch / "store" / "run" / "folder"), 0700u);
  EXPECT_EQ(mode_of(scratch / "storehouse"), 0755u);
  EXPECT_EQ(mode_of(scratch / "storehouse" / "file"), 0644u);
  ::umask(before);
}

// The fault tests above cover only writes that go through file_system().
TEST(FileSystem, ProductCodeWritesOnlyThroughIt) {
  const std::regex direct(
      R"(O_CREAT|O_WRONLY|O_RDWR|ofstream|fopen\([^"]*"[wa]|QSaveFile|(^|[^\w>])::(rename|unlink|mkdir|rmdir|fsync|ftruncate|pwrite)\()"
      R"(|\bfs::(rename|remove|remove_all|create_\w+|copy_file|copy|permissions|resize_file)\()"
      R"(|std::filesystem::(rename|remove|remove_all|create_\w+|copy_file|copy|permissions|resize_file)\()");
  const std::set<std::string> allowed{"core/base/file_system.cpp", "core/base/atomic_file.cpp",
                                      "core/base/crash_report.cpp", "core/store/store_lock.cpp",
                                      "core/data/dataset/row_cache.cpp"};
  std::string found;
  for (const char* top : {"app", "core", "ui"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(MW_SOURCE_DIR) / top)) {
      const std::string name = entry.path().lexically_relative(MW_SOURCE_DIR).string();
      if (!entry.is_regular_file() || (!name.ends_with(".cpp") && !name.ends_with(".h")) || allowed.contains(name))
        continue;
      std::istringstream text(read_file(entry.path()));
      for (std::string line; std::getline(text, line);)
        if (std::regex_search(line, direct)) found += name + ": " + line + "\n";
    }
  EXPECT_EQ(found, "");
}

}  // namespace
}  // namespace mw::test
