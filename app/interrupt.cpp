// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>

namespace mw::app {
namespace {

sigset_t watched() {
  sigset_t set;
  sigemptyset(&set);
  for (const int s : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&set, s);  // SIGUSR1: the destructor wakes the watcher
  return set;
}

}  // namespace

Interrupt::Interrupt() {
  const sigset_t set = watched();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  watcher_ = std::jthread([source = source_, set](std::stop_token done) mutable {
    for (;;) {
      int got = 0;
      if (sigwait(&set, &got) != 0 || done.stop_requested()) return;
      if (got == SIGUSR1) continue;
      if (source.stop_requested()) ::_exit(130);
      std::fputs("\nstopping; press Ctrl-C again to leave at once\n", stderr);
      source.request_stop();
    }
  });
}

Interrupt::~Interrupt() {
  watcher_.request_stop();
  pthread_kill(watcher_.native_handle(), SIGUSR1);
}

}  // namespace mw::app
