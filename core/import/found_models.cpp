// SPDX-License-Identifier: Apache-2.0
#include "core/import/found_models.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/formats/orbax/orbax.h"
#include "core/store/store.h"

namespace mw::importing {
namespace fs = std::filesystem;
namespace {

constexpr int kDeepest = 6;  // levels of folders below one that is searched
constexpr const char* kModelConfig = "config.json";
constexpr const char* kAdapterConfig = "adapter_config.json";
constexpr const char* kAdapterWeights = "adapter_model.safetensors";

Problem skipped(const fs::path& folder, std::string message, std::string fix = {}) {
  return {.id = "MODEL-SKIPPED",
          .severity = Severity::warning,
          .message = std::move(message),
          .file = folder.string(),
          .fix = std::move(fix)};
}

// The text of an error without the folder, which the table names already.
std::string reason_of(const Error& error, const fs::path& folder) {
  Problem problem = error.problem();
  const fs::path below = fs::path(problem.file).lexically_relative(folder);
  if (below == ".")
    problem.file.clear();
  else if (!below.empty() && *below.begin() != "..")
    problem.file = below.string();
  return to_text(problem);
}

// Sums the bytes of each type of tensor.
class TensorTotals {
 public:
  void add(const std::string& dtype, std::int64_t elements, std::uint64_t bytes) {
    by_dtype_[dtype] += bytes;
    elements_ += elements;
    bytes_ += bytes;
  }
  std::int64_t elements() const { return elements_; }
  std::uint64_t bytes() const { return bytes_; }
  std::string dtypes() const {
    std::vector<std::pair<std::uint64_t, std::string>> largest_first;
    for (const auto& [name, bytes] : by_dtype_) largest_first.emplace_back(bytes, name);
    std::sort(largest_first.rbegin(), largest_first.rend());
    return joined(largest_first, ", ", [](const auto& of) { return of.second; });
  }

 private:
  std::map<std::string, std::uint64_t> by_dtype_;
  std::int64_t elements_ = 0;
  std::uint64_t bytes_ = 0;
};

// "BF16" of safetensors and "bfloat16" of zarr are one type.
std::string common_name(const std::string& dtype) {
  static const std::map<std::string, std::string> kNames{
      {"bfloat16", "bf16"}, {"float32", "f32"}, {"float16", "f16"}, {"float64", "f64"}, {"int8", "int8"},
      {"i8", "int8"},       {"<f4", "f32"},     {"<f2", "f16"},     {"<f8", "f64"},     {"|i1", "int8"}};
  const std::string name = lower_case(dtype);
  const auto at = kNames.find(name);
  return at == kNames.end() ? name : at->second;
}

void add_file(const fs::path& file, TensorTotals& totals) {
  const formats::SafetensorsFile tensors(file);
  for (const formats::TensorInfo& t : tensors.tensors())
    totals.add(common_name(t.dtype_name), t.elements(), t.end - t.begin);
}

void set_totals(const TensorTotals& totals, FoundModel& found) {
  found.dtype = totals.dtypes();
  found.parameters = totals.elements();
  found.bytes = totals.bytes();
}

void read_checkpoint(FoundModel& found) {
  const model::Config config = formats::read_config(found.folder);
  const std::vector<fs::path> files = formats::weight_files(found.folder);
  const auto missing = std::count_if(files.begin(), files.end(), [](const fs::path& f) { return !path_exists(f); });
  if (missing > 0)
    throw Error("CHECKPOINT",
                std::to_string(missing) + " of " + std::to_string(files.size()) +
                    " weight files are missing: the download is incomplete",
                {.file = found.folder.string(), .fix = "download the model again"});
  TensorTotals totals;
  for (const fs::path& file : files) add_file(file, totals);
  set_totals(totals, found);
  found.kind = ModelKind::model;
  found.family = config.hf_model_type;
  found.parameters = model::TensorInventory(config).parameters();
  found.runs_in_engine = !model::is_planning_only(config);
}

void read_adapter_folder(FoundModel& found) {
  const fs::path file = found.folder / kAdapterConfig;
  const Json config = read_json(file);
  TensorTotals totals;
  add_file(found.folder / kAdapterWeights, totals);
  set_totals(totals, found);
  found.kind = ModelKind::adapter;
  if (config.is_object() && config.contains("base_model_name_or_path") && config["base_model_name_or_path"].is_string())
    found.family = config["base_model_name_or_path"].get<std::string>();
  if (const fs::path base = found.family; base.is_absolute()) found.family = base.filename().string();
}

void read_orbax_folder(FoundModel& found) {
  TensorTotals totals;
  const formats::OrbaxFolder checkpoint = formats::open_orbax(found.folder);
  for (const formats::OrbaxItem& item : checkpoint.steps.back().items) {
    const formats::OrbaxTree tree(item.folder);
    for (const formats::ZarrArray& array : tree.arrays())
      totals.add(common_name(array.dtype_name), array.elements(),
                 static_cast<std::uint64_t>(array.elements()) * formats::size_of(array.dtype));
  }
  set_totals(totals, found);
  found.kind = ModelKind::orbax;
}

// The folders in `folder`, sorted, without hidden ones and, because they may lead in circles, links. An Error names a
// folder that cannot be listed.
std::vector<fs::path> subfolders(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code none;
    const bool real = at->is_directory(none) && !at->is_symlink(none);
    if (real && !at->path().filename().string().starts_with('.')) out.push_back(at->path());
  }
  if (error) throw system_error("cannot list the folder", folder.string(), error.value());
  std::sort(out.begin(), out.end());
  return out;
}

// Whether the folder holds Orbax checkpoints beside each other that are not steps of one run, which have numbers.
bool holds_several_checkpoints(const fs::path& folder) {
  if (path_exists(folder / kModelConfig) || path_exists(folder / kAdapterConfig)) return false;
  const std::vector<formats::OrbaxStep> steps = formats::open_orbax(folder).steps;
  return steps.size() > 1 && std::any_of(steps.begin(), steps.end(), [](const auto& step) { return step.step < 0; });
}

// One search: collects models and the reasons for what is skipped.
class ModelSearch {
 public:
  explicit ModelSearch(std::stop_token stop) : stop_(std::move(stop)) {}
  bool is_stopped() const { return stop_.stop_requested(); }
  FoundModels take() { return std::move(found_); }

