// SPDX-License-Identifier: Apache-2.0
// Problem describes one fault for the user: file, place, what was found, what was expected and the fix. Validation
// collects Problems; any function that cannot continue throws an Error with one. Thread-safe.
#pragma once
#include <stdexcept>
#include <string>
#include <vector>

namespace mw {

enum class Severity { info, warning, error };

struct Problem {
  std::string id{};  // stable, e.g. "FILE-SHORT"; scripts and tests may match it
  Severity severity = Severity::error;
  std::string message{};   // one sentence
  std::string file{};      // path, or empty
  std::string place{};     // position in the file or an experiment key: "line 12", "lora.rank"
  std::string found{};     // the offending value
  std::string expected{};  // valid values
  std::string fix{};       // what to do
  bool operator==(const Problem&) const = default;
};

// "data.jsonl, line 12: not valid JSON (found: ...; expected: ...). Fix: ..."
std::string to_text(const Problem& problem);
std::string to_string(Severity severity);

class Error : public std::runtime_error {
 public:
  enum class Kind { bad_input, failed, cancelled };  // exit codes 2, 1, 130

  explicit Error(Problem problem, Kind kind = Kind::bad_input);
  // `details` holds what an error may name besides; its own id and message are not used.
  Error(std::string id, std::string message, Problem details = {}, Kind kind = Kind::bad_input);
  const Problem& problem() const { return problem_; }
  Kind kind() const { return kind_; }

 private:
  Problem problem_;
  Kind kind_;
};

// For work that was stopped through its stop_token: "`work` was cancelled".
Error cancelled(const std::string& work);
// For a failed system call (disk full, no permission): "`action`: <text of errno>", with a fix for common errors.
Error system_error(const std::string& action, const std::string& file, int errno_value);

}  // namespace mw
