// SPDX-License-Identifier: Apache-2.0
// Launches the recipe of an experiment on another machine or in another local folder: copies it, starts it detached,
// records its events as a run and fetches its results. The job keeps running if the connection drops or this process
// exits; reattach() continues the record. Blocks; callbacks run on the calling thread.
#pragma once
#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "core/import/external_run.h"
#include "core/import/follow.h"
#include "core/launch/remote_call.h"
#include "core/plan/calibration/plan_context.h"
#include "core/recipes/recipe.h"

namespace mw::launch {

enum class FolderUse { fresh, forced };  // fresh: must be empty; forced: existing files are overwritten or remain

struct LaunchRequest {
  experiment::Experiment experiment;
  model::Stack recipe = model::Stack::tunix;
  LaunchTarget target;
  std::string command{};  // shell command, run in the folder; empty: start_command(target)
  std::string folder{};   // on the target, relative to the home folder; empty: a new one in meshwright/
  FolderUse use = FolderUse::fresh;
  // Files and folders to fetch; "A|B" fetches B if A has no files; empty: those of the recipe.
  std::vector<std::string> fetch{};
  std::filesystem::path runs_folder{}, resources{};
  Timing timing{};
};

struct StopTokens {
  std::stop_token detach;  // stop supervising; the job continues
  std::stop_token cancel;  // stop the job; its results are fetched
};

// A stop token that is requested when one of two others is. Thread-safe.
class CombinedStopToken {
 public:
  CombinedStopToken(const std::stop_token& first, const std::stop_token& second)
      : first_callback_(first, Stop{source_}), second_callback_(second, Stop{source_}) {}
  CombinedStopToken(const CombinedStopToken&) = delete;
  CombinedStopToken& operator=(const CombinedStopToken&) = delete;
  std::stop_token token() const { return source_.get_token(); }

 private:
  struct Stop {
    std::stop_source source;
    void operator()() { source.request_stop(); }
  };
  std::stop_source source_;
  std::stop_callback<Stop> first_callback_, second_callback_;
};

struct LaunchResult {
  store::RunId run;
  std::optional<event::Finished> finished;  // empty if detached
};

// Throws for bad input (recipe, target, folder, no Python) before it creates a run. A failure before the job is started
// ends the run as failed; later failures (LAUNCH-LOST, fetching) throw and leave the run open.
LaunchResult launch(const LaunchRequest& request, const plan::PlanContext& context, const EventSink& sink,
                    const StopTokens& stops);

// An open run that was launched by any process.
struct ReattachRequest {
  store::RunId run;
  std::filesystem::path runs_folder, resources;
  Timing timing{};
};
LaunchResult reattach(const ReattachRequest& again, const EventSink& sink, const StopTokens& stops);

// Ends the record of a job that cannot be reached any more, without contacting the target.
void give_up(const ReattachRequest& again);

// Whether a run was launched and is open, so that its job may be running.
bool can_reattach(const store::Store& store, const store::RunRow& run);
bool was_launched(const std::filesystem::path& runs_folder, const store::RunId& run);  // open or ended

// The arguments of `meshwright merge` for the fetched adapter of a run; empty if there is none.
struct MergeOffer {
  std::filesystem::path base, adapter, out;  // base is empty if unknown on this machine
  std::filesystem::path last{};              // the last checkpoint, if `adapter` is an earlier one, the best
};
std::optional<MergeOffer> merge_offer(const store::Store& store, const store::RunId& run);
std::string merge_command(const MergeOffer& offer);

// Runs launch(), reattach() or the following of a running program on a thread of its own; the sink is called on that
// thread.
class LaunchJob {
 public:
  LaunchJob(LaunchRequest request, plan::LoadContext context, EventSink sink);
  LaunchJob(ReattachRequest again, EventSink sink);
  LaunchJob(importing::FollowRequest follow, EventSink sink);  // cancel() and detach() both end the record
  ~LaunchJob() { detach(); }                                   // and joins
  void cancel() { cancel_.request_stop(); }                    // stops the job
  void detach() { detach_.request_stop(); }                    // stops supervising; the job continues
  // When finished, the sink has received a Finished event, the job is detached, or problem() is the reason.
  bool finished() const { return finished_; }
  std::optional<Problem> problem() const { return finished_ ? problem_ : std::nullopt; }  // once finished

 private:
  explicit LaunchJob(std::function<void(const StopTokens&)> work);

  std::stop_source detach_, cancel_;
  std::atomic<bool> finished_{false};
  std::optional<Problem> problem_;  // written before finished_
  std::jthread thread_;
};

}  // namespace mw::launch
