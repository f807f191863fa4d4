// SPDX-License-Identifier: Apache-2.0
// Trains an experiment several times with other values of some keys, one run after another: every combination, random
// ones, or random ones of which only the better half goes on (successive halving, arXiv 1502.07943). Every trial is a
// run of the store with the tuning's id as its tag; tune.json in the folder of that id has what a resume needs.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/enum_names.h"
#include "core/base/event.h"
#include "core/experiment/experiment.h"
#include "core/plan/calibration/plan_context.h"
#include "core/store/store.h"

namespace mw::jobs {

enum class TuneMethod { grid, random, halving };

// "train.learning_rate=1e-4,3e-4": these values. "=1e-5..1e-3": numbers between them; "=log:1e-5..1e-3": with
// uniformly distributed logarithms. Commas inside brackets belong to a value.
struct VariedKey {
  struct Range {
    double low = 0, high = 0;
    bool is_log = false;
  };
  std::string key;
  std::vector<std::string> values{};  // as for --set; empty: the range
  std::optional<Range> range{};
};
VariedKey parse_varied_key(const std::string& text);  // throws TUNE

struct TuneOptions {
  std::vector<std::string> varied{};  // see parse_varied_key()
  TuneMethod method = TuneMethod::grid;
  long trials = 8;                   // of random and halving
  int reduction = 2;                 // of halving: each comparison keeps 1/reduction of the trials
  std::uint64_t seed = 1;            // of the drawn values
  std::string metric = "eval/loss";  // or train/loss; eval/answers_right: larger is better
};

// The settings of each trial as "key=value", a function of the options alone. Throws TUNE.
std::vector<std::vector<std::string>> tune_trials(const TuneOptions& options);
// The steps at which trials are compared, ascending; the last one is `steps`. Rounded up to multiples of `eval_every`.
std::vector<long> tune_rungs(const TuneOptions& options, long steps, long eval_every);

struct TuneTrial {
  std::vector<std::string> sets{};
  store::RunId run{};  // empty before it starts
  RunState state = RunState::queued;
  long steps = 0;
  std::optional<double> value{};  // of the metric at the last rung that the trial reached; empty: none, or it failed
};
struct TuneReport {
  std::string id{};  // "tune-3"
  TuneOptions options{};
  std::vector<TuneTrial> trials{};
  std::optional<size_t> best{};
  RunState state = RunState::done;
};

struct TuneProgress {
  size_t trial = 0, trials = 0;  // trial: 1, 2, ...
  store::RunId run{};
  long step = 0, until = 0;             // of the trial
  std::optional<double> eta_seconds{};  // of all trials, at the speed so far
};

struct TuneRequest {
  std::filesystem::path runs_folder;
  experiment::Experiment experiment;    // ignored by a resume
  TuneOptions options;                  // ignored by a resume
  std::optional<std::string> resume{};  // id of an earlier tuning
  plan::LoadContext context{};
  std::function<void(const std::string& id)> on_id{};  // before the first run
  std::function<void(const TuneProgress&)> on_progress{};
};

// Runs the trials on the calling thread. A stop ends the current run with a checkpoint; the tuning can then be resumed
// as after a kill, and ends with the same runs, bit for bit. Throws TUNE for options that cannot be, TUNE-UNKNOWN for
// an unknown id, RUN-LOCKED if another process runs the tuning, and what the settings of a trial throw.
TuneReport tune(const TuneRequest& request, std::stop_token stop);

// Ids of the tunings that were stopped or killed, the newest first. Those of earlier versions do not say how they
// ended.
std::vector<std::string> unfinished_tunings(const std::filesystem::path& runs_folder);

Json to_json(const TuneReport& report);
std::string to_text(const TuneReport& report);  // a table, the best trial first

}  // namespace mw::jobs

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::jobs::TuneMethod>{"grid", "random", "halving"};
