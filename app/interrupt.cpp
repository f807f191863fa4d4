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
constexpr char kSignal = 's', kEnd = 'e';

void on_signal(int) {
  const int saved = errno;
  [[maybe_unused]] const ssize_t n = ::write(pipe_fds[1], &kSignal, 1);
  errno = saved;
}

void set_handler(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  for (const int s : {SIGINT, SIGTERM}) ::sigaction(s, &action, nullptr);
}

}  // namespace

Interrupt::Interrupt() {
  if (::pipe(pipe_fds.data()) != 0) return;  // no descriptors left: Ctrl-C then ends the process as by default
  watcher_ = std::jthread([source = source_]() mutable {
    for (char c = 0; ::read(pipe_fds[0], &c, 1) == 1 && c != kEnd;) {
      if (source.stop_requested()) ::_exit(130);
      std::fputs("\nstopping; press Ctrl-C again to leave at once\n", stderr);
      source.request_stop();
    }
  });
  set_handler(on_signal);
}

Interrupt::~Interrupt() {
  if (pipe_fds[1] < 0) return;
  set_handler(SIG_DFL);
  [[maybe_unused]] const ssize_t n = ::write(pipe_fds[1], &kEnd, 1);
  if (watcher_.joinable()) watcher_.join();
  for (int& fd : pipe_fds) ::close(std::exchange(fd, -1));
}

}  // namespace mw::app
