// SPDX-License-Identifier: Apache-2.0
#include "core/launch/job_supervisor.h"

#include <algorithm>

#include "core/base/files.h"
#include "core/base/units.h"
#include "core/launch/combined_stop_token.h"
#include "core/launch/copies.h"
#include "core/recipes/quote.h"

namespace mw::launch {
namespace fs = std::filesystem;
namespace {

std::string why_failed(const Json& end) {
  if (end.value("lost", false))
    return "the job was left alone there: the machine was started anew, or what watched over it was killed";
  if (end.contains("error") && end["error"].is_string())
    return "the job could not be started: " + valid_utf8(end["error"].get<std::string>());
  const int code = end.contains("code") && end["code"].is_number_integer() ? end["code"].get<int>() : -1;
  return code < 0 ? "the job was ended by signal " + std::to_string(-code)
                  : "the job ended with exit code " + std::to_string(code);
}

std::string skipped_links(const Incoming& incoming) {
  std::string text;
  for (const std::string& path : incoming.link_paths()) text += (text.empty() ? "" : ", ") + path;
  if (const auto more = incoming.links() - static_cast<long long>(incoming.link_paths().size()); more > 0)
    text += " and " + std::to_string(more) + " more";
  return "symbolic links are not fetched: " + text;
}

}  // namespace

Attendance::Attendance(store::Store& store, store::RunId run, Ticket ticket, fs::path resources, Timing timing,
                       const EventSink& sink, const importing::OnLine& on_line, Stops stops)
    : store_(store),
      run_id_(std::move(run)),
      ticket_(std::move(ticket)),
      resources_(std::move(resources)),
      timing_(timing),
      sink_(sink),
      on_line_(on_line),
      stops_(std::move(stops)),
      lock_(store.lock(run_id_)),
      run_(store, run_id_, sink, on_line),
      stream_(run_, store.cursor(run_id_)) {
  run_.set_about({{"launched",
                   {{"on", ticket_.target.text},
                    {"recipe", std::string(recipes::to_string(ticket_.recipe))},
                    {"folder", ticket_.folder},
                    {"command", ticket_.command}}}});
}

void Attendance::begin(const std::string& name) {
  run_.line(Json{{"event", "started"}, {"name", valid_utf8(name)}}.dump(), {});
}

void Attendance::say(const std::string& text, const char* level) {
  run_.said(text, {}, level);
}

event::Finished Attendance::fail(RunState state, const std::string& error) {
  if (!error.empty()) say(error, "error");
  return run_.finish(state, error, {stream_.seconds()});
}

void Attendance::progress(const char* phase, std::uint64_t done, std::uint64_t total) {
  const std::uint64_t mib = done >> 20;
  if (mib == told_ && done != total) return;
  told_ = mib;
  busy_ = true;
  run_.record({stream_.seconds(), event::Progress{phase, static_cast<long>(mib), static_cast<long>(total >> 20)}});
}

void Attendance::idle() {
  told_ = 0;
  if (std::exchange(busy_, false)) run_.record({stream_.seconds(), event::Progress{}});
}

Answer Attendance::ask(const Call& what, const OnFrame& on_frame, const std::stop_token& stop) {
  return call(ticket_.target, resources_, what, on_frame, timing_, stop);
}

Answer Attendance::ask_until_answered(const Call& what, const OnFrame& on_frame, const std::stop_token& stop) {
  const Answer answer =
      persistently([&](const OnFrame& counting) { return ask(what, counting, stop); }, on_frame, timing_,
                   [&](const std::string& why, std::chrono::milliseconds wait) { waiting(why, wait); }, stop);
  if (answer.ended == Ended::answered) reached();
  return answer;
}

// Said once; every attempt after that is for those who watch.
void Attendance::waiting(const std::string& why, std::chrono::milliseconds wait, const char* during) {
  const std::string lost = ticket_.target.text + ": connection lost" + during + ": " + why;
  if (!std::exchange(lost_, true))
    say(lost + "; trying again for up to " + in_words(timing_.give_up), "warning");
  else
    on_line_(lost + "; again in " + in_words(wait));
}

void Attendance::reached() {
  if (std::exchange(lost_, false)) say(ticket_.target.text + ": connected again");
}

// All of it anew after a lost connection; only an attempt that got further than any before shows that one could
// succeed.
std::optional<std::uint64_t> Attendance::send(const fs::path& recipe, const std::vector<std::string>& files,
                                              Folder use) {
  const Either stop(stops_.detach, stops_.cancel);
  std::uint64_t bytes = 0;
  long long furthest = -1;
  const auto once = [&](const OnFrame& counting) {
    Outgoing outgoing(recipe, files,
                      [&](std::uint64_t done, std::uint64_t total) { progress("copying", done, total); });
    bytes = outgoing.bytes();
    const Call put{
        {"put", ticket_.folder, ticket_.token, std::to_string(bytes), use == Folder::forced ? "force" : "fresh"},
        [&] { return outgoing.next(); }};
    const OnFrame on_frame = [&](const Frame& frame) {
      reached();
      const long long got = frame.kind == "beat" ? int_member(frame.head, "bytes", "frame") : 0;
      if (got > furthest) counting(frame);
      furthest = std::max(furthest, got);
    };
    return ask(put, on_frame, stop.token());
  };
  const OnWait wait_for = [&](const std::string& why, std::chrono::milliseconds wait) {
    waiting(why, wait, " while the recipe was copied");
  };
  const Answer answer = persistently(
      once, [](const Frame&) {}, timing_, wait_for, stop.token());
  return answer.ended == Ended::answered ? std::optional(bytes) : std::nullopt;
}

void Attendance::put(const fs::path& recipe, const std::vector<std::string>& files, Folder use) {
  std::optional<std::uint64_t> bytes;
  try {
    bytes = send(recipe, files, use);
  } catch (const Error& error) {
    if (error.problem().id != "LAUNCH-LOST") throw;
    throw Error({.id = "LAUNCH-COPY",
                 .message = "the recipe could not be copied: no connection for " + in_words(timing_.give_up),
                 .place = ticket_.target.text,
                 .found = error.problem().found,
                 .expected = "a connection that holds until all is there",
                 .fix = "nothing was started: launch it again, with more --patience"},
                Error::Kind::failed);
  }
  if (!bytes) throw cancelled("the launch");
  reached();
  idle();
  say("copied " + std::to_string(files.size()) + " files, " + to_text(Bytes(static_cast<std::int64_t>(*bytes))) +
      ", to " + ticket_.target.text + ", " + ticket_.folder);
}

// A lost connection is opened again behind the last whole line.
Answer Attendance::follow(const std::stop_token& stop) {
  const OnFrame on_frame = [&](const Frame& frame) {
    if (frame.kind == "begin") reached();
    if (frame.kind == "data") stream_.take(frame);
  };
  return persistently(
      [&](const OnFrame& counting) {
        stream_.connect();
        const Call what{
            {"follow", ticket_.folder, ticket_.token, std::to_string(stream_.out()), std::to_string(stream_.err())}};
        return ask(what, counting, stop);
      },
      on_frame, timing_, [&](const std::string& why, std::chrono::milliseconds wait) { waiting(why, wait); }, stop);
}

Answer Attendance::follow_to_the_end() {
  Answer answer{.ended = Ended::stopped};
  if (!stops_.cancel.stop_requested()) {
    const Either stop(stops_.detach, stops_.cancel);
    answer = follow(stop.token());
  }
  if (answer.ended == Ended::stopped && stops_.cancel.stop_requested() && !stops_.detach.stop_requested()) {
    say("cancelling the job");
    answer = ask_until_answered(
        {{"cancel", ticket_.folder, ticket_.token}}, [](const Frame&) {}, stops_.detach);
    if (answer.ended == Ended::answered) answer = follow(stops_.detach);
  }
  if (answer.ended == Ended::answered) stream_.end();
  return answer;
}

Launched Attendance::attend() {
  const Launched detached{run_id_, std::nullopt};
  try {
    // From here on the record belongs to a job that may run, whatever becomes of this process.
    if (!store_.cursor(run_id_))
      run_.record({0, event::Log{"info", "starting: " + ticket_.command}}, stream_.cursor());
    else
      run_.record({stream_.seconds(), event::Progress{}});  // what an earlier process was at when it was killed
    const Answer started = ask_until_answered(
        {{"start", ticket_.folder, ticket_.token, ticket_.command}}, [](const Frame&) {}, stops_.detach);
    if (started.ended == Ended::stopped) return detached;
    const Answer answer = follow_to_the_end();
    if (answer.ended == Ended::stopped) return detached;
    if (!fetch()) return detached;
    return last_word(answer.end);
  } catch (const Error& error) {
    idle();
    store_.flush();
    if (error.problem().id != "LAUNCH-GONE") throw;
    return {run_id_, fail(RunState::failed, error.what())};
  }
}

// Into a folder beside the final one, which appears whole; a connection that was lost begins it anew.
bool Attendance::fetch() {
  store_.flush();  // to a rescue folder, where the store's own is gone
  const fs::path target = store_.run_folder(run_id_) / kFetched;
  std::optional<StagedFolder> staged;
  std::optional<Incoming> incoming;
  Call what{{"fetch", ticket_.folder, ticket_.token}};
  what.arguments.insert(what.arguments.end(), ticket_.fetch.begin(), ticket_.fetch.end());
  const auto once = [&](const OnFrame& counting) {
    incoming.reset();
    staged.reset();
    staged.emplace(target);
    incoming.emplace(staged->path(),
                     [&](std::uint64_t done, std::uint64_t total) { progress("fetching", done, total); });
    Answer answer = ask(what, counting, stops_.detach);
    if (answer.ended == Ended::answered) incoming->end(answer.end);
    return answer;
  };
  const Answer answer = persistently(
      once, [&](const Frame& frame) { incoming->take(frame); }, timing_,
      [&](const std::string& why, std::chrono::milliseconds wait) { waiting(why, wait); }, stops_.detach);
  idle();
  if (answer.ended != Ended::answered) return false;
  reached();
  if (incoming->links() > 0) say(skipped_links(*incoming), "warning");
  const size_t files = incoming->files().size();
  if (files > 0) staged->commit();
  say(files > 0 ? "fetched " + std::to_string(files) + " files into " + target.string()
                : "nothing to fetch: the job left no files in " + ticket_.folder);
  return true;
}

Launched Attendance::last_word(const Json& end) {
  const bool cancelled = end.value("cancelled", false);
  const bool done = end.contains("code") && end["code"].is_number_integer() && end["code"].get<int>() == 0;
  const RunState state = cancelled ? RunState::cancelled : done ? RunState::done : RunState::failed;
  Json summary{{"launched", {{"on", ticket_.target.text}, {"folder", ticket_.folder}}}};
  if (const auto offer = merge_offer(store_, run_id_)) {
    summary["adapter"] = offer->adapter.string();
    summary["merge"] = merge_command(*offer);
  }
  if (const fs::path results = store_.run_folder(run_id_) / kFetched / "results"; is_folder(results))
    summary["import"] = "meshwright import " + recipes::shell_quoted(results.string()) + "/*.json";
  const event::Finished finished =
      run_.finish(state, state == RunState::failed ? why_failed(end) : "", {stream_.seconds()}, summary);
  return {run_id_, finished};
}

}  // namespace mw::launch
