// SPDX-License-Identifier: GPL-3.0-or-later
// Runs one write site (a function that writes below a folder) with every fault at every change it makes on disk.
#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/file_system.h"
#include "core/base/files.h"
#include "tests/base/scratch.h"

namespace mw::test {

enum class Fault { none, short_write, no_space, denied, failed_rename, failed_sync, crash, crash_within_write };

// Counts changes from 0 and applies `fault` at number `at`. After no_space, later writes fail as well.
class FaultyFileSystem : public FileSystem {
 public:
  FaultyFileSystem(Fault fault, long at) : fault_(fault), at_(at) {}
  long changes() const { return next_; }
  bool reached() const { return hit_; }  // the fault was applied

  int open(const char* path, int flags, mode_t mode) override {
    if ((flags & O_CREAT) != 0 && now({Fault::no_space, Fault::denied})) return refuse();
    return FileSystem::open(path, flags, mode);
  }
  ssize_t write(int fd, const void* bytes, size_t count) override {
    const bool half = now({Fault::no_space, Fault::short_write, Fault::crash_within_write}) && count > 1;
    if (hit_ && fault_ == Fault::no_space) return refuse();
    const ssize_t written = FileSystem::write(fd, bytes, half ? count / 2 : count);
    if (half && fault_ == Fault::crash_within_write) ::_exit(kCrashed);
    return written;
  }
  ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) override {
    const bool half = now({Fault::no_space, Fault::short_write, Fault::crash_within_write}) && count > 1;
    if (hit_ && fault_ == Fault::no_space) return refuse();
    const ssize_t written = FileSystem::pwrite(fd, bytes, half ? count / 2 : count, offset);
    if (half && fault_ == Fault::crash_within_write) ::_exit(kCrashed);
    return written;
  }
  int ftruncate(int fd, off_t size) override {
    return now({Fault::no_space}) ? refuse() : FileSystem::ftruncate(fd, size);
  }
  int fsync(int fd) override { return now({Fault::failed_sync}) ? refuse() : FileSystem::fsync(fd); }
  int mkdir(const char* path, mode_t mode) override {
    return now({Fault::no_space, Fault::denied}) ? refuse() : FileSystem::mkdir(path, mode);
  }
  int rmdir(const char* path) override {
    now({});
    return FileSystem::rmdir(path);
  }
  int unlink(const char* path) override {
    now({});
    return FileSystem::unlink(path);
  }
  int rename(const char* from, const char* to) override {
    return now({Fault::failed_rename, Fault::denied}) ? refuse() : FileSystem::rename(from, to);
  }
  int exchange(const char* a, const char* b) override {
    return now({Fault::failed_rename, Fault::denied}) ? refuse() : FileSystem::exchange(a, b);
  }

  static constexpr int kCrashed = 137;

 private:
  // Whether the fault applies to this change; `faults` are those that this kind of change can have.
  bool now(const std::set<Fault>& faults) {
    const long number = next_++;
    if (number == at_ && fault_ == Fault::crash) ::_exit(kCrashed);
    const bool concerned = faults.contains(fault_);
    if (number == at_ && concerned) hit_ = true;
    return concerned && (number == at_ || (hit_ && fault_ == Fault::no_space));
  }
  int refuse() {
    errno = fault_ == Fault::no_space ? ENOSPC : fault_ == Fault::denied ? EACCES : EIO;
    return -1;
  }

  Fault fault_;
  long at_;
  std::atomic<long> next_ = 0;
  std::atomic<bool> hit_ = false;
};

struct WriteSite {
  using In = std::function<void(const std::filesystem::path& folder)>;
  In prepare;  // creates the initial state
  In write;
  In check_written;    // after success
  In check_unwritten;  // after an Error or a crash: the old or the new content, never a mixture
};

inline std::vector<std::string> parts_below(const std::filesystem::path& folder) {
  std::vector<std::string> parts;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.find(".part-") != name.npos || name.find(".old-") != name.npos) parts.push_back(name);
  }
  return parts;
}

inline void crash_at(const WriteSite& site, Fault fault, long at, const std::filesystem::path& folder) {
  const pid_t child = ::fork();
  if (child == 0) {
    FaultyFileSystem faulty(fault, at);
    replace_file_system(&faulty);
    site.write(folder);
    ::_exit(0);  // crash_within_write does not apply to this change
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status) && (WEXITSTATUS(status) == FaultyFileSystem::kCrashed || WEXITSTATUS(status) == 0));
  if (WEXITSTATUS(status) == 0) return site.check_written(folder);
  site.check_unwritten(folder);
  site.write(folder);  // the next writer succeeds and removes the remains of the dead one
  site.check_written(folder);
  EXPECT_EQ(parts_below(folder), std::vector<std::string>());
}

inline void fail_at(const WriteSite& site, Fault fault, long at, const std::filesystem::path& folder) {
  FaultyFileSystem faulty(fault, at);
  bool failed = false;
  replace_file_system(&faulty);
  try {
    site.write(folder);
  } catch (const Error& e) {
    failed = true;
    EXPECT_FALSE(e.problem().file.empty()) << e.what();
  } catch (const std::exception& e) {
    ADD_FAILURE() << "an exception other than mw::Error: " << e.what();
  }
  replace_file_system(nullptr);
  EXPECT_EQ(parts_below(folder), std::vector<std::string>());
  if (failed)
    site.check_unwritten(folder);
  else
    site.check_written(folder);
  EXPECT_FALSE(failed && (!faulty.reached() || fault == Fault::short_write));
}

// Crashes run in a forked child, so `site.write` must create its objects and threads itself.
inline void try_every_fault(const WriteSite& site) {
  long changes = 0;
  {
    const Scratch scratch;
    site.prepare(scratch.path());
    FaultyFileSystem counting(Fault::none, -1);
    replace_file_system(&counting);
    site.write(scratch.path());
    replace_file_system(nullptr);
    site.check_written(scratch.path());
    changes = counting.changes();
  }
  ASSERT_GT(changes, 0);
  for (const Fault fault : {Fault::short_write, Fault::no_space, Fault::denied, Fault::failed_rename,
                            Fault::failed_sync, Fault::crash, Fault::crash_within_write})
    for (long at = 0; at < changes; ++at) {
      SCOPED_TRACE("fault " + std::to_string(static_cast<int>(fault)) + " at change " + std::to_string(at));
      const Scratch scratch;
      site.prepare(scratch.path());
      if (fault == Fault::crash || fault == Fault::crash_within_write)
        crash_at(site, fault, at, scratch.path());
      else
        fail_at(site, fault, at, scratch.path());
      if (testing::Test::HasFailure()) return;
    }
}

}  // namespace mw::test
