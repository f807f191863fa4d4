// SPDX-License-Identifier: Apache-2.0
// A child process with piped streams, in a process group of its own (Ctrl-C in the terminal does not reach it). Not
// thread-safe.
#pragma once
#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mw {

class Process {
 public:
  enum class Input { inherited, none, pipe };
  // `command` is the program and its arguments, as for execvp. Throws PROCESS if it cannot be started.
  Process(const std::vector<std::string>& command, Input input);
  ~Process();  // kills the process group unless wait() was called
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void kill(int signal) const;  // signals the process group
  int wait();                   // returns the exit code, or 128 + the signal that ended the process

  struct Streams {
    std::function<std::string_view()> input{};  // returns the next bytes, valid until the next call; empty at the end
    std::function<void(std::string_view)> out, err;
  };
  // Waits up to `timeout` for the pipes, then copies the available data. Returns false when both outputs have ended.
  bool transfer(const Streams& streams, std::chrono::milliseconds timeout);

 private:
  void write_input(const Streams& streams);
  pid_t pid_ = -1;
  int in_ = -1, out_ = -1, err_ = -1;
  std::string_view unwritten_;
  std::optional<int> status_;
};

// Splits a stream into lines without their line ends and skips empty ones. Keeps the first kMaxLineBytes bytes of a
// line and drops the rest.
class LineSplitter {
 public:
  static constexpr size_t kMaxLineBytes = 16 << 20;
  template <class OnLine>
  void feed(std::string_view bytes, const OnLine& on_line) {
    while (!bytes.empty()) {
      const size_t length = std::min(bytes.find('\n'), bytes.size());
      const size_t kept = std::min(length, kMaxLineBytes - line_.size());
      line_.append(bytes.substr(0, kept));
      dropped_bytes_ += length - kept;
      bytes.remove_prefix(length);
      if (bytes.empty()) return;
      bytes.remove_prefix(1);
      ++consumed_bytes_;
      finish(on_line);
    }
  }
  template <class OnLine>
  void finish(const OnLine& on_line) {  // at the end of the stream: the last line may lack its line end
    consumed_bytes_ += line_.size() + dropped_bytes_;
    if (dropped_bytes_ == 0 && !line_.empty() && line_.back() == '\r') line_.pop_back();
    const std::string line = std::exchange(line_, {});
    if (!line.empty()) on_line(line);
    dropped_bytes_ = 0;
  }
  // Within on_line: bytes of the stream up to the end of this line, and bytes of this line that were dropped.
  std::uint64_t consumed_bytes() const { return consumed_bytes_; }
  std::uint64_t dropped_bytes() const { return dropped_bytes_; }

 private:
  std::string line_;
  std::uint64_t consumed_bytes_ = 0, dropped_bytes_ = 0;
};

}  // namespace mw
