// SPDX-License-Identifier: Apache-2.0
#include "core/import/follow.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "core/base/files.h"
#include "core/base/process.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/formats/logs/run_log.h"
#include "core/formats/logs/tensorboard.h"
#include "core/formats/logs/vllm_log.h"
#include "core/formats/logs/wandb.h"
#include "core/serve/load/stream_client.h"

namespace mw::importing {

namespace fs = std::filesystem;
namespace {

using FollowClock = std::chrono::steady_clock;

[[noreturn]] void refuse_source(const std::string& source, const std::string& message, const std::string& found,
                                const std::string& expected) {
  throw Error("FOLLOW", message, {.file = source, .found = found, .expected = expected});
}

// Something that grows. read_more() records what is new and returns whether there was anything.
class Growing {
 public:
  Growing() = default;
  Growing(const Growing&) = delete;
  Growing& operator=(const Growing&) = delete;
  virtual ~Growing() = default;
  virtual bool read_more(ExternalRun& run, double now, const std::stop_token& stop) = 0;
  // Set once nothing more can come: how the record ends unless a Finished event said so.
  struct SourceEnd {
    RunState state = RunState::done;
    std::string error{};
  };
  const std::optional<SourceEnd>& end() const { return end_; }
  virtual bool has_events() const { return false; }  // a run of this source ends with a Finished event

 protected:
  std::optional<SourceEnd> end_;
};

class GrowingLines : public Growing {
 public:
  bool has_events() const override { return true; }

 protected:
  void feed(std::string_view bytes, ExternalRun& run, double now) {
    lines_.feed(bytes, [&](const std::string& line) { run.line(line, {now, {}, lines_.dropped_bytes()}); });
  }
  void end_lines(ExternalRun& run, double now, const std::string& what) {
    lines_.finish([&](const std::string& line) { run.line(line, {now, {}, lines_.dropped_bytes()}); });
    end_ = {RunState::failed, what + " ended before the run did"};
  }

 private:
  LineSplitter lines_;
};

// A regular file, a pipe or a device; -1 owns nothing.
class GrowingFile : public GrowingLines {
 public:
  GrowingFile(const std::string& source, int fd) : source_(source), fd_(fd) {
    struct stat about {};
    if (::fstat(fd_, &about) != 0) throw system_error("cannot read", source_, errno);
    regular_ = S_ISREG(about.st_mode);
  }
  ~GrowingFile() override {
    if (fd_ > STDERR_FILENO) ::close(fd_);
  }
  bool read_more(ExternalRun& run, double now, const std::stop_token& stop) override {
    std::array<char, 1 << 16> buffer{};
    bool any = false;
    while (!stop.stop_requested() && !run.finished()) {
      pollfd waiting{fd_, POLLIN, 0};
      if (!regular_ && ::poll(&waiting, 1, 0) <= 0) break;
      const ssize_t n = ::read(fd_, buffer.data(), buffer.size());
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) break;
      if (n < 0) throw system_error("cannot read", source_, errno);
      if (n == 0 && regular_) {
        check_size();
        break;
      }
      if (n == 0) {  // no process has the pipe open for writing; before the first byte one may still come
        if (read_ > 0 || fd_ == STDIN_FILENO) end_lines(run, now, source_ == "-" ? "standard input" : "the pipe");
        break;
      }
      read_ += n;
      any = true;
      feed({buffer.data(), static_cast<size_t>(n)}, run, now);
    }
    return any;
  }

 private:
  void check_size() {
    struct stat about {};
    if (::fstat(fd_, &about) == 0 && about.st_size < read_)
      end_ = {RunState::failed, "the file became shorter while it was followed"};
  }
  std::string source_;
  int fd_;
  bool regular_ = false;
  off_t read_ = 0;
};

class GrowingUrl : public GrowingLines {
 public:
  explicit GrowingUrl(const std::string& url) : client_({.url = url, .timeout_s = 5}) {}
  bool read_more(ExternalRun& run, double now, const std::stop_token& stop) override {
    bool any = false;
    const auto answer = client_.stream(
        "", read_,
        [&](std::string_view bytes) {
          any = true;
          read_ += bytes.size();
          feed(bytes, run, now);
          return !run.finished();
        },
        stop);
    constexpr int kPatience = 5, kNothingNew = 416;
    if (any || answer.status == 200 || answer.status == 206 || answer.status == kNothingNew)
      failures_ = 0;
    else if (++failures_ == kPatience && !stop.stop_requested())
      end_ = {RunState::failed, answer.status == 0 ? answer.error : "HTTP status " + std::to_string(answer.status)};
    return any;
  }
  // Throws FOLLOW if the server does not answer.
  void check(const std::string& shown) {
    const auto answer = client_.stream("", 0, [](std::string_view) { return false; }, {});
    if (answer.status != 200)
      refuse_source(shown, "the server does not send the events",
                    answer.status == 0 ? answer.error : "HTTP status " + std::to_string(answer.status),
                    "HTTP status 200");
  }

