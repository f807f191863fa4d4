// SPDX-License-Identifier: Apache-2.0
#include "core/runs/watched.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>

namespace mw::runs {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;
constexpr size_t kMostLine = 16 << 20;  // longer ones are cut into several
constexpr auto kPatience = 10s;

[[noreturn]] void cannot(const std::string& program, int error) {
  throw Error({.id = "WATCH",
               .message = "the command cannot be started: " + std::string(std::strerror(error)),
               .place = program,
               .fix = "give the program's path, or one that is in PATH"});
}

struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw system_error("cannot open a pipe", "", errno);
    read = ends[0], write = ends[1];
  }
  ~Pipe() { close_read(), close_write(); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_read() {
    if (read >= 0) ::close(std::exchange(read, -1));
  }
  void close_write() {
    if (write >= 0) ::close(std::exchange(write, -1));
  }
};

// Lines out of pieces.
class Lines {
 public:
  template <class OnLineOf>
  void feed(std::string_view bytes, const OnLineOf& on_line) {
    for (const char c : bytes) {
      if (c != '\n' && line_.size() < kMostLine) {
        line_ += c;
        continue;
      }
      if (c != '\n') rest_ = c;
      end(on_line);
    }
  }
  template <class OnLineOf>
  void end(const OnLineOf& on_line) {
    if (!line_.empty() && line_.back() == '\r') line_.pop_back();
    if (!line_.empty()) on_line(line_);
    line_.assign(rest_);
    rest_.clear();
  }

 private:
  std::string line_, rest_;
};

class Child {
 public:
  Child(const std::vector<std::string>& command, Pipe& out, Pipe& err) {
    std::vector<char*> arguments;
    for (const std::string& a : command) arguments.push_back(const_cast<char*>(a.c_str()));
    arguments.push_back(nullptr);
    Pipe failure;  // says why exec failed; closed by a success
    pid_ = ::fork();
    if (pid_ < 0) throw system_error("cannot start a process", command.front(), errno);
    if (pid_ == 0) {  // only async-signal-safe calls from here on
      ::setpgid(0, 0);
      ::dup2(out.write, STDOUT_FILENO);
      ::dup2(err.write, STDERR_FILENO);
      ::execvp(arguments[0], arguments.data());
      const int error = errno;
      (void)!::write(failure.write, &error, sizeof error);
      ::_exit(127);
    }
    ::setpgid(pid_, pid_);
    out.close_write(), err.close_write(), failure.close_write();
    int error = 0;
    if (::read(failure.read, &error, sizeof error) == sizeof error) {
      reap();
      cannot(command.front(), error);
    }
  }
  ~Child() {
    if (!status_) kill(SIGKILL), reap();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void kill(int signal) const { ::kill(-pid_, signal); }
  int reap() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return *status_;
  }

 private:
  pid_t pid_ = -1;
  std::optional<int> status_;
};

// What becomes of a run's lines.
class Recorder {
 public:
  Recorder(Store& store, RunId run, const EventSink& sink, const OnLine& on_line)
      : store_(store), run_(std::move(run)), sink_(sink), on_line_(on_line) {}

  void line(const std::string& text) {
    if (auto event = event_of_line(text))
      take(std::move(*event));
    else
      said(text, "info");
  }
  void said(const std::string& text, const char* level) {
    record({now(), event::Log{level, text}});
    on_line_(text);
  }
  void finish(int exit_code, bool stopped) {
    if (finished) return;
    event::Finished f;
    f.state = stopped ? RunState::cancelled : exit_code == 0 ? RunState::done : RunState::failed;
    f.steps = steps_;
    f.seconds = now();
    if (f.state == RunState::failed) f.error = "the command ended with exit code " + std::to_string(exit_code);
    take({f.seconds, f});
  }
  std::optional<event::Finished> finished;

