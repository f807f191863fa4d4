// SPDX-License-Identifier: Apache-2.0
// Content of the Runs page: the rows of its table and the preview of one run. Not thread-safe.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/planning/run_cost.h"
#include "core/store/run_settings.h"
#include "core/train/trainable.h"
#include "core/views/series.h"

namespace mw::views {

struct ListedRun : store::RunRow {
  std::string shown_name{};  // told apart from equal names
  std::string target{};
  std::string changed{};    // settings that differ from the previous run of this kind: "r16, lr 0.0002"
  store::RunId previous{};  // empty: the first of its kind
  std::optional<store::ScoredAnswers> answers{};
  std::optional<double> tokens_per_second{};  // over the whole run
  std::optional<train::Trainable> trainable{};
  std::optional<planning::RunCost> cost{};
};

// Reads the runs of a store, and keeps what cannot change from one reading to the next.
class RunList {
 public:
  explicit RunList(hardware::LoadCatalogue catalogue = {})
      : load_catalogue_(std::move(catalogue)) {}                               // empty: no costs
  std::vector<ListedRun> read(const store::Store& store, store::Trash trash);  // newest first

 private:
  void compare(const store::Store& store, const std::vector<store::RunRow>& rows);
  const store::RunSettings& settings(const store::Store& store, const store::RunId& run);
  void find_results(const store::Store& store, ListedRun& run);  // answers and cost
  void find_trainable(const store::Store& store, ListedRun& run);
  std::map<store::RunId, store::RunSettings> settings_;
  struct Counted {
    double seconds = -1;  // of the run when they were counted
    std::optional<store::ScoredAnswers> answers{};
    std::optional<planning::RunCost> cost{};
  };
  std::map<store::RunId, std::optional<train::Trainable>> trainable_;  // of the runs that have started
  std::map<store::RunId, Counted> counted_;
  hardware::LoadCatalogue load_catalogue_;
  std::optional<hardware::Catalogue> catalogue_;
  struct Described {
    std::string name{}, changed{};
    store::RunId previous{};
  };
  std::vector<std::pair<store::RunId, std::string>> listed_;  // ids and names of the last reading
  std::vector<Described> described_;                          // these runs
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
