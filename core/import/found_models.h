// SPDX-License-Identifier: Apache-2.0
// Finds the models, adapters and Orbax checkpoints on this machine: in the caches of Hugging Face and Kaggle, in the
// run store and in folders of the user. Reads configurations and headers, no weights. Thread-safe.
#pragma once
#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/enum_names.h"
#include "core/base/error.h"

namespace mw::importing {

using mw::to_string;

enum class ModelPlace { hugging_face, kaggle, runs, folder };
enum class ModelKind {
  model,    // Hugging Face folder with config.json and safetensors
  adapter,  // PEFT folder
  orbax     // Orbax checkpoint
};

struct FoundModel {
  ModelKind kind{};
  ModelPlace place{};
  std::filesystem::path folder;
  std::string name;             // "google/gemma-3-1b-it", "run-3 Small world, checkpoint-40"
  std::string family{};         // model type of config.json, or the base model of an adapter; empty: unknown
  std::string dtype{};          // of its tensors, by bytes: "bf16", "int8, bf16"
  std::int64_t parameters = 0;  // of the language model; otherwise of all tensors
  std::uint64_t bytes = 0;      // of its tensors
  bool runs_in_engine = false;  // kind model: the engine trains and serves it
};

struct FoundModels {
  std::vector<FoundModel> models;  // by place, then by name
  std::vector<Problem> skipped;    // folders that cannot be read or used, with the reason
};

// An empty path is not searched. A cache that does not exist has no models.
struct ModelFolders {
  std::filesystem::path hugging_face;           // the folder "hub"
  std::filesystem::path kaggle;                 // the folder "models"
  std::filesystem::path runs;                   // the run store
  std::vector<std::filesystem::path> others{};  // searched with their subfolders
};
// The caches as huggingface_hub and kagglehub choose them: $HF_HUB_CACHE, $HF_HOME/hub, $KAGGLEHUB_CACHE/models, else
// below $XDG_CACHE_HOME or ~/.cache.
ModelFolders model_folders(const std::filesystem::path& runs_folder);

// Returns what it has found when it is stopped.
FoundModels find_models(const ModelFolders& folders, const std::stop_token& stop = {});

// Reads one folder; `place` and `name` stay as given. Throws Error if the folder is none of the kinds or incomplete.
FoundModel read_model_folder(const std::filesystem::path& folder, ModelPlace place, std::string name);
// Whether the folder looks like one of the kinds; it may still be incomplete.
bool is_model_folder(const std::filesystem::path& folder);

}  // namespace mw::importing

template <>
inline constexpr mw::EnumNames<4> mw::kEnumNames<mw::importing::ModelPlace>{"hugging-face", "kaggle", "runs", "folder"};
template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::importing::ModelKind>{"model", "adapter", "orbax"};
