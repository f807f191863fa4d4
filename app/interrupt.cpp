// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

namespace mw::app {
namespace {

// A handler and a pipe rather than blocked signals: OpenBLAS starts threads before main(), whose masks are not ours.
std::array<int, 2> pipe_fds{-1, -1};
constexpr char kEnd = 0;  // the others are numbers of signals

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
    if (!is_ignored(s)) set_handler(s, handler);  // nohup stays in force
}

const char* reason(int signal) {
  switch (signal) {
    case SIGHUP:
      return "\nthe terminal was closed; stopping\n";
    case SIGPIPE:
      return "\nnothing reads the output any more; stopping\n";
    default:
      return "\nstopping; press Ctrl-C again to leave at once\n";
  }
}

}  // namespace

void survive_file_size_limit() {
  set_handler(SIGXFSZ, [](int) {});  // not ignored: programs that are started from here inherit that, and no handler
}

Interrupt::Interrupt() {
  if (::pipe(pipe_fds.data()) != 0) return;  // no descriptors left: Ctrl-C then ends the process as by default
  watcher_ = std::jthread([source = source_]() mutable {
    for (char c = 0; ::read(pipe_fds[0], &c, 1) == 1 && c != kEnd;) {
      // Every line to a closed pipe is a signal, and both the system and the shell may send SIGHUP.
      const bool insistent = c == SIGINT || c == SIGTERM;
      if (source.stop_requested() && insistent) ::_exit(130);
      if (!source.stop_requested()) std::fputs(reason(c), stderr);
      source.request_stop();
    }
  });
  set_handlers(on_signal);
}

Interrupt::~Interrupt() {
  if (pipe_fds[1] < 0) return;
  set_handlers(SIG_DFL);
  [[maybe_unused]] const ssize_t n = ::write(pipe_fds[1], &kEnd, 1);
  if (watcher_.joinable()) watcher_.join();
  for (int& fd : pipe_fds) ::close(std::exchange(fd, -1));
}

}  // namespace mw::app
