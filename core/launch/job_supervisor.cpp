// SPDX-License-Identifier: Apache-2.0
#include "core/launch/job_supervisor.h"

#include <algorithm>
#include <random>

#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/launch/file_transfer.h"

namespace mw::launch {
namespace fs = std::filesystem;
namespace {

const OnFrame kIgnoreFrames = [](const Frame&) {};

std::string why_failed(const Json& end) {
  if (end.value("lost", false))
    return "the job was lost: the target was restarted, or the process that watched the job was killed";
  if (end.contains("error") && end["error"].is_string())
    return "the job could not be started: " + valid_utf8(end["error"].get<std::string>());
  const int code = end.contains("code") && end["code"].is_number_integer() ? end["code"].get<int>() : -1;
  return code < 0 ? "the job was ended by signal " + std::to_string(-code)
                  : "the job ended with exit code " + std::to_string(code);
}

const importing::OnLine kIgnoreLine = [](const std::string&) {};  // the events contain all information

std::string skipped_links(const DownloadReceiver& incoming) {
  std::string text = joined(incoming.link_paths());
  if (const auto more = incoming.links() - static_cast<long long>(incoming.link_paths().size()); more > 0)
    text += " and " + std::to_string(more) + " more";
  return "symbolic links are not fetched: " + text;
}

constexpr const char* kFile = "launch.json";

}  // namespace

JobSupervisor::JobSupervisor(store::Store& store, LaunchRecord record, const ReattachRequest& run,
                             const EventSink& sink, StopTokens stops)
    : store_(store),
      run_id_(run.run),
      record_(std::move(record)),
      resources_(run.resources),
      timing_(run.timing),
      sink_(sink),
      stops_(std::move(stops)),
      lock_(store.lock(run_id_)),
      run_(store, run_id_, sink, kIgnoreLine),
      stream_(run_, store.cursor(run_id_)) {
  run_.set_about({{"launched",
                   {{"on", record_.target.text},
                    {"recipe", std::string(model::to_string(record_.recipe))},
                    {"folder", record_.folder},
                    {"command", record_.command}}}});
}

void JobSupervisor::record_start(const std::string& name) {
  run_.line(Json{{"event", "started"}, {"name", valid_utf8(name)}}.dump(), {});
}

event::Finished JobSupervisor::fail(RunState state, const std::string& error) {
  if (!error.empty()) log(error, "error");
  return run_.finish(state, error, {stream_.seconds()});
}

void JobSupervisor::progress(const char* phase, std::uint64_t done, std::uint64_t total) {
  const std::uint64_t mib = done >> 20;
  if (mib == reported_mib_ && done != total) return;
  reported_mib_ = mib;
  transferring_ = true;
  run_.record({stream_.seconds(), event::Progress{phase, static_cast<long>(mib), static_cast<long>(total >> 20)}});
}

void JobSupervisor::record_transfer_finished() {
  reported_mib_ = 0;
  if (std::exchange(transferring_, false)) run_.record({stream_.seconds(), event::Progress{}});
}

CallResult JobSupervisor::call_target(const RemoteCall& what, const OnFrame& on_frame, const std::stop_token& stop) {
  return call_remote(record_.target, resources_, what, on_frame, timing_, stop);
}

CallResult JobSupervisor::retry(const std::function<CallResult(const OnFrame& counting)>& once, const OnFrame& on_frame,
                                const std::stop_token& stop, const char* during) {
  const OnWait waiting = [&](const std::string& why) { log_lost_connection(why, during); };
  return retry_until_answered(once, on_frame, timing_, waiting, stop);
}

CallResult JobSupervisor::call_until_answered(const RemoteCall& what, const std::stop_token& stop) {
  CallResult answer =
      retry([&](const OnFrame& counting) { return call_target(what, counting, stop); }, kIgnoreFrames, stop);
  if (answer.outcome == CallOutcome::answered) log_reconnected();
  return answer;
}

// Logs the loss once, not at every attempt.
void JobSupervisor::log_lost_connection(const std::string& why, const char* during) {
  if (std::exchange(connection_lost_, true)) return;
  log(record_.target.text + ": connection lost" + during + ": " + why + "; trying again for up to " +
          duration_text(timing_.give_up),
      "warning");
}

void JobSupervisor::log_reconnected() {
  if (std::exchange(connection_lost_, false)) log(record_.target.text + ": connected again");
}

// Starts again after a lost connection. Only an attempt that gets further than all earlier ones resets the retry time.
std::optional<std::uint64_t> JobSupervisor::upload(const fs::path& recipe, const std::vector<std::string>& files,
                                                   FolderUse use) {
  const CombinedStopToken stop(stops_.detach, stops_.cancel);
  std::uint64_t bytes = 0;
  long long furthest = -1;
  const auto once = [&](const OnFrame& counting) {
    UploadStream outgoing(recipe, files,
                          [&](std::uint64_t done, std::uint64_t total) { progress("copying", done, total); });
    bytes = outgoing.bytes();
    const RemoteCall put{
        {"put", record_.folder, record_.token, std::to_string(bytes), use == FolderUse::forced ? "force" : "fresh"},
        [&] { return outgoing.next(); }};
    const OnFrame on_frame = [&](const Frame& frame) {
      log_reconnected();
      const long long got = frame.kind == "beat" ? int_member(frame.head, "bytes", "frame") : 0;
      if (got > furthest) counting(frame);
      furthest = std::max(furthest, got);
    };
    return call_target(put, on_frame, stop.token());
  };
  const CallResult answer = retry(once, kIgnoreFrames, stop.token(), " while the recipe was copied");
  return answer.outcome == CallOutcome::answered ? std::optional(bytes) : std::nullopt;
}

void JobSupervisor::upload_recipe(const fs::path& recipe, const std::vector<std::string>& files, FolderUse use) {
  std::optional<std::uint64_t> bytes;
  try {
    bytes = upload(recipe, files, use);
  } catch (const Error& error) {
    if (error.problem().id != "LAUNCH-LOST") throw;
    throw Error("LAUNCH-COPY", "the recipe could not be copied: no connection for " + duration_text(timing_.give_up),
                {.place = record_.target.text,
                 .found = error.problem().found,
                 .expected = "a connection that lasts until all files are copied",
                 .fix = "launch again with a larger --patience; no job was started"},
                Error::Kind::failed);
  }
  if (!bytes) throw cancelled("the launch");
  log_reconnected();
  record_transfer_finished();
  log("copied " + counted(files.size(), "file") + ", " + to_text(Bytes(static_cast<std::int64_t>(*bytes))) + ", to " +
      record_.target.text + ", " + record_.folder);
}

// Reconnects after a lost connection, at the end of the last whole line.
CallResult JobSupervisor::follow(const std::stop_token& stop) {
  const OnFrame on_frame = [&](const Frame& frame) {
    if (frame.kind == "begin") log_reconnected();
    if (frame.kind == "data") stream_.take(frame);
  };
  const auto once = [&](const OnFrame& counting) {
    stream_.connect();
    const RemoteCall what{
        {"follow", record_.folder, record_.token, std::to_string(stream_.out()), std::to_string(stream_.err())}};
    return call_target(what, counting, stop);
  };
  return retry(once, on_frame, stop);
}

CallResult JobSupervisor::follow_to_end() {
  CallResult answer{.outcome = CallOutcome::stopped};
  if (!stops_.cancel.stop_requested()) {
    const CombinedStopToken stop(stops_.detach, stops_.cancel);
    answer = follow(stop.token());
  }
  if (answer.outcome == CallOutcome::stopped && stops_.cancel.stop_requested() && !stops_.detach.stop_requested()) {
    log("cancelling the job");
    answer = call_until_answered({{"cancel", record_.folder, record_.token}}, stops_.detach);
    if (answer.outcome == CallOutcome::answered) answer = follow(stops_.detach);
  }
  if (answer.outcome == CallOutcome::answered) stream_.end();
  return answer;
}

LaunchResult JobSupervisor::run_to_completion() {
  LaunchResult detached{run_id_, std::nullopt};
  try {
    // From here on the job may run, even if this process ends.
    if (!store_.cursor(run_id_))
      run_.record({0, event::Log{"info", "starting: " + record_.command}}, stream_.cursor());
    else
      run_.record({stream_.seconds(), event::Progress{}});  // clears the progress of an earlier process
    const CallResult started =
        call_until_answered({{"start", record_.folder, record_.token, record_.command}}, stops_.detach);
    if (started.outcome == CallOutcome::stopped) return detached;
    const CallResult answer = follow_to_end();
    if (answer.outcome == CallOutcome::stopped) return detached;
    if (!fetch_results()) return detached;
    return record_end(answer.end);
  } catch (const Error& error) {
    record_transfer_finished();
    store_.flush();
    if (error.problem().id != "LAUNCH-GONE") throw;
    return {run_id_, fail(RunState::failed, error.what())};
  }
}

// Fetches into a staged folder; starts again after a lost connection.
bool JobSupervisor::fetch_results() {
  store_.flush();  // may move the run to a rescue folder
  const fs::path target = store_.run_folder(run_id_) / kFetched;
  std::optional<StagedFolder> staged;
  std::optional<DownloadReceiver> incoming;
  RemoteCall what{{"fetch", record_.folder, record_.token}};
  what.arguments.insert(what.arguments.end(), record_.fetch.begin(), record_.fetch.end());
  const auto once = [&](const OnFrame& counting) {
    incoming.reset();
    staged.reset();
    staged.emplace(target);
    incoming.emplace(staged->path(),
                     [&](std::uint64_t done, std::uint64_t total) { progress("fetching", done, total); });
    CallResult answer = call_target(what, counting, stops_.detach);
    if (answer.outcome == CallOutcome::answered) incoming->end(answer.end);
    return answer;
  };
  const CallResult answer = retry(
      once, [&](const Frame& frame) { incoming->take(frame); }, stops_.detach);
  record_transfer_finished();
  if (answer.outcome != CallOutcome::answered) return false;
  log_reconnected();
  if (incoming->links() > 0) log(skipped_links(*incoming), "warning");
  const size_t files = incoming->files().size();
  if (files > 0) staged->commit();
  log(files > 0 ? "fetched " + counted(files, "file") + " into " + target.string()
                : "nothing to fetch: the job left no files in " + record_.folder);
  return true;
}

LaunchResult JobSupervisor::record_end(const Json& end) {
  const bool cancelled = end.value("cancelled", false);
  const bool done = end.contains("code") && end["code"].is_number_integer() && end["code"].get<int>() == 0;
  const RunState state = cancelled ? RunState::cancelled : done ? RunState::done : RunState::failed;
  Json summary{{"launched", {{"on", record_.target.text}, {"folder", record_.folder}}}};
  if (const auto offer = merge_offer(store_, run_id_)) {
    summary["adapter"] = offer->adapter.string();
    summary["merge"] = merge_command(*offer);
  }
  if (const fs::path results = store_.run_folder(run_id_) / kFetched / "results"; is_folder(results))
    summary["import"] = "meshwright import " + shell_quoted(results.string()) + "/*.json";
  const event::Finished finished =
      run_.finish(state, state == RunState::failed ? why_failed(end) : "", {stream_.seconds()}, summary);
  return {run_id_, finished};
}

std::string new_token() {
  std::random_device device;
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (int i = 0; i < 16; ++i) out += digits[device() & 15];
  return out;
}

void save(const LaunchRecord& t, const fs::path& run_folder) {
  const Json json{{"schema", 1},
                  {"on", t.target.text},
                  {"where", to_string(t.target.where)},
                  {"host", t.target.host},
                  {"port", t.target.port},
                  {"template", t.target.command},
                  {"ssh_config", t.target.ssh_config.string()},
                  {"folder", t.folder},
                  {"token", t.token},
                  {"command", t.command},
                  {"recipe", std::string(model::to_string(t.recipe))},
                  {"fetch", t.fetch}};
  write_file_atomically(run_folder / kFile, dump_utf8(json, 1) + "\n");
}

bool has_launch_record(const fs::path& run_folder) {
  return path_exists(run_folder / kFile);
}

LaunchRecord load_launch_record(const fs::path& run_folder) {
  const fs::path file = run_folder / kFile;
  if (!has_launch_record(run_folder))
    throw Error("LAUNCH-TICKET", "the run was not launched on a target",
                {.file = file.string(), .fix = "list the runs with `meshwright runs`"});
  const Json json = read_json(file);
  const auto text = [&](const char* key) { return string_member(json, key, file.string()); };
  LaunchRecord t{.target = {.where = Where::local, .text = text("on")},
                 .folder = text("folder"),
                 .token = text("token"),
                 .command = text("command"),
                 .recipe = recipes::parse_recipe(text("recipe")),
                 .fetch = {}};
  t.target.where = parse<Where>(text("where")).value_or(Where::local);
  t.target.host = text("host");
  t.target.port = text("port");
  t.target.command = text("template");
  t.target.ssh_config = text("ssh_config");
  for (const Json& path : member(json, "fetch", file.string()))
    if (path.is_string()) t.fetch.push_back(path.get<std::string>());
  return t;
}

JobStream::JobStream(importing::ExternalRun& run, const std::optional<std::string>& cursor) : run_(run) {
  if (cursor) {
    const Json json = parse_json(*cursor, "cursor of the run");
    sources_[0].kept = static_cast<std::uint64_t>(int_member(json, "out", "cursor of the run"));
    sources_[1].kept = static_cast<std::uint64_t>(int_member(json, "err", "cursor of the run"));
    if (json.contains("finished"))
      run_.set_finished(std::get<event::Finished>(event_from_json(json.at("finished")).body));
  }
  connect();
}

// A received Finished event is not recorded yet, so the cursor contains it.
std::string JobStream::cursor() const {
  Json json{{"out", out()}, {"err", err()}};
  if (const auto& f = run_.finished()) json["finished"] = to_json(Event{f->seconds, *f}, "");
  return dump_utf8(json);
}

void JobStream::connect() {
  for (Source& s : sources_) {
    s.base = s.kept;
    s.fed = 0;
    s.lines = LineSplitter();
  }
}

void JobStream::add_line(size_t which, const std::string& line) {
  Source& s = sources_[which];
  s.kept = s.base + s.lines.consumed_bytes();
  const importing::ExternalRun::At at{seconds_, cursor(), s.lines.dropped_bytes()};
  if (which == 0)
    run_.line(line, at);
  else
    run_.log_output(line, at);
}

void JobStream::take(const Frame& data) {
  const std::string name = string_member(data.head, "stream", "frame");
  const size_t which = name == "out" ? 0 : 1;
  Source& s = sources_[which];
  const long long at = int_member(data.head, "at", "frame");
  if ((name != "out" && name != "err") || at < 0 || static_cast<std::uint64_t>(at) != s.base + s.fed)
    throw Error("LAUNCH-STREAM", "the data does not follow the previous data",
                {.place = valid_utf8(name), .found = std::to_string(at), .expected = std::to_string(s.base + s.fed)},
                Error::Kind::failed);
  seconds_ = std::max(seconds_, number_member(data.head, "seconds", "frame"));
  s.fed += data.bytes.size();
  s.lines.feed(data.bytes, [&](const std::string& line) { add_line(which, line); });
}

void JobStream::end() {
  for (const size_t which : {0u, 1u})
    sources_[which].lines.finish([&](const std::string& line) { add_line(which, line); });
}

}  // namespace mw::launch