 private:
  double now() const { return std::chrono::duration<double>(Clock::now() - begun_).count(); }
  void record(const Event& event) {
    store_.append(run_, event);
    sink_(event);
  }
  void take(Event event) {
    if (finished) return;  // the last word is the last
    if (event.time_s <= 0) event.time_s = now();
    if (auto* started = std::get_if<event::Started>(&event.body)) {
      if (!started->info.is_object()) started->info = Json::object();
      if (!started->info.contains("source")) started->info["source"] = "imported";
      started->info["run"] = run_;
    }
    if (const auto* metric = std::get_if<event::Metric>(&event.body)) steps_ = std::max(steps_, metric->step);
    if (const auto* f = std::get_if<event::Finished>(&event.body)) finished = *f;
    record(event);
  }

  Store& store_;
  RunId run_;
  const EventSink& sink_;
  const OnLine& on_line_;
  const Clock::time_point begun_ = Clock::now();
  long steps_ = 0;
};

// Reads both streams until they end; a stop asks the group to end, later forces it.
void follow(const Child& child, Pipe& out, Pipe& err, Recorder& recorder, const std::stop_token& stop) {
  Lines of_out, of_err;
  const auto to_out = [&](const std::string& line) { recorder.line(line); };
  const auto to_err = [&](const std::string& line) { recorder.said(line, "info"); };
  std::optional<Clock::time_point> asked;
  std::array<char, 65536> bytes{};
  while (out.read >= 0 || err.read >= 0) {
    if (stop.stop_requested() && !asked) {
      child.kill(SIGTERM);
      asked = Clock::now();
    } else if (asked && Clock::now() - *asked > kPatience) {
      child.kill(SIGKILL);
    }
    std::array<pollfd, 2> both{{{out.read, POLLIN, 0}, {err.read, POLLIN, 0}}};  // -1 is left out by poll
    if (::poll(both.data(), both.size(), 100) < 0 && errno != EINTR) throw system_error("cannot wait", "", errno);
    for (Pipe* pipe : {&out, &err}) {
      if ((both[pipe == &out ? 0 : 1].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
      const ssize_t n = ::read(pipe->read, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      const auto end = [&](auto& lines, const auto& to) {
        if (n > 0) return lines.feed({bytes.data(), static_cast<size_t>(n)}, to);
        lines.end(to);
        pipe->close_read();
      };
      if (pipe == &out)
        end(of_out, to_out);
      else
        end(of_err, to_err);
    }
  }
}

Experiment document_of(const WatchRequest& request) {
  Experiment e;
  std::string command;
  for (const std::string& a : request.command) command += (command.empty() ? "" : " ") + a;
  e.set_value("name", request.name.empty() ? valid_utf8(request.command.front()) : request.name);
  e.set_value("note", valid_utf8("watched: " + command));
  return e;
}

}  // namespace

std::optional<Event> event_of_line(const std::string& line) {
  const size_t first = line.find_first_not_of(" \t");
  if (first == std::string::npos || line[first] != '{') return std::nullopt;
  try {
    return event_from_json(parse_json(line, "line"));
  } catch (const Error&) {
    return std::nullopt;
  }
}

Outcome watch(const WatchRequest& request, const EventSink& sink, const OnLine& on_line, std::stop_token stop) {
  if (request.command.empty())
    throw Error(
        {.id = "USAGE", .message = "no command is given", .fix = "for example: meshwright watch -- python train.py"});
  Store store(request.runs_folder);
  Pipe out, err;
  Child child(request.command, out, err);  // before the run: what cannot start leaves none
  const RunId run = store.create(document_of(request), request.name);
  const auto lock = store.lock(run);
  Recorder recorder(store, run, sink, on_line);
  const Event begun{0, event::Started{{{"source", "imported"}, {"run", run}, {"command", request.command}}}};
  store.append(run, begun);
  sink(begun);
  follow(child, out, err, recorder, stop);
  const int exit_code = child.reap();
  recorder.finish(exit_code, stop.stop_requested());
  store.flush();
  const bool failed = recorder.finished->state == RunState::failed;
  return {*recorder.finished, failed ? std::optional(Error::Kind::failed) : std::nullopt};
}

}  // namespace mw::runs
