// SPDX-License-Identifier: Apache-2.0
// What another program prints as a run of the store: its event lines (core/base/event.h) are appended and handed on as
// they come, everything else is a log line. The store's thread; callbacks on it, too.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/store/store.h"

namespace mw::importing {

// Longer lines that are no events are shortened in the record, so that no program can fill the disk with one line.
inline constexpr size_t kMostLogLine = 64 << 10;
// "beginning... (N bytes left out)" for a line of more than kMostLogLine bytes; `left_out`: bytes that `text` lacks.
std::string shortened_line(const std::string& text, std::uint64_t left_out = 0);

// A line of its standard output that is no event, or of its standard error.
using OnLine = std::function<void(const std::string& line)>;

// The events of a line: none where it is not one JSON object with an event's name. Others' spelling errors throw
// nothing: a line that is nearly an event is a line.
std::optional<Event> event_of_line(const std::string& line);

class ExternalRun {
 public:
  // sink and on_line outlive it.
  ExternalRun(store::Store& store, store::RunId run, const EventSink& sink, const OnLine& on_line)
      : store_(store), run_(std::move(run)), sink_(sink), on_line_(on_line) {}

  struct At {
    double time_s = 0;           // since the run began, for what does not say it itself
    std::string cursor{};        // see Store::append
    std::uint64_t left_out = 0;  // bytes at the end of the line that were not kept (Lines)
  };
  void line(const std::string& text, const At& at);  // of its standard output
  void said(const std::string& text, const At& at, const char* level = "info");
  void record(const Event& event, const std::string& cursor = {});
  void set_about(Json about) { about_ = std::move(about); }  // what every Started of it says besides
  // Its last word, which is recorded by finish(): what comes after it stays before it in the record.
  const std::optional<event::Finished>& finished() const { return finished_; }
  void set_finished(event::Finished last_word) { finished_ = std::move(last_word); }
  // Where it sent no last word, this is made of what is known of its end.
  event::Finished finish(RunState state, const std::string& error, const At& at, const Json& summary = {});

 private:
  void log(const std::string& text, const At& at, const char* level);
  store::Store& store_;
  store::RunId run_;
  const EventSink& sink_;
  const OnLine& on_line_;
  std::optional<event::Finished> finished_;
  Json about_ = Json::object();
  double last_ = 0;
  long steps_ = 0;
  bool shortening_told_ = false;
};

}  // namespace mw::importing
