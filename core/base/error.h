// SPDX-License-Identifier: Apache-2.0
// The one error of Meshwright: which file, where in it, what was found, what was expected, and the fix.
// Thrown as Error by anything that cannot go on; collected as Problem by validation. Any thread.
#pragma once
#include <stdexcept>
#include <string>
#include <vector>

namespace mw {

enum class Severity { info, warning, error };

struct Problem {
  std::string id{};  // stable, e.g. "FILE-SHORT"; the checker uses the ids of its rules (core/lint)
  Severity severity = Severity::error;
  std::string message{};  // one sentence
  std::string file{};     // path, or empty
  std::string place{};    // "line 12", "tensor model.norm.weight", "lora.rank"; an experiment key where one is at fault
  std::string found{};    // what is there
  std::string expected{};  // what should be there
  std::string fix{};       // what to do
};

// "data.jsonl, line 12: not valid JSON (found: ...; expected: ...). Fix: ..."
std::string to_text(const Problem& problem);
std::string to_string(Severity severity);

class Error : public std::runtime_error {
 public:
  enum class Kind { bad_input, failed, cancelled };  // exit codes 2, 1, 130

  explicit Error(Problem problem, Kind kind = Kind::bad_input);
  const Problem& problem() const { return problem_; }
  Kind kind() const { return kind_; }

 private:
  Problem problem_;
  Kind kind_;
};

// The work was stopped through its stop_token; what was done is kept.
Error cancelled(const std::string& what);
// The system refused (disk full, no permission): message from errno.
Error system_error(const std::string& what, const std::string& file, int errno_value);

}  // namespace mw
