// SPDX-License-Identifier: Apache-2.0
// Classifies a file or folder that the user gives to the window, by name and content. Thread-safe.
#pragma once
#include <filesystem>

namespace mw::views {

enum class PathKind {
  experiment,
  recipe_export,  // folder written by `export`, with its experiment
  model,          // for model.path
  adapter,        // for lora.adapter
  orbax,          // a checkpoint that must be converted or merged before the engine reads it
  result,         // of a serving benchmark
  script,         // of TRL and PEFT, to port
  dataset,        // for data.path
  other           // a log or event file, or unknown: import reads or refuses it
};

struct ClassifiedPath {
  PathKind kind = PathKind::other;
  // The file or folder to open: the experiment of an export, the folder of a model file, the snapshot in a cache of
  // Hugging Face; for a folder of data files the pattern of these.
  std::filesystem::path path;
};
// Does not throw. A folder that holds both a model and logs is a model; its log file can be given by itself.
ClassifiedPath classify_path(const std::filesystem::path& path);

}  // namespace mw::views
