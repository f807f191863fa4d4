// SPDX-License-Identifier: Apache-2.0
// Runs resources/launch/remote.py at a target and reads its answer, a sequence of frames. Blocks the calling thread.
#pragma once
#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/launch/target.h"

namespace mw::launch {

struct Frame {
  std::string kind;
  Json head;
  std::string_view bytes;  // valid during the call
};
using OnFrame = std::function<void(const Frame&)>;

// Parses the frames of resources/launch/remote.py: a line "@mw {json}", then "size" bytes. Skips the output of a login
// before the first frame; throws LAUNCH-STREAM (failed) for other data after it. Use on one thread.
class FrameReader {
 public:
  void feed(std::string_view bytes, const OnFrame& on_frame);

 private:
  bool take(const OnFrame& on_frame);  // consumes one frame, or one line before the first frame
  std::string buffer_;
  bool has_frame_ = false;
};

// Timeouts and retry intervals.
struct Timing {
  std::chrono::milliseconds silence = std::chrono::seconds(45);  // without a frame: the connection is lost
  std::chrono::milliseconds first_wait = std::chrono::milliseconds(500), longest_wait = std::chrono::minutes(1);
  std::chrono::milliseconds give_up = std::chrono::minutes(30);  // stop retrying after this time
};

std::string duration_text(std::chrono::milliseconds time);  // "500 ms", "30:00"

struct RemoteCall {
  std::vector<std::string> arguments;         // put FOLDER TOKEN ...
  std::function<std::string_view()> input{};  // standard input after remote.py; see Process::Streams
};

enum class CallOutcome { answered, lost, stopped };
struct CallResult {
  CallOutcome outcome = CallOutcome::lost;
  Json end = Json::object();  // the last frame, if answered
  std::string diagnostics{};  // output of the connecting program, if lost
};

// Calls `on_frame` for every frame except the last. Throws the errors of remote.py (bad input), LAUNCH-PYTHON if Python
// is missing, and PROCESS if the connecting program is missing.
CallResult call_remote(const LaunchTarget& target, const std::filesystem::path& resources, const RemoteCall& what,
                       const OnFrame& on_frame, const Timing& timing, std::stop_token stop);

// Repeats `once` with increasing waits until it is answered or stopped; a received frame resets the waits. Calls
// `waiting` before each wait. Throws LAUNCH-LOST (failed) after timing.give_up.
using OnWait = std::function<void(const std::string& why)>;
CallResult retry_until_answered(const std::function<CallResult(const OnFrame& counting)>& once, const OnFrame& on_frame,
                                const Timing& timing, const OnWait& waiting, std::stop_token stop);

// LAUNCH-REACH with the diagnostics of the call.
Error unreachable(const LaunchTarget& target, const CallResult& answer);

}  // namespace mw::launch
