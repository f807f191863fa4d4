// SPDX-License-Identifier: Apache-2.0
#include "core/views/run_list.h"

#include <algorithm>
#include <map>
#include <utility>

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

std::vector<RunDetails> read_details(const store::Store& store, const std::vector<DetailsRequest>& runs,
                                     const plan::PlanContext* context, const std::stop_token& stop) {
  std::vector<RunDetails> out;
  for (const DetailsRequest& run : runs) {
    if (stop.stop_requested()) break;
    RunDetails details{.row = run.row};
    if (run.with_settings) details.settings.emplace();
    bool is_readable = true;
    // Without those of a damaged document, which opening the run reports, or of a run that another process removed.
    const auto read = [&](const auto& part) {
      try {
        part();
      } catch (const Error& error) {
        is_readable = is_readable && error.kind() != Error::Kind::failed;
      }
    };
    read([&] {
      if (run.with_settings) details.settings = store::settings_of(store.experiment(run.row.id));
    });
    read([&] {
      details.answers = store.last_answers(run.row.id);
      details.trainable = train::trainable_of(store.started_info(run.row.id));
      if (context) details.cost = plan::run_cost(store, run.row, *context);
    });
    if (is_readable) out.push_back(std::move(details));
  }
  return out;
}

const RunList::Known* RunList::find(const store::RunId& run) const {
  const auto at = known_.find(run);
  return at == known_.end() ? nullptr : &at->second;
}

std::vector<DetailsRequest> RunList::missing(size_t most) const {
  std::vector<DetailsRequest> out;
  for (const store::RunRow& row : rows_) {
    if (out.size() == most) break;
    const Known* known = find(row.id);
    if (!known || known->seconds != row.seconds || known->state != row.state) out.push_back({row, known == nullptr});
  }
  return out;
}

void RunList::add(std::vector<RunDetails> details) {
  for (RunDetails& one : details) {
    const auto [at, is_new] = known_.try_emplace(one.row.id);
    Known& known = at->second;
    if (is_new) known.settings = settings_.add(one.settings.value_or(store::RunSettings()));
    known.seconds = one.row.seconds;
    known.state = one.row.state;
    known.answers = one.answers;
    known.trainable = one.trainable;
    known.cost = one.cost;
  }
}

// Settings never change, so that names and changes are computed only when runs are added, removed or renamed, or more
// settings are known.
void RunList::compare() {
  std::vector<std::tuple<store::RunId, std::string, bool>> now;
  for (const store::RunRow& row : rows_) now.emplace_back(row.id, row.name, find(row.id) != nullptr);
  if (now == compared_) return;
  compared_ = std::move(now);
  described_.assign(rows_.size(), {});
  std::vector<store::SettingsTable::Named> named;
  std::vector<size_t> named_row;
  std::map<std::string, size_t> newer;  // the oldest run so far of each kind
  for (size_t i = 0; i < rows_.size(); ++i) {
    const store::RunRow& row = rows_[i];
    described_[i].name = row.name.empty() ? row.id : row.name;
    const auto [at, is_first] = newer.try_emplace(kind_of_row(row), i);
    const Known* known = find(row.id);
    if (!is_first) {
      Described& next = described_[std::exchange(at->second, i)];
      next.previous = row.id;
    }
    if (!known) continue;
    named.push_back({row.id, row.name, known->settings});
    named_row.push_back(i);
  }
  const auto names = settings_.distinct_names(named);
  for (size_t n = 0; n < named.size(); ++n) {
    Described& one = described_[named_row[n]];
    one.name = names[n];
    const Known* previous = one.previous.empty() ? nullptr : find(one.previous);
    if (previous) one.changed = brief_changes(settings_.changes(previous->settings, named[n].settings));
  }
}

std::vector<ListedRun> RunList::read(const store::Store& store, store::Trash trash, size_t most) {
  rows_ = store.list(trash);
  if (const auto requests = missing(most); !requests.empty()) add(read_details(store, requests, context().get()));
  compare();
  std::vector<ListedRun> out;
  out.reserve(rows_.size());
  for (size_t i = 0; i < rows_.size(); ++i) {
    ListedRun& run = out.emplace_back(ListedRun{rows_[i]});
    run.shown_name = described_[i].name;
    run.changed = described_[i].changed;
    run.previous = described_[i].previous;
    if (run.seconds > 0 && run.tokens > 0 && run.source != "predicted")
      run.tokens_per_second = static_cast<double>(run.tokens) / run.seconds;
    const Known* known = find(run.id);
    if (!known) continue;
    run.target = settings_.value(known->settings, "target.id");
    run.answers = known->answers;
    run.trainable = known->trainable;
    run.cost = known->cost;
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
