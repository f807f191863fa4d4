// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/stop_signals.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

namespace mw::app {
namespace {

// A handler writes to a pipe. Blocking the signals instead would not cover threads that libraries start before main().
std::array<int, 2> pipe_fds{-1, -1};
constexpr char kEnd = 0;  // ends the watcher; other values are signal numbers

void on_signal(int signal) {
  const int saved = errno;
  const char number = static_cast<char>(signal);
  [[maybe_unused]] const ssize_t n = ::write(pipe_fds[1], &number, 1);
  errno = saved;
}

void set_handler(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(signal, &action, nullptr);
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void set_handlers(void (*handler)(int)) {
  for (const int s : {SIGINT, SIGTERM}) set_handler(s, handler);
  for (const int s : {SIGHUP, SIGPIPE})
    if (!is_ignored(s)) set_handler(s, handler);  // nohup ignores SIGHUP
}

const char* stop_message(int signal) {
  switch (signal) {
    case SIGHUP:
      return "\nthe terminal was closed; stopping\n";
    case SIGPIPE:
      return "\nthe output was closed; stopping\n";
    default:
      return "\nstopping; press Ctrl-C again to exit immediately\n";
  }
}

}  // namespace

void survive_file_size_limit() {
  set_handler(SIGXFSZ, [](int) {});  // SIG_IGN would be inherited by child processes, a handler is not
}

StopSignals::StopSignals() {
  if (::pipe(pipe_fds.data()) != 0) return;  // no descriptors left: keep the default handlers
  watcher_ = std::jthread([source = source_]() mutable {
    for (char c = 0; ::read(pipe_fds[0], &c, 1) == 1 && c != kEnd;) {
      // SIGPIPE and SIGHUP may arrive several times for one cause, so only SIGINT and SIGTERM end the process.
      const bool insistent = c == SIGINT || c == SIGTERM;
      if (source.stop_requested() && insistent) ::_exit(130);
      if (!source.stop_requested()) std::fputs(stop_message(c), stderr);
      source.request_stop();
    }
  });
  set_handlers(on_signal);
}

StopSignals::~StopSignals() {
  if (pipe_fds[1] < 0) return;
  set_handlers(SIG_DFL);
  [[maybe_unused]] const ssize_t n = ::write(pipe_fds[1], &kEnd, 1);
  if (watcher_.joinable()) watcher_.join();
  for (int& fd : pipe_fds) ::close(std::exchange(fd, -1));
}

}  // namespace mw::app
