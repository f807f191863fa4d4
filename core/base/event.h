// SPDX-License-Identifier: Apache-2.0
// The one event stream: the engine, simulators, external processes and imports emit these, the run store appends
// them, the pages draw them, `run --json` prints them. Plain values, any thread.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/json.h"
#include "core/base/ledger.h"

namespace mw {

enum class RunState { queued, running, paused, done, failed, cancelled };
std::string_view to_string(RunState state);
RunState parse_run_state(std::string_view name);  // throws Error on an unknown name

namespace event {

struct Started {
  Json info;  // model, parameters, device capacity, predicted ledger, steps: what a page needs before the first step
};
struct Metric {
  std::string name;  // train/loss, train/grad_norm, train/learning_rate, train/tokens_per_second, eval/loss, ...
  long step = 0;
  double value = 0;
};
struct Memory {
  int device = 0;
  long step = 0;
  std::string phase;  // load, forward, backward, optimizer, eval, generate
  Ledger bytes;       // at this phase's peak
  Bytes peak;         // largest total since the run began
};
struct Traffic {  // what the virtual devices of a mesh sent to each other in one step
  struct Entry {  // collectives of one kind, axis and purpose; names as core/mesh/collectives/collectives.h writes them
    std::string kind, axis, phase, cause;  // "all-gather", "fsdp", "forward", "weights gathered ..."
    int layer = -1;                        // -1: model level
    std::int64_t calls = 0;                // of each device
    Bytes bytes;                           // sent by all devices together
    double seconds = 0, waited = 0;        // of one device, their mean; seconds contain the waiting for others
    std::optional<Bytes> planned{};        // what `bytes` should be; empty: the source does not say
    bool operator==(const Entry&) const = default;
  };
  struct Device {
    Bytes bytes;  // sent
    double seconds = 0, waited = 0;
    bool operator==(const Device&) const = default;
  };
  long step = 0;
  std::vector<Entry> entries;
  std::vector<Device> devices;  // by index
};
struct Sample {
  long step = 0;
  std::string prompt, text, expected;  // expected may be empty
  std::string verdict;                 // "right", "wrong" or "" where nothing is expected
};
struct Checkpoint {
  long step = 0;
  std::string path;
};
struct Point {       // one result of a sweep, as the command that made it prints it under "points"
  long step = 0;     // 1, 2, ... in order
  std::string kind;  // size
  Json values;
};
struct Log {
  std::string level;  // info, warning, error
  std::string text;
};
struct Progress {
  std::string phase;  // what is being done, for people
  long done = 0, total = 0;
};
struct StateChanged {
  RunState state = RunState::running;
};
struct Finished {
  RunState state = RunState::done;
  long steps = 0;
  long tokens = 0;  // real tokens seen in training, without padding
  double seconds = 0;
  Bytes peak;
  std::string error;  // why it failed, or empty
  Json summary;       // e.g. answers right before and after
};

}  // namespace event

struct Event {
  double time_s = 0;  // since the run started, wall clock
  std::variant<event::Started, event::Metric, event::Memory, event::Sample, event::Checkpoint, event::Log,
               event::Progress, event::StateChanged, event::Finished, event::Point, event::Traffic>
      body;
};

// The JSON object that `run --json` prints (text made valid UTF-8, NaN and infinities null); `run` is added to started
// and finished. event_from_json accepts what to_json writes and what external jobs print; throws Error on an unknown or
// malformed event.
Json to_json(const Event& event, const std::string& run_id);
Event event_from_json(const Json& json);

// {category: bytes, ..., total}; reading ignores unknown names, throws Error on what is no object of numbers.
Json to_json(const Ledger& ledger);
Ledger ledger_from_json(const Json& json);

// Telemetry may be dropped by a slow viewer; the rest may not.
bool is_telemetry(const Event& event);

using EventSink = std::function<void(const Event&)>;

}  // namespace mw
