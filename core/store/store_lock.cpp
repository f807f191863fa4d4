// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/error.h"
#include "core/base/file_system.h"
#include "core/base/files.h"
#include "core/store/store.h"

namespace mw::store {
namespace fs = std::filesystem;
namespace {

// Returns an open descriptor that holds the lock, or -1 if another process holds it.
int take(const fs::path& folder) {
  make_folders(folder);
  const fs::path file = folder / "lock";
  const int fd = file_system().open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) throw system_error("cannot open the run's lock", file.string(), errno);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int why = errno;
    ::close(fd);
    if (why == EWOULDBLOCK) return -1;
    throw system_error("cannot lock the run", file.string(), why);
  }
  // The pid is only shown in the error of the process that finds the run locked; the flock alone decides.
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (file_system().ftruncate(fd, 0) == 0) file_system().pwrite(fd, pid.data(), pid.size(), 0);
  return fd;
}

std::string owner(const fs::path& folder) {
  char text[32] = {};
  const int fd = ::open((folder / "lock").c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t n = fd >= 0 ? ::read(fd, text, sizeof text - 1) : -1;
  if (fd >= 0) ::close(fd);
  std::string pid(text, n > 0 ? static_cast<size_t>(n) : 0);
  pid.erase(pid.find_last_not_of('\n') + 1);
  return pid.empty() ? "another process" : "process " + pid;
}

}  // namespace

RunLock::RunLock(const fs::path& folder, const RunId& run) : fd_(take(folder)) {
  if (fd_ >= 0) return;
  const std::string who = owner(folder);
  throw Error("RUN-LOCKED", run + " is being written by " + who,
              {.file = (folder / "lock").string(),
               .found = who,
               .expected = "nobody",
               .fix = "wait until that process ends, or stop it"});
}

std::unique_ptr<RunLock> RunLock::try_lock(const fs::path& folder) {
  const int fd = take(folder);
  return fd < 0 ? nullptr : std::unique_ptr<RunLock>(new RunLock(fd));
}

RunLock::~RunLock() {
  if (fd_ < 0) return;
  file_system().ftruncate(fd_, 0);
  ::close(fd_);
}

}  // namespace mw::store
