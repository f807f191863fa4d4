// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/cli/process.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

namespace mw::test {
namespace {

[[noreturn]] void become(const std::vector<std::string>& arguments, int out, int err, Limits limits) {
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  if (limits.file_bytes > 0) {
    const auto bytes = static_cast<rlim_t>(limits.file_bytes);
    const rlimit limit{bytes, bytes};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  if (limits.unprivileged && ::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(126);
  ::unsetenv("DISPLAY");
  std::vector<char*> argv{const_cast<char*>(MW_BINARY)};
  for (const auto& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  ::execv(MW_BINARY, argv.data());
  ::_exit(127);
}

}  // namespace

Result meshwright(const std::vector<std::string>& arguments, const OnLine& on_line, Limits limits) {
  std::array<int, 2> out{}, err{};
  if (::pipe(out.data()) != 0 || ::pipe(err.data()) != 0) throw std::runtime_error("pipe");
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(out[0]);
    ::close(err[0]);
    become(arguments, out[1], err[1], limits);
  }
  ::close(out[1]);
  ::close(err[1]);
  Result result;
  std::array<pollfd, 2> fds{pollfd{out[0], POLLIN, 0}, pollfd{err[0], POLLIN, 0}};
  size_t told = 0;
  for (int open = 2; open > 0;) {
    const int ready = ::poll(fds.data(), fds.size(), limits.stop_after_ms > 0 ? limits.stop_after_ms : -1);
    if (ready == 0) ::kill(pid, SIGTERM), limits.stop_after_ms = 0;
    if (ready <= 0) continue;
    for (auto& fd : fds) {
      if (fd.fd < 0 || !(fd.revents & (POLLIN | POLLHUP))) continue;
      std::array<char, 4096> buffer{};
      const ssize_t n = ::read(fd.fd, buffer.data(), buffer.size());
      if (n <= 0) {
        ::close(fd.fd);
        fd.fd = -1;
        --open;
        continue;
      }
      (fd.fd == out[0] ? result.out : result.err).append(buffer.data(), static_cast<size_t>(n));
    }
    for (size_t end; on_line && (end = result.out.find('\n', told)) != std::string::npos; told = end + 1)
      on_line(pid, result.out.substr(told, end - told));
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace mw::test