 private:
  serve::StreamClient client_;
  std::uint64_t read_ = 0;
  int failures_ = 0;
};

class VllmMetrics : public Growing {
 public:
  explicit VllmMetrics(const std::string& url) : client_({.url = url, .timeout_s = 5}) {}
  bool read_more(ExternalRun& run, double now, const std::stop_token&) override {
    const auto answer = client_.get("");
    constexpr int kPatience = 5;
    if (answer.status == 200) {
      failures_ = 0;
      std::vector<Event> events = log_.take_metrics(answer.body);
      for (Event& event : events) {
        event.time_s = now;
        run.record(event);
      }
      return !events.empty();
    }
    if (++failures_ == kPatience) end_ = {RunState::done, {}};  // the server was stopped, which is how serving ends
    return false;
  }
  void check(const std::string& shown) {
    const auto answer = client_.get("");
    if (answer.status != 200 || log_.take_metrics(answer.body).empty())
      refuse_source(shown, "the server does not send metrics of vLLM",
                    answer.status == 0 ? answer.error : "HTTP status " + std::to_string(answer.status),
                    "HTTP status 200 and vllm:... values");
    log_ = {};
  }

 private:
  serve::StreamClient client_;
  formats::VllmLog log_;
  int failures_ = 0;
};

// Log files of W&B, TensorBoard and transformers, whose values become metrics.
class GrowingLog : public Growing {
 public:
  explicit GrowingLog(fs::path path) : path_(std::move(path)) {}
  bool read_more(ExternalRun& run, double now, const std::stop_token&) override {
    const formats::LogKind kind = formats::log_kind(path_);
    if (kind == formats::LogKind::none) return false;  // an empty folder, so far
    std::vector<formats::Scalar> scalars;
    for (const fs::path& file : formats::log_files(path_)) read_file_of(kind, file, scalars);
    for (const formats::Scalar& s : scalars) {
      if (s.wall_s > 0 && (first_wall_ == 0 || s.wall_s < first_wall_)) first_wall_ = s.wall_s;
      last_ = std::max(last_, s.wall_s > 0 ? s.wall_s - first_wall_ : now);
      run.record({last_, event::Metric{s.name, s.step, s.value}});
    }
    return !scalars.empty();
  }

 private:
  void read_file_of(formats::LogKind kind, const fs::path& file, std::vector<formats::Scalar>& out) {
    const auto append = [&](std::vector<formats::Scalar> more) { out.insert(out.end(), more.begin(), more.end()); };
    if (kind == formats::LogKind::tensorboard) {
      append(boards_.try_emplace(file, file).first->second.read_more());
    } else if (kind == formats::LogKind::wandb) {
      formats::WandbFile& wandb = *wandb_.try_emplace(file, std::make_unique<formats::WandbFile>(file)).first->second;
      append(wandb.read_more());
      if (wandb.log().finished) end_ = SourceEnd{};
    } else {  // rewritten as a whole
      std::error_code error;
      const auto time = fs::last_write_time(file, error);
      if (error || time == written_[file]) return;
      formats::RunLog log = formats::read_log(file);
      written_[file] = time;
      append(
          {log.scalars.begin() + static_cast<std::ptrdiff_t>(std::min(known_, log.scalars.size())), log.scalars.end()});
      known_ = std::max(known_, log.scalars.size());
      if (log.finished) end_ = SourceEnd{};
    }
  }
  fs::path path_;
  std::map<fs::path, formats::TensorboardFile> boards_;
  std::map<fs::path, std::unique_ptr<formats::WandbFile>> wandb_;
  std::map<fs::path, fs::file_time_type> written_;
  size_t known_ = 0;
  double first_wall_ = 0, last_ = 0;
};

std::unique_ptr<Growing> open_source(const std::string& source) {
  if (source.empty()) refuse_source(source, "the source is not given", "nothing", "a path, - or a URL");
  if (source == "-") return std::make_unique<GrowingFile>(source, STDIN_FILENO);
  if (source.find("://") != std::string::npos) {
    if (source.ends_with("/metrics")) {
      auto metrics = std::make_unique<VllmMetrics>(source);
      metrics->check(without_url_secrets(source));
      return metrics;
    }
    auto url = std::make_unique<GrowingUrl>(source);
    url->check(without_url_secrets(source));
    return url;
  }
  if (!path_exists(source)) refuse_source(source, "the source does not exist", "nothing", "a file, a pipe or a folder");
  if (is_folder(source)) return std::make_unique<GrowingLog>(source);
  const bool special = fs::is_fifo(source) || fs::is_character_file(source);
  const formats::LogKind kind = special ? formats::LogKind::none : formats::log_kind(source);
  if (kind != formats::LogKind::none && kind != formats::LogKind::events) return std::make_unique<GrowingLog>(source);
  const int fd = ::open(source.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) throw system_error("cannot open", source, errno);
  return std::make_unique<GrowingFile>(source, fd);
}

experiment::Experiment followed_document(const FollowRequest& request) {
  const std::string shown = valid_utf8(without_url_secrets(request.source));
  experiment::Experiment e;
  e.set_value("name", request.name.empty() ? shown : request.name);
  e.set_value("note", "followed: " + shown);
  return e;
}

}  // namespace

