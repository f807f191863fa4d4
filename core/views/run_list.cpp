// SPDX-License-Identifier: Apache-2.0
#include "core/views/run_list.h"

#include <algorithm>

namespace mw::views {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostChanges = 4;  // in the table

// Runs of different kinds have different settings.
std::string kind_of_row(const store::RunRow& row) {
  return row.method == "sweep" || row.method == "size" ? row.method : "train";
}

std::string brief_changes(const std::vector<store::SettingChange>& changes) {
  std::string text;
  for (size_t i = 0; i < changes.size() && i < kMostChanges; ++i) {
    const std::string& after = changes[i].after;
    text += (i > 0 ? ", " : "") + store::brief_setting(changes[i].key, after.empty() ? "none" : after);
  }
  if (changes.size() > kMostChanges) text += ", +" + std::to_string(changes.size() - kMostChanges);
  return text;
}

// Files that another process removes meanwhile count nothing.
Bytes size_of(const fs::path& path) {
  std::error_code error;
  const auto of_file = [&error](const fs::path& file) {
    const auto size = static_cast<std::int64_t>(fs::file_size(file, error));
    return error ? 0 : size;
  };
  if (!fs::is_directory(path, error)) return Bytes(of_file(path));
  std::int64_t sum = 0;
  for (fs::recursive_directory_iterator at(path, error), end; at != end; at.increment(error))
    if (std::error_code none; at->is_regular_file(none)) sum += of_file(at->path());
  return Bytes(sum);
}

std::vector<Artefact> artefacts_in(const fs::path& folder) {
  std::vector<Artefact> out;
  std::error_code none;
  for (fs::directory_iterator at(folder, none), end; at != end; at.increment(none))
    if (const std::string name = at->path().filename().string(); name != "lock" && !at->is_symlink(none))
      out.push_back({name, at->path(), size_of(at->path())});
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return out;
}

Series series_of(const store::Store& store, const store::RunId& run, const std::string& metric) {
  Series out;
  for (const auto& [step, value] : store.metric(run, metric)) out.append(static_cast<double>(step), value);
  return out;
}

}  // namespace

const store::RunSettings& RunList::settings(const store::Store& store, const store::RunId& run) {
  const auto [at, fresh] = settings_.try_emplace(run);
  if (fresh) try {
      at->second = store::settings_of(store.experiment(run));
    } catch (const Error&) {  // a damaged document; opening the run reports it
    }
  return at->second;
}

void RunList::find_results(const store::Store& store, ListedRun& run) {
  if (load_catalogue_ && !catalogue_) catalogue_ = load_catalogue_();
  Counted& counted = counted_[run.id];
  if (counted.seconds != run.seconds)
    counted = {run.seconds, store.last_answers(run.id),
               catalogue_ ? planning::run_cost(store, run, *catalogue_) : std::nullopt};
  run.answers = counted.answers;
  run.cost = counted.cost;
}

void RunList::find_trainable(const store::Store& store, ListedRun& run) {
  auto known = trainable_.find(run.id);
  if (known == trainable_.end()) {
    const Json info = store.started_info(run.id);
    if (info.is_null()) return;
    known = trainable_.emplace(run.id, train::trainable_of(info)).first;
  }
  run.trainable = known->second;
}

// Settings never change, so that names and changes are computed only when runs are added, removed or renamed.
void RunList::compare(const store::Store& store, const std::vector<store::RunRow>& rows) {
  std::vector<std::pair<store::RunId, std::string>> listed;
  for (const store::RunRow& row : rows) listed.emplace_back(row.id, row.name);
  if (listed == listed_) return;
  listed_ = std::move(listed);
  std::vector<store::NamedRun> named;
  for (const store::RunRow& row : rows) named.push_back({row.id, row.name, settings(store, row.id)});
  const auto names = store::distinct_names(named);
  described_.assign(rows.size(), {});
  for (size_t i = 0; i < rows.size(); ++i) {
    Described& one = described_[i];
    one.name = names[i];
    for (size_t j = i + 1; j < rows.size() && one.previous.empty(); ++j)
      if (kind_of_row(rows[i]) == kind_of_row(rows[j])) {
        one.previous = rows[j].id;
        one.changed = brief_changes(store::setting_changes(named[j].settings, named[i].settings));
      }
  }
}

std::vector<ListedRun> RunList::read(const store::Store& store, store::Trash trash) {
  std::vector<ListedRun> out;
  std::vector<store::RunRow> rows = store.list(trash);
  compare(store, rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    ListedRun& run = out.emplace_back(ListedRun{std::move(rows[i])});
    run.shown_name = described_[i].name;
    run.changed = described_[i].changed;
    run.previous = described_[i].previous;
    const store::RunSettings& all = settings(store, run.id);
    if (const auto target = all.find("target.id"); target != all.end()) run.target = target->second;
    if (run.seconds > 0 && run.tokens > 0) run.tokens_per_second = static_cast<double>(run.tokens) / run.seconds;
    find_results(store, run);
    find_trainable(store, run);
  }
  return out;
}

RunPreview run_preview(const store::Store& store, const ListedRun& run) {
  RunPreview out{.train_loss = series_of(store, run.id, "train/loss"),
                 .eval_loss = series_of(store, run.id, "eval/loss"),
                 .artefacts = artefacts_in(store.run_folder(run.id))};
  if (!run.previous.empty())
    out.changes = store::setting_changes(store::settings_of(store.experiment(run.previous)),
                                         store::settings_of(store.experiment(run.id)));
  return out;
}

}  // namespace mw::views
