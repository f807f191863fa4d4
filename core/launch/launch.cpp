// SPDX-License-Identifier: Apache-2.0
#include "core/launch/launch.h"

#include <algorithm>

#include "core/base/files.h"
#include "core/base/text.h"
#include "core/experiment/bound_experiment.h"
#include "core/jobs/recipe_export.h"
#include "core/launch/file_transfer.h"
#include "core/launch/job_supervisor.h"
#include "core/train/checkpoint.h"

namespace mw::launch {
namespace fs = std::filesystem;
namespace {

// "small-world-lora-3f2a9c1e": readable and safe in every shell.
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

// Checks that the target is reachable, has Python and a writable folder; returns the folder's absolute path.
std::string check_target(const LaunchRequest& request, const std::string& folder, const std::stop_token& stop) {
  const RemoteCall check{{"check", folder, "0", request.use == FolderUse::forced ? "force" : "fresh"}};
  const CallResult answer = call_remote(
      request.target, request.resources, check, [](const Frame&) {}, request.timing, stop);
  if (answer.outcome == CallOutcome::stopped) throw cancelled("the launch");
  if (answer.outcome == CallOutcome::lost) throw unreachable(request.target, answer);
  return string_member(answer.end, "folder", "answer of " + request.target.text);
}

void check_text(const std::string& text, const char* option) {
  if (text.find('\0') != std::string::npos || text.find('\n') != std::string::npos || valid_utf8(text) != text)
    throw Error("LAUNCH-TEXT", "the value is not a single line of text", {.place = option, .found = valid_utf8(text)});
}

// Checks that the paths in "A|B" are below the job's folder.
void check_fetch(const std::string& paths) {
  check_text(paths, "--fetch");
  for (size_t at = 0; at <= paths.size();) {
    const size_t end = std::min(paths.find('|', at), paths.size());
    require_inside(std::string_view(paths).substr(at, end - at), "--fetch");
    at = end + 1;
  }
}

// launch.json contains these texts.
void check_no_credentials(const std::string& text, const char* option) {
  if (without_url_secrets(text) != text)
    throw Error("LAUNCH-SECRET", "a URL contains credentials, which launch.json would store",
                {.place = option,
                 .found = text,
                 .fix = "let the job read the credentials from a file or its environment on the target"});
}

// The launch record of an open run.
LaunchRecord open_launch_record(const store::Store& store, const store::RunId& run) {
  LaunchRecord record = load_launch_record(store.run_folder(run));
  const auto row = store.find(run);
  if (!row || !can_reattach(store, *row))
    throw Error("LAUNCH-ENDED", "the run has ended, or its job was never started",
                {.place = run, .fix = "launch the experiment again"});
  return record;
}

std::vector<std::string> default_fetch(model::Stack recipe) {
  // Jobs on several hosts and cancelled jobs have checkpoints but no PEFT folder.
  if (!model::serves(recipe)) return {"out/adapter|out/checkpoints", "out/logs"};
  return {"results"};
}

}  // namespace

LaunchResult launch(const LaunchRequest& request, const plan::PlanContext& context, const EventSink& sink,
                    const StopTokens& stops) {
  check_text(request.command, "--command");
  check_text(request.folder, "--dir");
  for (const std::string& path : request.fetch) check_fetch(path);
  if (request.target.launcher != Launcher::none && model::serves(request.recipe))
    throw Error("LAUNCH-TARGET", "a server cannot be started on several hosts",
                {.place = "--on",
                 .found = request.target.text,
                 .expected = "a training recipe",
                 .fix = "start each server on its own host"});
  check_no_credentials(request.command, "--command");
  check_no_credentials(request.target.command, "--on");
  const CombinedStopToken stop(stops.detach, stops.cancel);  // both stop the launch before the job is started
  const recipes::RecipeInput subject =
      jobs::recipe_input(request.recipe, request.experiment, context, request.resources / "recipes", stop.token());
  recipes::recipe_files(subject,
                        request.resources / "recipes");  // throws before anything is created
  LaunchRecord record{.target = request.target,
                      .folder = request.folder,
                      .token = new_token(),
                      .command = request.command.empty() ? start_command(request.target) : request.command,
                      .recipe = request.recipe,
                      .fetch = request.fetch.empty() ? default_fetch(request.recipe) : request.fetch};
  const std::string name = subject.name.empty() ? subject.model.id : subject.name;
  if (record.folder.empty()) record.folder = folder_name(name, record.token);
  record.folder = check_target(request, record.folder, stop.token());

  store::Store store(request.runs_folder);
  const store::RunId run = store.create(request.experiment, name);
  JobSupervisor supervisor(store, record, {run, request.runs_folder, request.resources, request.timing}, sink, stops);
  try {
    save(record, store.run_folder(run));
    supervisor.record_start(name);
    const fs::path recipe = store.run_folder(run) / "recipe";
    const auto files =
        recipes::write_recipe(subject, request.resources / "recipes", recipe, recipes::Overwrite::refuse);
    for (const std::string& remark : subject.remarks) supervisor.log(remark, "warning");
    supervisor.upload_recipe(recipe, files, request.use);
  } catch (const Error& error) {
    const bool stopped = error.kind() == Error::Kind::cancelled;
    return {run, supervisor.fail(stopped ? RunState::cancelled : RunState::failed, stopped ? "" : error.what())};
  }
  return supervisor.run_to_completion();
}

LaunchResult reattach(const ReattachRequest& again, const EventSink& sink, const StopTokens& stops) {
  store::Store store(again.runs_folder);
  return JobSupervisor(store, open_launch_record(store, again.run), again, sink, stops).run_to_completion();
}

void give_up(const ReattachRequest& again) {
  store::Store store(again.runs_folder);
  const EventSink sink = [](const Event&) {};
  JobSupervisor supervisor(store, open_launch_record(store, again.run), again, sink, {});
  supervisor.fail(RunState::cancelled, "given up; the job may still be running");
}

bool can_reattach(const store::Store& store, const store::RunRow& run) {
  const bool open = run.state == RunState::queued || run.state == RunState::running || run.state == RunState::paused;
  return open && has_launch_record(store.run_folder(run.id)) && store.cursor(run.id).has_value();
}

bool was_launched(const fs::path& runs_folder, const store::RunId& run) {
  return has_launch_record(runs_folder / run);
}

std::optional<MergeOffer> merge_offer(const store::Store& store, const store::RunId& run) {
  const fs::path folder = store.run_folder(run);
  std::vector<fs::path> adapters{folder / kFetched / "out/adapter", folder / kFetched / "out/checkpoints"};
  const auto best = train::chosen_checkpoint(folder, train::CheckpointChoice::best);
  if (best && is_file(*best / "adapter_config.json")) adapters.push_back(*best);  // of a run of this program
  for (const fs::path& at : adapters) {
    if (!is_folder(at)) continue;
    const fs::path base = store.experiment(run).valid_values().model.path;
    MergeOffer offer{base.empty() ? base : fs::absolute(base), fs::absolute(at), fs::absolute(folder / "merged")};
    if (const auto last = train::latest_checkpoint(folder); best && at == *best && last != best)
      offer.last = fs::absolute(*last);
    return offer;
  }
  return std::nullopt;
}

std::string merge_command(const MergeOffer& offer) {
  const auto word = [](const fs::path& path) { return shell_quoted(path.string()); };
  return "meshwright merge --base " + (offer.base.empty() ? "MODEL" : word(offer.base)) + " --adapter " +
         word(offer.adapter) + " --out " + word(offer.out);
}

LaunchJob::LaunchJob(LaunchRequest request, plan::LoadContext context, EventSink sink)
    : LaunchJob([request = std::move(request), context = std::move(context),
                 sink = std::move(sink)](const StopTokens& stops) { launch(request, *context(), sink, stops); }) {}

LaunchJob::LaunchJob(ReattachRequest again, EventSink sink)
    : LaunchJob([again = std::move(again), sink = std::move(sink)](const StopTokens& stops) {
        reattach(again, sink, stops);
      }) {}

LaunchJob::LaunchJob(importing::FollowRequest follow, EventSink sink)
    : LaunchJob([follow = std::move(follow), sink = std::move(sink)](const StopTokens& stops) {
        const CombinedStopToken stop(stops.detach, stops.cancel);
        importing::follow(
            follow, sink, [](const std::string&) {}, stop.token());
      }) {}

LaunchJob::LaunchJob(std::function<void(const StopTokens&)> work) {
  thread_ = std::jthread([this, work = std::move(work)] {
    try {
      work({detach_.get_token(), cancel_.get_token()});
    } catch (const Error& error) {
      if (error.kind() != Error::Kind::cancelled) problem_ = error.problem();
    } catch (const std::exception& error) {
      problem_ = Problem{.id = "INTERNAL", .message = error.what()};
    }
    finished_ = true;
  });
}

}  // namespace mw::launch
