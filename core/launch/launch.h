// SPDX-License-Identifier: Apache-2.0
// A recipe of an experiment on another machine (or another folder of this one): copied there, started detached, its
// events in a run of the store, its results fetched when it ends. The job outlives this process and its connections;
// reattach() goes on where the record ends. On the calling thread; callbacks on it, too.
#pragma once
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/hardware/catalogue.h"
#include "core/import/external_run.h"
#include "core/launch/call.h"
#include "core/recipes/recipe.h"

namespace mw::launch {

enum class Folder { fresh, forced };  // forced: written into, whatever is there; what earlier jobs left stays

struct Request {
  experiment::Experiment experiment;
  recipes::Kind recipe = recipes::Kind::tunix;
  Target target;
  std::string command{};  // one line of shell in the folder there; empty: default_command()
  std::string folder{};   // there, from the home folder; empty: a new one in meshwright/
  Folder use = Folder::fresh;
  // Files and folders in it that are fetched at the end, "A|B": B where A has no files; empty: default_fetch().
  std::vector<std::string> fetch{};
  std::filesystem::path runs_folder{}, resources{};
  Timing timing{};
};

struct Stops {
  std::stop_token detach;  // leave it alone: the job goes on
  std::stop_token cancel;  // end it there; what it left is fetched
};

struct Launched {
  store::RunId run;
  std::optional<event::Finished> finished;  // none: detached
};

std::string default_command();
std::vector<std::string> default_fetch(recipes::Kind recipe);

// Bad input (recipe, target, folder, no Python) is an Error before a run exists. After that a failure before the job
// was started ends the run as failed; later ones leave it open and throw: LAUNCH-LOST, or what hindered fetching.
Launched launch(const Request& request, const hardware::Catalogue& catalogue, const EventSink& sink,
                const importing::OnLine& on_line, const Stops& stops);

// Of a run that was launched, by whatever process, and is still open.
struct Again {
  store::RunId run;
  std::filesystem::path runs_folder, resources;
  Timing timing{};
};
Launched reattach(const Again& again, const EventSink& sink, const importing::OnLine& on_line, const Stops& stops);

// Ends the record of a job that will never be reached again; nothing is done there.
void give_up(const Again& again);

// Whether a run was launched and is open: its job goes on, or may.
bool can_reattach(const store::Store& store, const store::RunRow& run);
bool was_launched(const std::filesystem::path& runs_folder, const store::RunId& run);  // open or not; cheap

// "meshwright merge --base ... --adapter ... --out ..." of a finished run, for a shell; empty where no adapter came.
struct MergeOffer {
  std::filesystem::path base, adapter, out;  // base may be empty: not known on this machine
};
std::optional<MergeOffer> merge_offer(const store::Store& store, const store::RunId& run);
std::string merge_command(const MergeOffer& offer);

}  // namespace mw::launch
