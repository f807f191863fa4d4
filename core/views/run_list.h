// SPDX-License-Identifier: Apache-2.0
// Content of the Runs page: the rows of its table and the preview of one run. Not thread-safe.
#pragma once
#include <limits>
#include <optional>
#include <stop_token>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "core/plan/experiment/costing.h"
#include "core/store/run_settings.h"
#include "core/train/settings.h"
#include "core/views/series.h"

namespace mw::views {

struct ListedRun : store::RunRow {
  std::string shown_name{};  // told apart from equal names
  std::string target{};
  std::string changed{};    // settings that differ from the previous run of this kind: "r16, lr 0.0002"
  store::RunId previous{};  // empty: the first of its kind
  std::optional<store::ScoredAnswers> answers{};
  std::optional<double> tokens_per_second{};  // over the whole run; empty: nothing was computed
  std::optional<train::Trainable> trainable{};
  std::optional<plan::RunCost> cost{};
  bool operator==(const ListedRun&) const = default;
};

// Details that a row of the table shows beside the run's row of the store.
struct RunDetails {
  store::RunRow row{};                           // when they were read
  std::optional<store::RunSettings> settings{};  // empty: not asked for
  std::optional<store::ScoredAnswers> answers{};
  std::optional<train::Trainable> trainable{};
  std::optional<plan::RunCost> cost{};
};
struct DetailsRequest {
  store::RunRow row{};
  bool with_settings = true;
};
// Any thread that may use `store`. Without a catalogue there are no costs. Leaves out runs that cannot be read now,
// such as those of a busy store. Ends early if `stop` is requested.
std::vector<RunDetails> read_details(const store::Store& store, const std::vector<DetailsRequest>& runs,
                                     const plan::PlanContext* context, const std::stop_token& stop = {});

// Reads the runs of a store, and keeps the details that cannot change from one reading to the next.
class RunList {
 public:
  static constexpr size_t kAll = std::numeric_limits<size_t>::max();
  explicit RunList(plan::LoadContext context = {}) : load_context_(std::move(context)) {}  // empty: no costs
  // Newest first. Reads details of the `most` newest runs only; older runs keep the details of earlier readings.
  std::vector<ListedRun> read(const store::Store& store, store::Trash trash, size_t most = kAll);
  // The newest runs of the last reading whose details are missing or older than their row, for another thread to read.
  std::vector<DetailsRequest> missing(size_t most) const;
  void add(std::vector<RunDetails> details);
  plan::PlanContextPtr context() { return load_context_ ? load_context_() : nullptr; }  // null: no costs

 private:
  struct Known {
    double seconds = -1;  // of the run when its details were read
    RunState state = RunState::queued;
    store::SettingsTable::Index settings = 0;
    std::optional<store::ScoredAnswers> answers{};
    std::optional<train::Trainable> trainable{};
    std::optional<plan::RunCost> cost{};
  };
  const Known* find(const store::RunId& run) const;  // null: not known
  void compare();
  plan::LoadContext load_context_;
  std::unordered_map<store::RunId, Known> known_;
  store::SettingsTable settings_;
  std::vector<store::RunRow> rows_;  // of the last reading
  struct Described {
    std::string name{}, changed{};
    store::RunId previous{};
  };
  std::vector<std::tuple<store::RunId, std::string, bool>> compared_;  // ids, names, and whether the settings are known
  std::vector<Described> described_;                                   // these runs
};

struct Artefact {  // a file or a folder of a run
  std::string name{};
  std::filesystem::path path{};
  Bytes size{};  // of a folder: of everything in it
};
struct RunPreview {
  Series train_loss{}, eval_loss{};
  std::vector<store::SettingChange> changes{};  // from the previous run
  std::vector<Artefact> artefacts{};            // by name
};
RunPreview run_preview(const store::Store& store, const ListedRun& run);

}  // namespace mw::views
