// SPDX-License-Identifier: GPL-3.0-or-later
// Output of the command line. Names and messages may contain text from files, so control characters are escaped
// (\x1b): no file can move the cursor or set the title of a terminal.
#pragma once
#include <chrono>
#include <string>

#include "app/subcommand.h"
#include "core/base/json.h"
#include "core/views/run_view.h"

namespace mw::app {

// Like printf(), to standard output and to standard error.
[[gnu::format(printf, 1, 2)]] void print_text(const char* format, ...);
[[gnu::format(printf, 1, 2)]] void print_error(const char* format, ...);

void print_note(const std::string& note);  // "note: ..." on standard error
// Prints the answer of a subcommand: `json` with --json, else `text`.
void print_answer(const CommonOptions& common, const Json& json, const std::string& text);
void print_json(const Json& json);       // an indented document on standard output
void print_json_line(const Json& json);  // one line on standard output, flushed

// Prints "run-3 done: 40 steps in 12 s", with the error if there was one.
void print_external_result(const std::string& run, const event::Finished& finished);

std::string number_or_dash(double value, int digits = 4);  // "-" for NaN

// One line that is updated in place on a terminal, else a plain line every few seconds.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { clear(); }
  void update(const std::string& text);   // rate-limited
  void message(const std::string& text);  // prints a line that stays above the progress line
  void clear();                           // call before printing to the terminal by other means

 private:
  bool terminal_, shown_ = false;
  std::string unseen_{};  // the last text, if it came too soon; only where no terminal is
  std::chrono::steady_clock::time_point last_{};
};

// Prints the progress of a run while its events arrive.
class RunProgressPrinter {
 public:
  void feed(const Event& event);
  const views::RunView& view() const { return view_; }
  void clear() { line_.clear(); }  // call before printing to the terminal by other means

 private:
  void print_metric(const event::Metric& metric);
  void print_progress(const event::Progress& progress);
  ProgressLine line_;
  views::RunView view_;
  double loss_ = 0, tokens_per_second_ = 0;
};

}  // namespace mw::app