  void skip(Problem problem) { found_.skipped.push_back(std::move(problem)); }
  // Runs `work` and records its Error as the reason why `folder` is skipped.
  void guarded(const fs::path& folder, const std::function<void()>& work) {
    try {
      work();
    } catch (const Error& error) {
      skip(skipped(folder, reason_of(error, folder)));
    }
  }
  void add(const fs::path& folder, ModelPlace place, const std::string& name) {
    guarded(folder, [&] { found_.models.push_back(read_model_folder(folder, place, name)); });
  }
  // Adds `folder` or what is below it. `check` may refuse a folder before it is read, by returning a reason.
  using Name = std::function<std::string(const fs::path&)>;
  using Check = std::function<std::string(const fs::path&, int depth)>;
  void walk(const fs::path& folder, ModelPlace place, const Name& name, const Check& check = {}, int depth = 0) {
    if (is_stopped()) return;
    guarded(folder, [&] {
      if (const std::string reason = check ? check(folder, depth) : ""; !reason.empty())
        return skip(skipped(folder, reason, "download the model again"));
      if (is_model_folder(folder) && !holds_several_checkpoints(folder)) return add(folder, place, name(folder));
      if (depth == kDeepest) return;
      for (const fs::path& below : subfolders(folder)) walk(below, place, name, check, depth + 1);
    });
  }

 private:
  std::stop_token stop_;
  FoundModels found_;
};

// "models--google--gemma-3-1b-it" is google/gemma-3-1b-it.
std::string repository_of(const fs::path& folder) {
  std::string name = folder.filename().string().substr(std::string_view("models--").size());
  if (const size_t at = name.find("--"); at != std::string::npos) name.replace(at, 2, "/");
  return name;
}

// The commits that branches and tags name: {commit, "main"}.
std::map<std::string, std::string> named_commits(const fs::path& repository) {
  std::map<std::string, std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(repository / "refs", error), end; !error && at != end; at.increment(error)) {
    if (!is_file(at->path())) continue;
    const std::string text = read_file(at->path(), 1 << 10), name = at->path().filename().string();
    std::string_view rest = text;
    const std::string commit(take_line(rest));
    if (std::string& known = names[commit]; known.empty() || name == "main") known = name;
  }
  return names;
}

bool has_unfinished_blobs(const fs::path& repository) {
  std::error_code error;
  for (fs::directory_iterator at(repository / "blobs", error), end; !error && at != end; at.increment(error))
    if (at->path().extension() == ".incomplete") return true;
  return false;
}

