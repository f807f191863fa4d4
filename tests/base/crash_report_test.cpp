// SPDX-License-Identifier: Apache-2.0
#include "core/base/crash_report.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "tests/base/scratch.h"

namespace mw {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Runs `work` in a child process with a report; returns the signal that ended it.
int signal_of(const std::filesystem::path& file, const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit no_core{};
    ::setrlimit(RLIMIT_CORE, &no_core);
    start_crash_report(file, "1.2.3");
    work();
    end_crash_report();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

void write_nowhere() {
  volatile int* volatile nowhere = nullptr;
  *nowhere = 1;
}

TEST(CrashReport, HasVersionSignalStackAndLastEvents) {
  const test::Scratch scratch;
  EXPECT_EQ(signal_of(scratch / "crash.txt",
                      [] {
                        for (int i = 0; i < 100; ++i) note_event("event " + std::to_string(i) + ".");
                        write_nowhere();
                      }),
            SIGSEGV);
  const std::string report = read_crash_report(scratch / "crash.txt").value_or("");
  EXPECT_THAT(report, HasSubstr("Meshwright 1.2.3, started 2"));
  EXPECT_THAT(report, HasSubstr("SIGSEGV"));
  EXPECT_THAT(report, HasSubstr("mw_base_tests+0x"));
  EXPECT_THAT(report, HasSubstr("event 36."));
  EXPECT_THAT(report, Not(HasSubstr("event 35."))) << "only the last 64";
  EXPECT_LT(report.find("event 36."), report.find("event 99.")) << "in their order";
  EXPECT_THAT(report, Not(HasSubstr(scratch.path().string())));
}

TEST(CrashReport, SurvivesKillWithItsEvents) {
  const test::Scratch scratch;
  EXPECT_EQ(signal_of(scratch / "crash.txt",
                      [] {
                        note_event("action run.start");
                        ::raise(SIGKILL);
                      }),
            SIGKILL);
  const std::string report = read_crash_report(scratch / "crash.txt").value_or("");
  EXPECT_THAT(report, HasSubstr("none was caught"));
  EXPECT_THAT(report, HasSubstr("action run.start"));
}

TEST(CrashReport, HandlesAnOverflowOfTheStack) {
  const test::Scratch scratch;
  std::function<int(int)> endless = [&endless](int depth) {
    volatile char room[4096]{};
    room[0] = static_cast<char>(depth);
    return endless(depth + 1) + room[0];
  };
  EXPECT_EQ(signal_of(scratch / "crash.txt", [&] { endless(0); }), SIGSEGV);
  EXPECT_THAT(read_crash_report(scratch / "crash.txt").value_or(""), HasSubstr("SIGSEGV"));
}

TEST(CrashReport, IsRemovedAtACleanEnd) {
  const test::Scratch scratch;
  EXPECT_EQ(signal_of(scratch / "crash.txt", [] { note_event("action app.quit"); }), 0);
  EXPECT_FALSE(read_crash_report(scratch / "crash.txt"));
}

}  // namespace
}  // namespace mw
