// SPDX-License-Identifier: Apache-2.0
// Another program with its streams at hand, in a process group of its own (a Ctrl-C at the terminal is not for it). One
// thread at a time. Errors: PROCESS where it cannot be started, place: the program.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
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
  bool move(const Streams& streams, std::chrono::milliseconds patience);

 private:
  void write_some(const Streams& streams);
  pid_t pid_ = -1;
  int in_ = -1, out_ = -1, err_ = -1;
  std::string_view unwritten_;
  std::optional<int> status_;
};

// Lines out of pieces, without their ends; empty ones are left out. Longer ones than kMost are cut into several.
class Lines {
 public:
  static constexpr size_t kMost = 16 << 20;
  template <class OnLine>
  void feed(std::string_view bytes, const OnLine& on_line) {
    for (const char c : bytes) {
      if (c == '\n') {
        ++taken_;
        end(on_line);
        continue;
      }
      if (line_.size() >= kMost) end(on_line);
      line_ += c;
    }
  }
  template <class OnLine>
  void end(const OnLine& on_line) {
    taken_ += line_.size();
    if (!line_.empty() && line_.back() == '\r') line_.pop_back();
    std::string line;
    line.swap(line_);
    if (!line.empty()) on_line(line);
  }
  // Bytes up to the end of the line that is being handed over, or was last.
  std::uint64_t taken() const { return taken_; }

 private:
  std::string line_;
  std::uint64_t taken_ = 0;
};

}  // namespace mw
