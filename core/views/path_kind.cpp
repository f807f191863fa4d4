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

ClassifiedPath classify_folder(const fs::path& folder) {
  if (path_exists(folder / "experiment.json") && path_exists(folder / "settings.json"))
    return {PathKind::recipe_export, folder / "experiment.json"};
  if (path_exists(folder / "adapter_config.json")) return {PathKind::adapter, folder};
  if (path_exists(folder / "config.json")) return {PathKind::model, folder};
  try {
    if (formats::is_orbax(folder)) return {PathKind::orbax, folder};
  } catch (const Error&) {
    // Import reports that the folder cannot be read.
  }
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
  if (is_one_of(data, std::array{".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".txt", ".parquet"}))
    return {PathKind::dataset, file};
  return {PathKind::other, file};
}

}  // namespace

ClassifiedPath classify_path(const fs::path& path) {
  if (is_folder(path)) return classify_folder(path);
  return is_file(path) ? classify_file(path) : ClassifiedPath{PathKind::other, path};
}

}  // namespace mw::views
