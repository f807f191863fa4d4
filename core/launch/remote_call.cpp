// SPDX-License-Identifier: Apache-2.0
#include "core/launch/remote_call.h"

#include <signal.h>
#include <condition_variable>
#include <mutex>

#include "core/base/files.h"
#include "core/base/process.h"
#include "core/base/text.h"
#include "core/base/units.h"

namespace mw::launch {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kNoPython = 97;
constexpr size_t kMostSaid = 4096;

// Standard input starts with the length and the text of remote.py, so the target only needs Python.
std::string script(const std::vector<std::string>& arguments) {
  std::string out = "command -v python3 >/dev/null 2>&1 || exit " + std::to_string(kNoPython) + "; exec python3 -c " +
                    shell_quoted(
                        "import sys;b=sys.stdin.buffer;"
                        "exec(compile(b.read(int(b.readline())),'remote.py','exec'))");
  for (const std::string& a : arguments) out += " " + shell_quoted(a);
  return out;
}

[[noreturn]] void refused(const Json& head) {
  const auto text = [&](const char* key) {
    const auto at = head.find(key);
    return at != head.end() && at->is_string() ? valid_utf8(at->get<std::string>()) : std::string();
  };
  throw Error(text("id"), text("message"),
              {.file = text("file"), .found = text("found"), .expected = text("expected"), .fix = text("fix")});
}

// The last output of the connecting program, on one line.
std::string last_output(std::string output) {
  while (!output.empty() && std::isspace(static_cast<unsigned char>(output.back()))) output.pop_back();
  std::string out;
  for (const char c : valid_utf8(output)) {
    if (c == '\r') continue;
    if (c == '\n')
      out += "; ";
    else
      out += c;
  }
  return out;
}

// State of a call.
struct State {
  CallResult answer;
  std::optional<Json> error;
  FrameReader reader;
  Clock::time_point last_frame = Clock::now();
};

void read_frame(State& state, const Frame& frame, const OnFrame& on_frame) {
  state.last_frame = Clock::now();
  if (frame.kind == "error") state.error = frame.head;
  if (frame.kind == "end") {
    state.answer.outcome = CallOutcome::answered;
    state.answer.end = frame.head;
  }
  if (frame.kind != "error" && frame.kind != "end") on_frame(frame);
}

constexpr std::string_view kMark = "@mw ";
constexpr size_t kMostHead = 1 << 18, kMostBytes = 1 << 20;

[[noreturn]] void broken(const std::string& message, std::string_view found) {
  throw Error("LAUNCH-STREAM", message,
              {.found = valid_utf8(found.substr(0, 80)), .expected = "frames of Meshwright's remote.py"},
              Error::Kind::failed);
}

Json head_of(std::string_view line) try {
  Json head = parse_json(line.substr(kMark.size()), "frame");
  if (!head.is_object() || !head.contains("kind") || !head["kind"].is_string()) broken("a frame has no kind", line);
  return head;
} catch (const Error& error) {
  if (error.problem().id == "LAUNCH-STREAM") throw;
  broken("a frame cannot be read", line);
}

size_t size_of(const Json& head, std::string_view line) {
  const auto size = head.find("size");
  if (size == head.end()) return 0;
  if (!size->is_number_unsigned() || size->get<std::uint64_t>() > kMostBytes) broken("a frame has no valid size", line);
  return size->get<size_t>();
}

}  // namespace

std::string duration_text(milliseconds time) {
  return to_text(Seconds(static_cast<double>(time.count()) / 1000));
}