store::RunOutcome follow(const FollowRequest& request, const EventSink& sink, const OnLine& on_line,
                         const std::stop_token& stop) {
  const std::unique_ptr<Growing> source = open_source(request.source);
  store::Store store(request.runs_folder);
  const store::RunId id = store.create(followed_document(request), request.name);
  const auto lock = store.lock(id);
  ExternalRun run(store, id, sink, on_line);
  const auto start = FollowClock::now();
  const std::string shown = valid_utf8(without_url_secrets(request.source));
  run.record({0, event::Started{{{"source", "imported"}, {"run", id}, {"followed", shown}}}});
  double last_news = 0;
  Growing::SourceEnd end{RunState::cancelled, "the source is no longer followed"};
  while (!stop.stop_requested()) {
    const double now = seconds_since(start);
    if (source->read_more(run, now, stop)) last_news = now;
    if (run.finished()) break;
    if (source->end()) {
      end = *source->end();
      break;
    }
    if (request.idle_s > 0 && now - last_news > request.idle_s) {
      end = source->has_events()
                ? Growing::SourceEnd{RunState::failed, "nothing new came for " + number_text(request.idle_s) + " s"}
                : Growing::SourceEnd{};
      break;
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(request.poll_s));
  }
  const event::Finished finished = run.finish(end.state, end.error, {seconds_since(start)});
  const bool failed = finished.state == RunState::failed;
  return {finished, failed ? std::optional(Error::Kind::failed) : std::nullopt};
}

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;
constexpr auto kPatience = 10s;

// Reads both streams until they end; a stop terminates the process group, after a delay by force.
void follow(Process& child, ExternalRun& run, Clock::time_point start, const std::stop_token& stop) {
  const auto at = [&](const LineSplitter& lines) {
    return ExternalRun::At{seconds_since(start), {}, lines.dropped_bytes()};
  };
  LineSplitter out_lines, err_lines;
  const auto to_out = [&](const std::string& line) { run.line(line, at(out_lines)); };
  const auto to_err = [&](const std::string& line) { run.log_output(line, at(err_lines)); };
  const Process::Streams streams{.out = [&](std::string_view bytes) { out_lines.feed(bytes, to_out); },
                                 .err = [&](std::string_view bytes) { err_lines.feed(bytes, to_err); }};
  std::optional<Clock::time_point> stopped_at;
  do {
    if (stop.stop_requested() && !stopped_at) {
      child.kill(SIGTERM);
      stopped_at = Clock::now();
    } else if (stopped_at && Clock::now() - *stopped_at > kPatience) {
      child.kill(SIGKILL);
    }
  } while (child.transfer(streams, 100ms));
  out_lines.finish(to_out);
  err_lines.finish(to_err);
}

experiment::Experiment document_of(const WatchRequest& request) {
  experiment::Experiment e;
  e.set_value("name", request.name.empty() ? valid_utf8(request.command.front()) : request.name);
  e.set_value("note", valid_utf8("watched: " + joined(request.command, " ")));
  return e;
}

}  // namespace

store::RunOutcome watch(const WatchRequest& request, const EventSink& sink, const OnLine& on_line,
                        std::stop_token stop) {
  if (request.command.empty())
    throw Error("USAGE", "the command is missing", {.fix = "for example: meshwright watch -- python train.py"});
  store::Store store(request.runs_folder);
  Process child(request.command,
                Process::Input::inherited);  // before creating the run, so that a failed start leaves no run
  const store::RunId id = store.create(document_of(request), request.name);
  const auto lock = store.lock(id);
  ExternalRun run(store, id, sink, on_line);
  const auto start = Clock::now();
  run.record({0, event::Started{{{"source", "imported"}, {"run", id}, {"command", request.command}}}});
  follow(child, run, start, stop);
  const int exit_code = child.wait();
  const RunState state = stop.stop_requested() ? RunState::cancelled
                         : exit_code == 0      ? RunState::done
                                               : RunState::failed;
  const event::Finished finished = run.finish(
      state,
      state == RunState::failed ? "the command ended with exit code " + std::to_string(exit_code) : std::string(),
      {seconds_since(start)});
  const bool failed = finished.state == RunState::failed;
  return {finished, failed ? std::optional(Error::Kind::failed) : std::nullopt};
}

}  // namespace mw::importing
