// SPDX-License-Identifier: Apache-2.0
#include "core/launch/call.h"

#include <signal.h>

#include <condition_variable>
#include <mutex>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/process.h"
#include "core/base/units.h"
#include "core/recipes/quote.h"

namespace mw::launch {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kNoPython = 97;
constexpr size_t kMostSaid = 4096;

// remote.py comes first on standard input, after its length; so nothing has to be there but Python.
std::string script(const std::vector<std::string>& arguments) {
  std::string out = "command -v python3 >/dev/null 2>&1 || exit " + std::to_string(kNoPython) + "; exec python3 -c " +
                    recipes::shell_quoted(
                        "import sys;b=sys.stdin.buffer;"
                        "exec(compile(b.read(int(b.readline())),'remote.py','exec'))");
  for (const std::string& a : arguments) out += " " + recipes::shell_quoted(a);
  return out;
}

[[noreturn]] void refused(const Json& head) {
  const auto text = [&](const char* key) {
    const auto at = head.find(key);
    return at != head.end() && at->is_string() ? valid_utf8(at->get<std::string>()) : std::string();
  };
  throw Error({.id = text("id"),
               .message = text("message"),
               .file = text("file"),
               .found = text("found"),
               .expected = text("expected"),
               .fix = text("fix")});
}

// The last words of ssh and its like, on one line.
std::string last_words(std::string said) {
  while (!said.empty() && std::isspace(static_cast<unsigned char>(said.back()))) said.pop_back();
  std::string out;
  for (const char c : valid_utf8(said)) {
    if (c == '\r') continue;
    if (c == '\n')
      out += "; ";
    else
      out += c;
  }
  return out;
}

// What one call has come to.
struct State {
  Answer answer;
  std::optional<Json> error;
  FrameReader reader;
  Clock::time_point heard = Clock::now();
};

void read_frame(State& state, const Frame& frame, const OnFrame& on_frame) {
  state.heard = Clock::now();
  if (frame.kind == "error") state.error = frame.head;
  if (frame.kind == "end") {
    state.answer.ended = Ended::answered;
    state.answer.end = frame.head;
  }
  if (frame.kind != "error" && frame.kind != "end") on_frame(frame);
}

}  // namespace

std::string in_words(milliseconds time) {
  return to_text(Seconds(static_cast<double>(time.count()) / 1000));
}

Answer call(const Target& target, const std::filesystem::path& resources, const Call& what, const OnFrame& on_frame,
            const Timing& timing, std::stop_token stop) {
  std::string program = read_file(resources / "launch" / "remote.py", 1 << 20);
  program.insert(0, std::to_string(program.size()) + "\n");
  const std::vector<std::string> command = command_line(target, script(what.arguments));
  State state;
  bool sent = false;
  const OnFrame each = [&](const Frame& frame) { read_frame(state, frame, on_frame); };
  const Process::Streams streams{.input = [&]() -> std::string_view {
                                   state.heard = Clock::now();  // what is taken is a sign of life, too
                                   if (sent) return what.input ? what.input() : std::string_view();
                                   sent = true;
                                   return program;
                                 },
                                 .out = [&](std::string_view bytes) { state.reader.feed(bytes, each); },
                                 .err =
                                     [&](std::string_view bytes) {
                                       state.answer.said.append(bytes);
                                       if (state.answer.said.size() > kMostSaid)
                                         state.answer.said.erase(0, state.answer.said.size() - kMostSaid);
                                     }};
  Process process(command, Process::Input::pipe);
  bool silent = false;
  while (process.transfer(streams, milliseconds(100))) {
    if (state.error || state.answer.ended == Ended::answered) break;
    if (stop.stop_requested()) {
      process.kill(SIGKILL);
      state.answer.ended = Ended::stopped;
      return state.answer;
    }
    silent = Clock::now() - state.heard > timing.silence;
    if (silent) break;
  }
  if (state.error) refused(*state.error);
  if (state.answer.ended == Ended::answered) return state.answer;
  if (silent) process.kill(SIGKILL);
  const int exit_code = process.wait();
  if (exit_code == kNoPython)
    throw Error({.id = "LAUNCH-PYTHON",
                 .message = "there is no python3",
                 .place = target.text,
                 .expected = "Python 3.6 or newer in the PATH of a login",
                 .fix = "install it there"});
  const std::string said = last_words(state.answer.said);
  state.answer.said = silent         ? "nothing was heard for " + in_words(timing.silence)
                      : said.empty() ? "it ended with exit code " + std::to_string(exit_code)
                                     : said;
  return state.answer;
}

Answer persistently(const std::function<Answer(const OnFrame& counting)>& once, const OnFrame& on_frame,
                    const Timing& timing, const OnWait& waiting, std::stop_token stop) {
  auto heard = Clock::now();
  milliseconds wait = timing.first_wait;
  const OnFrame counting = [&](const Frame& frame) {
    heard = Clock::now();
    wait = timing.first_wait;
    on_frame(frame);
  };
  for (;;) {
    std::string why;
    try {
      const Answer answer = once(counting);
      if (answer.ended != Ended::lost) return answer;
      why = answer.said;
    } catch (const Error& error) {
      if (error.problem().id != "LAUNCH-STREAM") throw;
      why = error.what();
    }
    if (Clock::now() - heard > timing.give_up)
      throw Error({.id = "LAUNCH-LOST",
                   .message = "no connection for " + in_words(timing.give_up),
                   .found = why,
                   .fix = "the job may go on: reattach when it can be reached again"},
                  Error::Kind::failed);
    waiting(why, wait);
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any wake;
    if (wake.wait_for(lock, stop, wait, [] { return false; }); stop.stop_requested()) return {.ended = Ended::stopped};
    wait = std::min(wait * 2, timing.longest_wait);
  }
}

Error unreachable(const Target& target, const Answer& answer) {
  const bool ssh = target.where == Where::ssh;
  std::string by_hand = "ssh ";
  if (!target.ssh_config.empty()) by_hand += "-F " + recipes::shell_quoted(target.ssh_config.string()) + " ";
  if (!target.port.empty()) by_hand += "-p " + target.port + " ";
  return Error({.id = "LAUNCH-REACH",
                .message = "it cannot be reached",
                .place = target.text,
                .found = answer.said,
                .fix = ssh ? "try the same by hand, until it asks nothing any more: " + by_hand + target.host
                           : "try the same by hand: " + command_line(target, "true").back()});
}

}  // namespace mw::launch
