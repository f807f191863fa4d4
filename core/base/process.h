// SPDX-License-Identifier: Apache-2.0
// Another program with its streams at hand, in a process group of its own (a Ctrl-C at the terminal is not for it). One
// thread at a time. Errors: PROCESS where it cannot be started, place: the program.
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
  // Program and arguments, as execvp takes them.
  Process(const std::vector<std::string>& command, Input input);
  ~Process();  // ends the group (SIGKILL) where wait() was not called
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void kill(int signal) const;  // the whole group
  int wait();                   // its exit code; 128 + the signal that ended it

  struct Streams {
    std::function<std::string_view()> input{};  // the next bytes, valid until the next call; empty: the end
    std::function<void(std::string_view)> out, err;
  };
  // Moves what can be moved, after waiting at most `patience` for it. False: both outputs have ended.
  bool transfer(const Streams& streams, std::chrono::milliseconds patience);

 private:
  void write_some(const Streams& streams);
  pid_t pid_ = -1;
  int in_ = -1, out_ = -1, err_ = -1;
  std::string_view unwritten_;
  std::optional<int> status_;
};

// Lines out of pieces, without their ends; empty ones are left out. Of a longer line only the first kMaxLineBytes bytes
// are kept, also in memory.
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
      end(on_line);
    }
  }
  template <class OnLine>
  void end(const OnLine& on_line) {
    consumed_bytes_ += line_.size() + dropped_bytes_;
    if (dropped_bytes_ == 0 && !line_.empty() && line_.back() == '\r') line_.pop_back();
    const std::string line = std::exchange(line_, {});
    if (!line.empty()) on_line(line);
    dropped_bytes_ = 0;
  }
  // Of the current line: the bytes up to its end, and those that were dropped.
  std::uint64_t consumed_bytes() const { return consumed_bytes_; }
  std::uint64_t dropped_bytes() const { return dropped_bytes_; }

 private:
  std::string line_;
  std::uint64_t consumed_bytes_ = 0, dropped_bytes_ = 0;
};

}  // namespace mw