CallResult call_remote(const LaunchTarget& target, const std::filesystem::path& resources, const RemoteCall& what,
                       const OnFrame& on_frame, const Timing& timing, std::stop_token stop) {
  std::string program = read_file(resources / "launch" / "remote.py", 1 << 20);
  program.insert(0, std::to_string(program.size()) + "\n");
  const std::vector<std::string> command = command_line(target, script(what.arguments));
  State state;
  bool sent = false;
  const OnFrame each = [&](const Frame& frame) { read_frame(state, frame, on_frame); };
  const Process::Streams streams{.input = [&]() -> std::string_view {
                                   state.last_frame = Clock::now();  // accepted input counts as activity
                                   if (sent) return what.input ? what.input() : std::string_view();
                                   sent = true;
                                   return program;
                                 },
                                 .out = [&](std::string_view bytes) { state.reader.feed(bytes, each); },
                                 .err =
                                     [&](std::string_view bytes) {
                                       state.answer.diagnostics.append(bytes);
                                       if (state.answer.diagnostics.size() > kMostSaid)
                                         state.answer.diagnostics.erase(0, state.answer.diagnostics.size() - kMostSaid);
                                     }};
  Process process(command, Process::Input::pipe);
  bool silent = false;
  while (process.transfer(streams, milliseconds(100))) {
    if (state.error || state.answer.outcome == CallOutcome::answered) break;
    if (stop.stop_requested()) {
      process.kill(SIGKILL);
      state.answer.outcome = CallOutcome::stopped;
      return state.answer;
    }
    silent = Clock::now() - state.last_frame > timing.silence;
    if (silent) break;
  }
  if (state.error) refused(*state.error);
  if (state.answer.outcome == CallOutcome::answered) return state.answer;
  if (silent) process.kill(SIGKILL);
  const int exit_code = process.wait();
  if (exit_code == kNoPython)
    throw Error("LAUNCH-PYTHON", "python3 is not installed",
                {.place = target.text,
                 .expected = "Python 3.6 or newer in the PATH of a login shell",
                 .fix = "install Python on the target"});
  const std::string output = last_output(state.answer.diagnostics);
  state.answer.diagnostics = silent           ? "no data received for " + duration_text(timing.silence)
                             : output.empty() ? "exit code " + std::to_string(exit_code)
                                              : output;
  return state.answer;
}

CallResult retry_until_answered(const std::function<CallResult(const OnFrame& counting)>& once, const OnFrame& on_frame,
                                const Timing& timing, const OnWait& waiting, std::stop_token stop) {
  auto last_frame = Clock::now();
  milliseconds wait = timing.first_wait;
  const OnFrame counting = [&](const Frame& frame) {
    last_frame = Clock::now();
    wait = timing.first_wait;
    on_frame(frame);
  };
  for (;;) {
    std::string why;
    try {
      CallResult answer = once(counting);
      if (answer.outcome != CallOutcome::lost) return answer;
      why = answer.diagnostics;
    } catch (const Error& error) {
      if (error.problem().id != "LAUNCH-STREAM") throw;
      why = error.what();
    }
    if (Clock::now() - last_frame > timing.give_up)
      throw Error("LAUNCH-LOST", "no connection for " + duration_text(timing.give_up),
                  {.found = why, .fix = "reattach when the target is reachable again; the job may still be running"},
                  Error::Kind::failed);
    waiting(why);
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any wake;
    if (wake.wait_for(lock, stop, wait, [] { return false; }); stop.stop_requested())
      return {.outcome = CallOutcome::stopped};
    wait = std::min(wait * 2, timing.longest_wait);
  }
}

Error unreachable(const LaunchTarget& target, const CallResult& answer) {
  const bool ssh = target.where == Where::ssh;
  std::string by_hand = "ssh ";
  if (!target.ssh_config.empty()) by_hand += "-F " + shell_quoted(target.ssh_config.string()) + " ";
  if (!target.port.empty()) by_hand += "-p " + target.port + " ";
  return Error("LAUNCH-REACH", "the target cannot be reached",
               {.place = target.text,
                .found = answer.diagnostics,
                .fix = ssh ? "run this command until it connects without a prompt: " + by_hand + target.host
                           : "run this command to find the cause: " + command_line(target, "true").back()});
}

void FrameReader::feed(std::string_view bytes, const OnFrame& on_frame) {
  buffer_.append(bytes);
  while (take(on_frame)) {
  }
}

bool FrameReader::take(const OnFrame& on_frame) {
  const size_t end = buffer_.find('\n');
  if (end == std::string::npos) {
    if (buffer_.size() <= kMostHead) return false;
    if (has_frame_) broken("a line is too long", buffer_);
    buffer_.clear();
    return false;
  }
  const std::string line = buffer_.substr(0, end);
  if (!line.starts_with(kMark)) {
    if (has_frame_) broken("there is data between frames", line);
    buffer_.erase(0, end + 1);
    return true;
  }
  has_frame_ = true;
  const Json head = head_of(line);
  const size_t size = size_of(head, line);
  if (buffer_.size() - end - 1 < size) return false;
  on_frame({head["kind"].get<std::string>(), head, std::string_view(buffer_).substr(end + 1, size)});
  buffer_.erase(0, end + 1 + size);
  return true;
}

}  // namespace mw::launch
