// SPDX-License-Identifier: Apache-2.0
// Records the output of another program as a run of the store: event lines (core/base/event.h) are appended and passed
// to the sink as they arrive; other lines become log events. Use on the store's thread; callbacks run on it, too.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/formats/logs/vllm_log.h"
#include "core/store/store.h"

namespace mw::importing {

// Longer lines that are not events are shortened in the record, so that a program cannot fill the disk with one line.
inline constexpr size_t kMostLogLine = 64 << 10;
// Shortens a line of more than kMostLogLine bytes to "beginning... (N bytes left out)". `left_out` counts the bytes of
// the line that `text` already lacks.
std::string shortened_line(const std::string& text, std::uint64_t left_out = 0);

// Receives a line of standard output that is not an event, or a line of standard error.
using OnLine = std::function<void(const std::string& line)>;

// Parses a line as an event. Empty if the line is not a valid event; never throws.
std::optional<Event> event_of_line(const std::string& line);

class ExternalRun {
 public:
  // `store`, `sink` and `on_line` must outlive this object.
  ExternalRun(store::Store& store, store::RunId run, const EventSink& sink, const OnLine& on_line)
      : store_(store), run_(std::move(run)), sink_(sink), on_line_(on_line) {}

  struct At {
    double time_s = 0;           // since the start of the run, for lines without a time of their own
    std::string cursor{};        // see Store::append
    std::uint64_t left_out = 0;  // bytes that `Lines` dropped at the end of the line
  };
  void line(const std::string& text, const At& at);  // a line of standard output: an event or a log line
  void log_output(const std::string& text, const At& at, const char* level = "info");
  void record(const Event& event, const std::string& cursor = {});
  void set_about(Json about) { about_ = std::move(about); }  // fields to add to the info of Started events
  // The program's Finished event. finish() records it, so that lines which arrive after it precede it in the record.
  const std::optional<event::Finished>& finished() const { return finished_; }
  void set_finished(event::Finished finished) { finished_ = std::move(finished); }
  // Records the program's Finished event; without one, a Finished event made from the arguments. A cancelled run is not
  // recorded as failed.
  event::Finished finish(RunState state, const std::string& error, const At& at, const Json& summary = {});

 private:
  void log(const std::string& text, const At& at, const char* level);
  store::Store& store_;
  store::RunId run_;
  const EventSink& sink_;
  const OnLine& on_line_;
  std::optional<event::Finished> finished_;
  Json about_ = Json::object();
  formats::VllmLog vllm_;  // reads lines that are not events
  double last_ = 0;
  long steps_ = 0;
  bool has_noted_shortening_ = false;
};

}  // namespace mw::importing
