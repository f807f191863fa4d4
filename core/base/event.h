// SPDX-License-Identifier: Apache-2.0
// The events of a run. The engine, simulators, external processes and imports emit them, the run store appends them,
// pages draw them, and `run --json` prints them as JSON. Plain values.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/enum_names.h"
#include "core/base/json.h"
#include "core/base/ledger.h"

namespace mw {

enum class RunState { queued, running, paused, done, failed, cancelled };
template <>
inline constexpr EnumNames<6> kEnumNames<RunState>{"queued", "running", "paused", "done", "failed", "cancelled"};
RunState parse_run_state(std::string_view name);  // throws EVENT for an unknown name

namespace event {

struct Started {
  Json info;  // known before the first step: model, parameters, device capacity, predicted ledger, number of steps
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
  Ledger bytes;       // at the peak of this phase
  Bytes peak;         // largest total since the start of the run
};
struct StepTraffic {  // communication between the devices of a mesh in one step
  struct Entry {      // collectives of one kind, axis, phase and cause; names from core/mesh/collectives/collectives.h
    std::string kind, axis, phase, cause;  // "all-gather", "fsdp", "forward", "weights gathered ..."
    int layer = -1;                        // -1: model level
    std::int64_t calls = 0;                // per device
    Bytes bytes;                           // sent, summed over all devices
    double seconds = 0, waited = 0;        // mean over devices; `seconds` includes `waited`, the time at barriers
    std::optional<Bytes> planned{};        // predicted value of `bytes`; empty if the source gives none
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
  std::string prompt, text, expected;  // `expected` may be empty
  std::string verdict;                 // "right", "wrong", or "" if `expected` is empty
};
struct Checkpoint {
  long step = 0;
  std::string path;
};
struct ResultPoint {  // one result of a sweep, in the form that the command prints under "points"
  long step = 0;      // 1, 2, ... in order
  std::string kind;   // size
  Json values;
  bool operator==(const ResultPoint&) const = default;
};
struct Log {
  std::string level;  // info, warning, error
  std::string text;
};
struct Progress {
  std::string phase;  // text for display
  long done = 0, total = 0;
  bool operator==(const Progress&) const = default;
};
struct StateChanged {
  RunState state = RunState::running;
};
struct Finished {
  RunState state = RunState::done;
  long steps = 0;
  long tokens = 0;  // tokens trained on, without padding
  double seconds = 0;
  Bytes peak;
  std::string error;  // reason of the failure, or empty
  Json summary;       // final results, e.g. accuracy before and after
  bool operator==(const Finished&) const = default;
};

}  // namespace event

// The process of a run on several hosts that sent an event.
struct EventHost {
  int process = 0;
  std::string name;  // of the machine
  bool operator==(const EventHost&) const = default;
};

struct Event {
  double time_s = 0;  // since the run started, wall clock
  std::variant<event::Started, event::Metric, event::Memory, event::Sample, event::Checkpoint, event::Log,
               event::Progress, event::StateChanged, event::Finished, event::ResultPoint, event::StepTraffic>
      body;
  std::optional<EventHost> host = std::nullopt;  // empty: the run has one process
};

// One object {"event": kind, ..., "time_s"}; text becomes valid UTF-8, NaN and infinities become null, and URLs lose
// their credentials. `run_id` is added to started and finished events unless it is empty.
Json to_json(const Event& event, const std::string& run_id);
// Accepts the output of to_json and the shorter events of external jobs. Throws EVENT for an unknown or malformed one.
Event event_from_json(const Json& json);

// {category: bytes, ..., total}. Reading ignores unknown names and throws EVENT unless it is an object of numbers.
Json to_json(const Ledger& ledger);
Ledger ledger_from_json(const Json& json);

// Whether a slow reader may miss this event (metric, memory, traffic, progress).
bool is_telemetry(const Event& event);

using EventSink = std::function<void(const Event&)>;

// Returns event_from_json(parse_json(text, source)), bit for bit and with its errors, in a tenth of the time for the
// metrics that to_json() writes, the events that a long run has by the million.
Event event_from_text(std::string_view text, const std::string& source);

using CountProgress = std::function<void(long done, long total)>;

// Limits how many progress events a run records. Not thread-safe. Passes on every event but most of the progress within
// a phase: one in a tenth of a second (of the time of the events), and always the first and the last of a phase.
class ProgressLimit {
 public:
  static constexpr double kSeconds = 0.1;
  explicit ProgressLimit(EventSink next) : next_(std::move(next)) {}
  void operator()(const Event& event);
  void end_phase();  // passes on the last progress, if it was not; call it at the end of the run

 private:
  void pass(const Event& event);
  EventSink next_;
  std::optional<event::Progress> phase_, waiting_;  // the last that was passed on; newer than it
  double passed_s_ = 0, last_s_ = 0;                // time of phase_, and of any event that was passed on
};

}  // namespace mw
