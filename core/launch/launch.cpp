// SPDX-License-Identifier: Apache-2.0
#include "core/launch/launch.h"

#include <algorithm>

#include "core/base/files.h"
#include "core/base/url_secrets.h"
#include "core/launch/job_supervisor.h"
#include "core/launch/copies.h"
#include "core/launch/combined_stop_token.h"
#include "core/launch/launch_record.h"
#include "core/recipes/quote.h"
#include "core/jobs/recipe_export.h"

namespace mw::launch {
namespace fs = std::filesystem;
namespace {

// "small-world-lora-3f2a9c1e": a name that people and every shell can read.
std::string folder_name(const std::string& name, const std::string& token) {
  std::string out;
  for (const unsigned char c : name.substr(0, 40)) {
    if (std::isalnum(c) != 0)
      out += static_cast<char>(std::tolower(c));
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return "meshwright/" + (out.empty() ? "run" : out) + "-" + token.substr(0, 8);
}

// Before a run exists: whether it can be reached, has Python, and may be written to. The folder's whole path.
std::string check_there(const Request& request, const std::string& folder, const std::stop_token& stop) {
  const Call check{{"check", folder, "0", request.use == Folder::forced ? "force" : "fresh"}};
  const Answer answer = call(
      request.target, request.resources, check, [](const Frame&) {}, request.timing, stop);
  if (answer.ended == Ended::stopped) throw cancelled("the launch");
  if (answer.ended == Ended::lost) throw unreachable(request.target, answer);
  return string_member(answer.end, "folder", "answer of " + request.target.text);
}

void check_text(const std::string& text, const char* option) {
  if (text.find('\0') != std::string::npos || text.find('\n') != std::string::npos || valid_utf8(text) != text)
    throw Error({.id = "LAUNCH-TEXT", .message = "not one line of text", .place = option, .found = valid_utf8(text)});
}

// "A|B", each below the job's folder.
void check_fetch(const std::string& paths) {
  check_text(paths, "--fetch");
  for (size_t at = 0; at <= paths.size();) {
    const size_t end = std::min(paths.find('|', at), paths.size());
    require_inside(std::string_view(paths).substr(at, end - at), "--fetch");
    at = end + 1;
  }
}

// launch.json keeps these, as a later process needs them to go on.
void check_no_credentials(const std::string& text, const char* option) {
  if (without_url_secrets(text) != text)
    throw Error({.id = "LAUNCH-SECRET",
                 .message = "a URL contains credentials, and the record of the run keeps this text",
                 .place = option,
                 .found = text,
                 .fix = "let the job read them there: from a file or from its environment"});
}

// Of a run whose job may go on.
Ticket open_ticket(const runs::Store& store, const runs::RunId& run) {
  Ticket ticket = load_ticket(store.run_folder(run));
  const auto row = store.find(run);
  if (!row || !can_reattach(store, *row))
    throw Error({.id = "LAUNCH-ENDED",
                 .message = "the run has ended, or its job was never started",
                 .place = run,
                 .fix = "launch the experiment again"});
  return ticket;
}

}  // namespace

std::string default_command() {
  return "./launch.sh";
}

std::vector<std::string> default_fetch(recipes::Kind recipe) {
  // Several hosts write no PEFT folder, and a job that was cancelled none either: its checkpoints are what there is.
  if (recipes::is_training(recipe)) return {"out/adapter|out/checkpoints", "out/logs"};
  return {"results"};
}

Launched launch(const Request& request, const hardware::Catalogue& catalogue, const EventSink& sink,
                const runs::OnLine& on_line, const Stops& stops) {
  check_text(request.command, "--command");
  check_text(request.folder, "--dir");
  for (const std::string& path : request.fetch) check_fetch(path);
  check_no_credentials(request.command, "--command");
  check_no_credentials(request.target.command, "--on");
  const Either stop(stops.detach, stops.cancel);  // there is no job yet that could go on
  const recipes::RecipeInput subject =
      runs::recipe_subject(request.recipe, request.experiment, catalogue, request.resources / "recipes", stop.token());
  recipes::recipe_files(subject, request.resources / "recipes");  // what it cannot express is said before anything is done
  Ticket ticket{.target = request.target,
                .folder = request.folder,
                .token = new_token(),
                .command = request.command.empty() ? default_command() : request.command,
                .recipe = request.recipe,
                .fetch = request.fetch.empty() ? default_fetch(request.recipe) : request.fetch};
  const std::string name = subject.name.empty() ? subject.model.id : subject.name;
  if (ticket.folder.empty()) ticket.folder = folder_name(name, ticket.token);
  ticket.folder = check_there(request, ticket.folder, stop.token());

  runs::Store store(request.runs_folder);
  const runs::RunId run = store.create(request.experiment, name);
  Attendance attendance(store, run, ticket, request.resources, request.timing, sink, on_line, stops);
  try {
    save(ticket, store.run_folder(run));
    attendance.begin(name);
    const fs::path recipe = store.run_folder(run) / "recipe";
    const auto files =
        recipes::write_recipe(subject, request.resources / "recipes", recipe, recipes::Overwrite::refuse);
    for (const std::string& remark : subject.remarks) attendance.say(remark, "warning");
    attendance.put(recipe, files, request.use);
  } catch (const Error& error) {
    const bool stopped = error.kind() == Error::Kind::cancelled;
    return {run, attendance.fail(stopped ? RunState::cancelled : RunState::failed, stopped ? "" : error.what())};
  }
  return attendance.attend();
}

Launched reattach(const Again& again, const EventSink& sink, const runs::OnLine& on_line, const Stops& stops) {
  runs::Store store(again.runs_folder);
  Attendance attendance(store, again.run, open_ticket(store, again.run), again.resources, again.timing, sink, on_line,
                        stops);
  return attendance.attend();
}

void give_up(const Again& again) {
  runs::Store store(again.runs_folder);
  const EventSink sink = [](const Event&) {};
  const runs::OnLine on_line = [](const std::string&) {};
  Attendance attendance(store, again.run, open_ticket(store, again.run), again.resources, again.timing, sink, on_line,
                        {});
  attendance.fail(RunState::cancelled, "given up: whether its job still runs is not known");
}

bool can_reattach(const runs::Store& store, const runs::RunRow& run) {
  const bool open = run.state == RunState::queued || run.state == RunState::running || run.state == RunState::paused;
  return open && has_ticket(store.run_folder(run.id)) && store.cursor(run.id).has_value();
}

bool was_launched(const fs::path& runs_folder, const runs::RunId& run) {
  return has_ticket(runs_folder / run);
}

std::optional<MergeOffer> merge_offer(const runs::Store& store, const runs::RunId& run) {
  const fs::path folder = store.run_folder(run);
  for (const char* adapter : {"out/adapter", "out/checkpoints"}) {
    const fs::path at = folder / kFetched / adapter;
    if (!is_folder(at)) continue;
    const fs::path base = store.experiment(run).path("model.path");
    return MergeOffer{base.empty() ? base : fs::absolute(base), fs::absolute(at), fs::absolute(folder / "merged")};
  }
  return std::nullopt;
}

std::string merge_command(const MergeOffer& offer) {
  const auto word = [](const fs::path& path) { return recipes::shell_quoted(path.string()); };
  return "meshwright merge --base " + (offer.base.empty() ? "MODEL" : word(offer.base)) + " --adapter " +
         word(offer.adapter) + " --out " + word(offer.out);
}

}  // namespace mw::launch
