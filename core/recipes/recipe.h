// SPDX-License-Identifier: Apache-2.0
// Recipes: folders that run an experiment with other software. They contain the scripts of resources/recipes unchanged
// and a settings.json that the scripts read. Thread-safe.
#pragma once
#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"
#include "core/experiment/hub_dataset.h"
#include "core/mesh/layout/mesh.h"
#include "core/model/inventory.h"
#include "core/recipes/row_plan.h"

namespace mw::recipes {

enum class Kind { tunix, torchax, trl_fsdp, vllm_tpu, vllm_gpu };
inline constexpr std::array<Kind, 5> kKinds{Kind::tunix, Kind::torchax, Kind::trl_fsdp, Kind::vllm_tpu, Kind::vllm_gpu};
std::string_view to_string(Kind kind);          // name for --recipe
Kind parse_recipe_kind(std::string_view name);  // throws RECIPE listing the kinds
std::string_view description(Kind kind);        // one line for display
bool is_training(Kind kind);

// The experiment from which a recipe is made.
struct RecipeInput {
  Kind kind = Kind::tunix;
  std::string name;
  model::Config model;
  std::string model_id{};              // catalogue id, or empty
  std::filesystem::path model_path{};  // local folder, or empty
  mesh::Mesh mesh{};
  std::vector<mesh::MeshAxis>
      slices{};  // the axes that cross the network between TPU slices, with their number of slices
  std::vector<model::Role> targets{};
  Json values = Json::object();      // resolved sections of the parameter table: lora, data, train, serve, sweep
  Json experiment = Json::object();  // the experiment document
  std::optional<experiment::HubDataset> source{};  // of the rows, if data.source is set
  std::optional<RowPlan> rows{};                   // training batches; empty without data or tokenizer
  std::filesystem::path adapter{};                 // PEFT folder of the initial adapter, or empty
  std::filesystem::path tokenizer{};               // file, or folder with the tokenizer's files; empty if unknown
  Json predicted = Json::object();     // memory on the target by category, and by device; empty on this machine
  std::vector<std::string> remarks{};  // for README.md: findings of the checker, missing parts
};

struct File {
  std::string path;  // relative to the folder, separated by /
  std::string content;
  bool executable = false;
};

// All files except data/rows.safetensors, the tokenizer and the adapter. `templates` is resources/recipes. Throws
// RECIPE if the software cannot express the experiment.
std::vector<File> recipe_files(const RecipeInput& input, const std::filesystem::path& templates);

// The pinned packages of a kind's requirements.txt: "google-tunix==0.1.7".
std::vector<std::string> pinned_packages(Kind kind, const std::filesystem::path& templates);

// Name of the instruction-tuned model on Hugging Face: "google/gemma-3-1b-it"; empty unless it is Gemma.
std::string hub_name(std::string_view catalogue_id);

enum class Overwrite { refuse, changed_files };
// Creates the folder or replaces an earlier export in it; other files remain. Throws RECIPE-FOLDER, without writing, if
// the folder contains no export but other files, or if an exported file was changed (allowed with changed_files).
// Returns the paths in the folder, including recipe.json.
std::vector<std::string> write_recipe(const RecipeInput& input, const std::filesystem::path& templates,
                                      const std::filesystem::path& folder, Overwrite overwrite);

}  // namespace mw::recipes
