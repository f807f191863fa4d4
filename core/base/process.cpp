// SPDX-License-Identifier: Apache-2.0
#include "core/base/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "core/base/error.h"

namespace mw {
namespace {

struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw system_error("cannot open a pipe", "", errno);
    read = ends[0], write = ends[1];
  }
  ~Pipe() {
    for (const int end : {read, write})
      if (end >= 0) ::close(end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int take_read() { return std::exchange(read, -1); }
  int take_write() { return std::exchange(write, -1); }
  void close_write() {
    if (write >= 0) ::close(take_write());
  }
};

// Writes without raising SIGPIPE: a closed pipe is an error (EPIPE).
ssize_t write_without_sigpipe(int fd, std::string_view bytes) {
  sigset_t pipe, before, waiting;
  sigemptyset(&pipe), sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, &before);
  const ssize_t n = ::write(fd, bytes.data(), bytes.size());
  const int error = errno;
  if (n < 0 && error == EPIPE && ::sigpending(&waiting) == 0 && sigismember(&waiting, SIGPIPE) == 1) {
    const timespec now{};
    ::sigtimedwait(&pipe, nullptr, &now);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return n;
}

void close_descriptor(int& fd) {
  if (fd >= 0) ::close(std::exchange(fd, -1));
}

}  // namespace

Process::Process(const std::vector<std::string>& command, Input input) {
  std::vector<char*> arguments;
  for (const std::string& a : command) arguments.push_back(const_cast<char*>(a.c_str()));
  arguments.push_back(nullptr);
  Pipe in, out, err, failure;  // `failure` carries the errno of exec; a successful exec closes it
  const int null = input == Input::none ? ::open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
  pid_ = ::fork();
  if (pid_ == 0) {  // only async-signal-safe calls from here on
    ::setpgid(0, 0);
    if (input != Input::inherited) ::dup2(input == Input::none ? null : in.read, STDIN_FILENO);
    ::dup2(out.write, STDOUT_FILENO);
    ::dup2(err.write, STDERR_FILENO);
    ::execvp(arguments[0], arguments.data());
    const int error = errno;
    (void)!::write(failure.write, &error, sizeof error);
    ::_exit(127);
  }
  const int fork_error = errno;
  if (null >= 0) ::close(null);
  if (pid_ < 0) throw system_error("cannot start a process", command.front(), fork_error);
  ::setpgid(pid_, pid_);
  out.close_write(), err.close_write(), failure.close_write();
  int error = 0;
  if (::read(failure.read, &error, sizeof error) == sizeof error) {
    wait();
    throw Error("PROCESS", "the command cannot be started: " + std::string(std::strerror(error)),
                {.place = command.front(), .fix = "check the program's path, or add its folder to PATH"});
  }
  out_ = out.take_read(), err_ = err.take_read();
  if (input == Input::pipe) {
    in_ = in.take_write();
    ::fcntl(in_, F_SETFL, O_NONBLOCK);
  }
}

Process::~Process() {
  if (!status_) kill(SIGKILL), wait();
  for (int* fd : {&in_, &out_, &err_}) close_descriptor(*fd);
}

void Process::kill(int signal) const {
  if (!status_) ::kill(-pid_, signal);
}

int Process::wait() {
  close_descriptor(in_);
  int status = 0;
  while (!status_ && ::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  if (!status_) status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return *status_;
}

// Writes until the pipe is full. A process that closed its input gets no more.
void Process::write_input(const Streams& streams) {
  for (;;) {
    if (unwritten_.empty() && streams.input) unwritten_ = streams.input();
    if (unwritten_.empty()) return close_descriptor(in_);
    const ssize_t n = write_without_sigpipe(in_, unwritten_);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0) return close_descriptor(in_);
    unwritten_.remove_prefix(static_cast<size_t>(n));
  }
}

bool Process::transfer(const Streams& streams, std::chrono::milliseconds timeout) {
  std::array<pollfd, 3> all{{{out_, POLLIN, 0}, {err_, POLLIN, 0}, {in_, POLLOUT, 0}}};  // poll ignores -1
  if (::poll(all.data(), all.size(), static_cast<int>(timeout.count())) < 0) {
    if (errno == EINTR) return true;
    throw system_error("cannot wait for a process", "", errno);
  }
  if (in_ >= 0 && all[2].revents != 0) write_input(streams);
  std::array<char, 65536> bytes{};
  for (int* fd : {&out_, &err_}) {
    if ((all[fd == &out_ ? 0 : 1].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
    const ssize_t n = ::read(*fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      close_descriptor(*fd);
    else
      (fd == &out_ ? streams.out : streams.err)({bytes.data(), static_cast<size_t>(n)});
  }
  return out_ >= 0 || err_ >= 0;
}

}  // namespace mw
