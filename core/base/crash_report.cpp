// SPDX-License-Identifier: Apache-2.0
#include "core/base/crash_report.h"
#include "core/base/file_system.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <vector>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/base/units.h"

namespace mw {
namespace fs = std::filesystem;
namespace {

// The file: a header of one line, kEvents lines that are overwritten in turn, then signal and stack. All lines of the
// first two parts have kLine bytes.
constexpr size_t kLine = 80, kEvents = 64, kIndexDigits = 8, kMostEvent = 60;
constexpr off_t kStackStart = static_cast<off_t>(kLine * (1 + kEvents));
constexpr std::uint64_t kMostReport = 1 << 20;
constexpr std::array kSignals{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr int kMostFrames = 64;

using Line = std::array<char, kLine>;

// Signal handlers reach nothing but globals.
std::atomic<int> report_fd{-1};
std::atomic<std::uint64_t> next_event{0};
std::atomic<bool> is_handling{false};
std::chrono::steady_clock::time_point report_started;
fs::path report_file;
std::array<char, 1 << 16> signal_stack;  // for a stack overflow, which leaves no room on the usual one

Line padded_line(std::string_view text) {
  Line line;
  line.fill(' ');
  std::copy_n(text.begin(), std::min(text.size(), kLine - 1), line.begin());
  line.back() = '\n';
  return line;
}

const char* name_of(int signal) {
  switch (signal) {
    case SIGSEGV:
      return "SIGSEGV (invalid memory access)";
    case SIGBUS:
      return "SIGBUS (invalid memory access)";
    case SIGFPE:
      return "SIGFPE (invalid arithmetic)";
    case SIGILL:
      return "SIGILL (invalid instruction)";
    default:
      return "SIGABRT (the program gave up)";
  }
}

// Appends to the file. Async-signal-safe: neither allocates nor locks.
class SignalWriter {
 public:
  SignalWriter(int fd, off_t at) : fd_(fd), at_(at) {}
  void text(const char* text) { bytes(text, std::strlen(text)); }
  void hex(std::uintptr_t value) {
    std::array<char, 2 * sizeof value> digits{};
    size_t count = 0;
    do digits[count++] = "0123456789abcdef"[value % 16];
    while ((value /= 16) > 0);
    std::reverse(digits.begin(), digits.begin() + static_cast<std::ptrdiff_t>(count));
    text("0x");
    bytes(digits.data(), count);
  }

 private:
  void bytes(const char* bytes, size_t count) {
    if (const ssize_t n = file_system().pwrite(fd_, bytes, count, at_); n > 0) at_ += n;
  }
  int fd_;
  off_t at_;
};

// "#3 libQt6Core.so.6+0x1234 name": the name of the module without its folder, for addr2line.
void write_frame(void* address, SignalWriter& out) {
  Dl_info info{};
  if (::dladdr(address, &info) == 0 || !info.dli_fname) {
    out.hex(reinterpret_cast<std::uintptr_t>(address));
    return out.text("\n");
  }
  const char* slash = std::strrchr(info.dli_fname, '/');
  out.text(slash ? slash + 1 : info.dli_fname);
  out.text("+");
  out.hex(reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(info.dli_fbase));
  if (info.dli_sname) {
    out.text(" ");
    out.text(info.dli_sname);
  }
  out.text("\n");
}

void handle_signal(int signal) {
  // A fault in this function, or meanwhile in another thread, ends the process with what has been written.
  if (is_handling.exchange(true)) {
    ::raise(signal);
    return;
  }
  SignalWriter out(report_fd.load(), kStackStart);
  out.text("Signal: ");
  out.text(name_of(signal));
  out.text("\nStack, innermost first:\n");
  std::array<void*, kMostFrames> frames{};
  const int count = ::backtrace(frames.data(), kMostFrames);
  for (int i = 0; i < count; ++i) write_frame(frames[static_cast<size_t>(i)], out);
  ::raise(signal);  // SA_RESETHAND: with the default action, once this function has returned
}

void set_handlers() {
  std::array<void*, 1> first{};
  ::backtrace(first.data(), 1);  // loads the unwinder, which allocates
  stack_t stack{};
  stack.ss_sp = signal_stack.data();
  stack.ss_size = signal_stack.size();
  ::sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_handler = handle_signal;
  action.sa_flags = static_cast<int>(SA_ONSTACK | SA_RESETHAND);
  for (const int signal : kSignals) ::sigaction(signal, &action, nullptr);
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  std::array<char, 32> text{};
  ::gmtime_r(&now, &parts);
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text.data();
}

}  // namespace

void start_crash_report(const fs::path& file, std::string_view version) {
  end_crash_report();
  const int fd = file_system().open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) throw system_error("cannot create the crash report", file.string(), errno);
  const Line header = padded_line("Meshwright " + std::string(version) + ", started " + utc_now());
  if (file_system().pwrite(fd, header.data(), header.size(), 0) != static_cast<ssize_t>(header.size())) {
    const int error = errno;
    ::close(fd);
    throw system_error("cannot write the crash report", file.string(), error);
  }
  report_file = file;
  report_started = std::chrono::steady_clock::now();
  next_event = 0;
  report_fd = fd;
  set_handlers();
}

void end_crash_report() {
  const int fd = report_fd.exchange(-1);
  if (fd < 0) return;
  for (const int signal : kSignals) ::signal(signal, SIG_DFL);
  file_system().unlink(report_file.c_str());
  ::close(fd);
}

void note_event(std::string_view event) noexcept {
  const int fd = report_fd.load();
  if (fd < 0) return;
  const std::uint64_t index = next_event.fetch_add(1);
  std::array<char, kLine> text{};
  const int length =
      std::snprintf(text.data(), text.size(), "%08llu %9.2f s  %.*s", static_cast<unsigned long long>(index),
                    seconds_since(report_started), static_cast<int>(std::min(event.size(), kMostEvent)), event.data());
  if (length <= 0) return;
  const Line line = padded_line({text.data(), std::min(static_cast<size_t>(length), kLine - 1)});
  // A full disk loses events; the work goes on.
  file_system().pwrite(fd, line.data(), line.size(), static_cast<off_t>(kLine * (1 + index % kEvents)));
}

std::optional<std::string> read_crash_report(const fs::path& file) {
  if (!is_file(file)) return std::nullopt;
  std::string bytes;
  try {
    bytes = read_file(file, kMostReport);
  } catch (const Error&) {
    return std::nullopt;
  }
  const std::string_view all = bytes;
  const std::string_view head = all.substr(0, std::min<size_t>(all.size(), kStackStart));
  std::vector<std::string_view> events;
  for (size_t at = kLine; at < head.size(); at += kLine)
    if (const std::string_view line = trimmed(head.substr(at, kLine));
        line.size() > kIndexDigits && line.front() == '0')
      events.push_back(line);
  std::sort(events.begin(), events.end());  // by index
  std::string text(trimmed(head.substr(0, kLine)));
  const std::string_view stack = all.size() > static_cast<size_t>(kStackStart) ? all.substr(kStackStart) : "";
  text += "\n\n";
  text += stack.empty() ? "Signal: none was caught; the process was killed, or the machine stopped\n" : stack;
  text += "\nLast events, with seconds after the start:\n";
  for (const std::string_view event : events) text += std::string(event.substr(kIndexDigits + 1)) + "\n";
  return text;
}

}  // namespace mw