void search_repository(const fs::path& repository, ModelSearch& search) {
  const std::string name = repository_of(repository);
  const bool unfinished = has_unfinished_blobs(repository);
  const std::string reason = unfinished ? "the download is incomplete" : "the repository has no files in the cache";
  const fs::path snapshots = repository / "snapshots";
  const std::vector<fs::path> commits = is_folder(snapshots) ? subfolders(snapshots) : std::vector<fs::path>();
  const std::map<std::string, std::string> names = named_commits(repository);
  if (commits.empty()) return search.skip(skipped(repository, reason, "download " + name + " again"));
  for (const fs::path& snapshot : commits) {
    const std::string commit = snapshot.filename().string();
    const auto at = names.find(commit);
    const std::string revision = at != names.end() ? at->second : commit.substr(0, 7);
    if (is_model_folder(snapshot))
      search.add(snapshot, ModelPlace::hugging_face, revision == "main" ? name : name + "@" + revision);
    else
      search.skip(skipped(snapshot,
                          unfinished ? reason : "the snapshot has neither config.json nor adapter_config.json",
                          unfinished ? "download " + name + " again" : ""));
  }
}

void search_hugging_face(const fs::path& hub, ModelSearch& search) {
  for (const fs::path& repository : subfolders(hub)) {
    if (search.is_stopped()) return;
    if (repository.filename().string().starts_with("models--"))
      search.guarded(repository, [&] { search_repository(repository, search); });
  }
}

// models/OWNER/MODEL/FRAMEWORK/VARIATION/VERSION; kagglehub writes a mark beside a version that is complete, or one for
// each file in .complete.
void search_kaggle(const fs::path& models, ModelSearch& search) {
  constexpr int kVersionDepth = 5;
  search.walk(
      models, ModelPlace::kaggle,
      [&models](const fs::path& folder) { return folder.lexically_relative(models).string(); },
      [](const fs::path& folder, int depth) -> std::string {
        if (depth != kVersionDepth) return {};
        const fs::path beside = folder.parent_path(), version = folder.filename();
        const bool complete =
            path_exists(beside / (version.string() + ".complete")) || is_folder(beside / ".complete" / version);
        return complete ? "" : "the download is incomplete";
      });
}

void search_runs(const fs::path& runs, ModelSearch& search) {
  if (!path_exists(runs / "runs.sqlite")) return;
  const store::Store store(runs);
  for (const store::RunRow& row : store.list()) {
    if (search.is_stopped()) return;
    const fs::path folder = store.run_folder(row.id);
    if (is_folder(folder))
      search.walk(folder, ModelPlace::runs, [&](const fs::path& of) {
        return row.id + " " + row.name + ", " + of.lexically_relative(folder).string();
      });
  }
}

fs::path variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

bool is_model_folder(const fs::path& folder) {
  return path_exists(folder / kModelConfig) || path_exists(folder / kAdapterConfig) || formats::is_orbax(folder);
}

FoundModel read_model_folder(const fs::path& folder, ModelPlace place, std::string name) {
  FoundModel found{.place = place, .folder = folder, .name = std::move(name)};
  if (path_exists(folder / kAdapterConfig))
    read_adapter_folder(found);
  else if (path_exists(folder / kModelConfig))
    read_checkpoint(found);
  else
    read_orbax_folder(found);
  return found;
}

ModelFolders model_folders(const fs::path& runs_folder) {
  const fs::path cache = user_cache_folder();
  ModelFolders out{
      .hugging_face = variable("HF_HUB_CACHE"), .kaggle = variable("KAGGLEHUB_CACHE"), .runs = runs_folder};
  if (out.hugging_face.empty()) out.hugging_face = variable("HUGGINGFACE_HUB_CACHE");  // the name before HF_HUB_CACHE
  if (const fs::path home = variable("HF_HOME"); out.hugging_face.empty() && !home.empty())
    out.hugging_face = home / "hub";
  if (out.hugging_face.empty() && !cache.empty()) out.hugging_face = cache / "huggingface" / "hub";
  // kagglehub does not read XDG_CACHE_HOME.
  if (const fs::path home = variable("HOME"); out.kaggle.empty() && !home.empty())
    out.kaggle = home / ".cache" / "kagglehub";
  if (!out.kaggle.empty()) out.kaggle /= "models";
  return out;
}

FoundModels find_models(const ModelFolders& folders, const std::stop_token& stop) {
  ModelSearch search(stop);
  const auto in = [&](const fs::path& folder, const auto& work) {
    if (!folder.empty() && path_exists(folder)) search.guarded(folder, [&] { work(folder, search); });
  };
  in(folders.hugging_face, search_hugging_face);
  in(folders.kaggle, search_kaggle);
  in(folders.runs, search_runs);
  for (const fs::path& folder : folders.others)
    search.walk(folder, ModelPlace::folder, [&folder](const fs::path& of) {
      const fs::path below = of.lexically_relative(folder);
      return (below == "." ? folder : folder.filename() / below).string();
    });
  FoundModels found = search.take();
  std::stable_sort(found.models.begin(), found.models.end(), [](const FoundModel& a, const FoundModel& b) {
    return a.place != b.place ? a.place < b.place : a.name < b.name;
  });
  return found;
}

}  // namespace mw::importing
