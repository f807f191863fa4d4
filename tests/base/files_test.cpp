// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/files.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "core/base/error.h"
#include "tests/base/scratch.h"

namespace mw {
namespace {
namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  size_t entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
  }
  test::Scratch scratch;
  const fs::path& folder = scratch.path();
};

TEST_F(Files, InaccessiblePathCountsAsMissing) {
  write_file_atomically(folder / "inside" / "file", "x");
  EXPECT_TRUE(is_file(folder / "inside" / "file"));
  EXPECT_TRUE(is_folder(folder / "inside"));
  EXPECT_FALSE(is_folder(folder / "inside" / "file"));
  EXPECT_FALSE(is_file(folder / "inside"));
  EXPECT_FALSE(path_exists(folder / "other"));
  EXPECT_TRUE(is_missing_or_empty(folder / "other"));
  EXPECT_FALSE(is_missing_or_empty(folder / "inside"));
  EXPECT_FALSE(is_missing_or_empty(folder / "inside" / "file"));
  fs::remove(folder / "inside" / "file");
  EXPECT_TRUE(is_missing_or_empty(folder / "inside"));
  fs::create_symlink("loop", folder / "loop");
  for (const fs::path& path : {folder / std::string(300, 'n'), folder / "loop" / "file"}) {
    EXPECT_FALSE(path_exists(path)) << path;
    EXPECT_FALSE(is_file(path)) << path;
    EXPECT_FALSE(is_folder(path)) << path;
  }
}

TEST_F(Files, WriteReadsBackAndLeavesNoTemporaryFile) {
  std::string content("bytes\0and\n", 10);
  content += std::string(200000, '\xff');
  write_file_atomically(folder / "a" / "b" / "file", content);
  EXPECT_EQ(read_file(folder / "a" / "b" / "file"), content);
  write_file_atomically(folder / "a" / "b" / "file", "");
  EXPECT_EQ(read_file(folder / "a" / "b" / "file"), "");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "a" / "b"), fs::directory_iterator()), 1);
}

TEST_F(Files, ConcurrentReadersSeeOldOrNewContent) {
  const std::string a(300000, 'a'), b(500000, 'b');
  write_file_atomically(folder / "f", a);
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (int i = 0; i < 20; ++i) write_file_atomically(folder / "f", i % 2 ? a : b);
    done = true;
  });
  size_t torn = 0;
  while (!done) {
    const std::string seen = read_file(folder / "f");
    torn += seen != a && seen != b;
  }
  writer.join();
  EXPECT_EQ(torn, 0u);
}

TEST_F(Files, FailedWriteKeepsOldFileAndRemovesTemporary) {
  write_file_atomically(folder / "f", "old");
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100000, 100000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write_file_atomically(folder / "f", std::string(300000, 'x'));
    } catch (const Error& e) {
      const bool named = e.problem().id == "SYSTEM" && e.problem().file == (folder / "f").string();
      const bool explained = e.problem().message.find("ulimit -f") != std::string::npos &&
                             e.problem().found.find("100000 bytes") != std::string::npos && !e.problem().fix.empty();
      ::_exit(named && explained ? 7 : 8);
    }
    ::_exit(9);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(read_file(folder / "f"), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(Files, ErrorsNamePath) {
  const auto problem = [](const std::function<void()>& work) {
    try {
      work();
    } catch (const Error& e) {
      return e.problem();
    }
    return Problem{};
  };
  EXPECT_EQ(problem([&] { read_file(folder / "none"); }).file, (folder / "none").string());
  EXPECT_EQ(problem([&] { read_file(folder); }).id, "FILE-KIND");
  write_file_atomically(folder / "f", "12345");
  EXPECT_EQ(problem([&] { read_file(folder / "f", 4); }).id, "FILE-SIZE");
  EXPECT_EQ(read_file(folder / "f", 5), "12345");
  EXPECT_FALSE(problem([&] { write_file_atomically(folder / "f" / "below", "x"); }).id.empty());
}

TEST_F(Files, CommittedStagedFolderReplacesOldOne) {
  fs::create_directories(folder / "target");
  write_file_atomically(folder / "target" / "old", "1");
  {
    StagedFolder staged(folder / "target");
    write_file_atomically(staged.path() / "new", "2");
    EXPECT_TRUE(fs::exists(folder / "target" / "old"));
    staged.commit();
  }
  EXPECT_FALSE(fs::exists(folder / "target" / "old"));
  EXPECT_EQ(read_file(folder / "target" / "new"), "2");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(Files, UncommittedStagedFolderIsRemoved) {
  {
    StagedFolder staged(folder / "target");
    write_file_atomically(staged.path() / "new", "2");
  }
  EXPECT_EQ(entries(), 0u);
}

}  // namespace
}  // namespace mw
