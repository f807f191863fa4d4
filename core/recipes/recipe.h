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
#include "core/model/types.h"
#include "core/options/model.h"
#include "core/recipes/row_plan.h"

namespace mw::recipes {

// The software that has recipes: for training, then for serving.
inline constexpr std::array kRecipes{model::Stack::tunix, model::Stack::torchax, model::Stack::trl_fsdp,
                                     model::Stack::vllm_tpu, model::Stack::vllm_gpu};
model::Stack parse_recipe(std::string_view name);   // throws RECIPE listing the names
std::string_view description(model::Stack recipe);  // one line for display

// The experiment from which a recipe is made.
struct RecipeInput {
  model::Stack kind = model::Stack::tunix;
  std::string name;
  model::Config model;
  options::Model given{};  // as the document names the model; its path absolute
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
std::vector<std::string> pinned_packages(model::Stack kind, const std::filesystem::path& templates);

// Name of the instruction-tuned model on Hugging Face: "google/gemma-3-1b-it"; empty unless it is Gemma.
std::string hub_name(std::string_view catalogue_id);

enum class Overwrite { refuse, changed_files };
// Creates the folder or replaces an earlier export in it; other files remain. Throws RECIPE-FOLDER, without writing, if
// the folder contains no export but other files, or if an exported file was changed (allowed with changed_files).
// Returns the paths in the folder, including recipe.json.
std::vector<std::string> write_recipe(const RecipeInput& input, const std::filesystem::path& templates,
                                      const std::filesystem::path& folder, Overwrite overwrite);

}  // namespace mw::recipes
