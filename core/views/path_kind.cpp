// SPDX-License-Identifier: Apache-2.0
#include "core/views/path_kind.h"

#include <algorithm>
#include <array>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/formats/logs/run_log.h"
#include "core/formats/orbax/orbax.h"
#include "core/formats/results/bench_import.h"

namespace mw::views {
namespace fs = std::filesystem;
namespace {

template <size_t count>
bool is_one_of(const std::string& text, const std::array<const char*, count>& all) {
  return std::find(all.begin(), all.end(), text) != all.end();
}

bool is_data_ending(const std::string& ending) {
  return is_one_of(ending, std::array{".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".txt", ".parquet"});
}

// The ending before that of a compressed file: ".jsonl" of rows.jsonl.gz.
std::string data_ending(const fs::path& path) {
  const fs::path ending = path.extension();
  return (ending == ".gz" || ending == ".zst" ? path.stem().extension() : ending).string();
}

bool is_model_config(const Json& json) {
  return json.is_object() && json.contains("model_type") && !json.contains("schema");
}

// A list of rows is a dataset; what else has this ending is opened as an experiment, which names its faults.
PathKind kind_of_json(const fs::path& file) {
  try {
    const Json json = read_json(file);
    if (json.is_array()) return PathKind::dataset;
    return is_model_config(json) ? PathKind::model : PathKind::experiment;
  } catch (const Error&) {
    return PathKind::experiment;
  }
}

// The pattern of the data files of a folder without logs and subfolders, if all have one ending. Empty: it has others.
fs::path data_pattern(const fs::path& folder) {
  std::string ending;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const fs::path& file = at->path();
    if (file.filename().string().starts_with('.')) continue;
    if (!is_file(file) || !is_data_ending(data_ending(file)) || data_ending(file) == ".json") return {};
    const std::string whole =
        (file.extension() == data_ending(file) ? "" : data_ending(file)) + file.extension().string();
    if (ending.empty() && formats::log_kind(file) != formats::LogKind::none) return {};
    if (!ending.empty() && whole != ending) return {};
    ending = whole;
  }
  return ending.empty() ? fs::path() : folder / ("*" + ending);
}

// models--OWNER--NAME of a cache: the snapshot that refs/main names. Empty: it is no such folder.
fs::path cached_snapshot(const fs::path& folder) {
  try {
    if (!folder.filename().string().starts_with("models--")) return {};
    const std::string commit = read_file(folder / "refs" / "main", 1 << 10);
    if (commit.empty() || commit.find('/') != std::string::npos || commit.starts_with('.')) return {};
    const fs::path snapshot = folder / "snapshots" / commit;
    return path_exists(snapshot / "config.json") || path_exists(snapshot / "adapter_config.json") ? snapshot
                                                                                                  : fs::path();
  } catch (const Error&) {
    return {};
  }
}

ClassifiedPath classify_folder(const fs::path& folder) {
  if (const fs::path snapshot = cached_snapshot(folder); !snapshot.empty())
    return {path_exists(snapshot / "adapter_config.json") ? PathKind::adapter : PathKind::model, snapshot};
  if (path_exists(folder / "experiment.json") && path_exists(folder / "settings.json"))
    return {PathKind::recipe_export, folder / "experiment.json"};
  if (path_exists(folder / "adapter_config.json")) return {PathKind::adapter, folder};
  if (path_exists(folder / "config.json")) return {PathKind::model, folder};
  try {
    if (formats::is_orbax(folder)) return {PathKind::orbax, folder};
  } catch (const Error&) {
    // Import reports that the folder cannot be read.
  }
  if (formats::log_kind(folder) != formats::LogKind::none) return {PathKind::other, folder};
  if (fs::path pattern = data_pattern(folder); !pattern.empty()) return {PathKind::dataset, std::move(pattern)};
  return {PathKind::other, folder};
}

ClassifiedPath classify_file(const fs::path& file) {
  if (formats::bench_kind(file) != formats::BenchKind::none) return {PathKind::result, file};
  const std::string name = file.filename().string(), ending = file.extension().string(), data = data_ending(file);
  if (is_one_of(name, std::array{"adapter_config.json", "training_args.json"}) ||
      is_one_of(ending, std::array{".py", ".ipynb", ".yaml", ".yml"}))
    return {PathKind::script, file};
  if (formats::log_kind(file) != formats::LogKind::none) return {PathKind::other, file};
  if (ending == ".safetensors") return classify_folder(fs::absolute(file).parent_path());
  if (ending == ".json") {
    const PathKind kind = kind_of_json(file);
    return {kind, kind == PathKind::model ? fs::absolute(file).parent_path() : file};
  }
  if (is_data_ending(data)) return {PathKind::dataset, file};
  return {PathKind::other, file};
}

}  // namespace

ClassifiedPath classify_path(const fs::path& path) {
  if (is_folder(path)) return classify_folder(path);
  return is_file(path) ? classify_file(path) : ClassifiedPath{PathKind::other, path};
}

}  // namespace mw::views
