// SPDX-License-Identifier: Apache-2.0
// Folders that run an experiment elsewhere: scripts from resources/recipes, read by themselves and by tests, and one
// settings.json that they read; nothing is substituted into code. Plain values; any thread.
#pragma once
#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"
#include "core/mesh/layout/mesh.h"
#include "core/model/inventory.h"
#include "core/recipes/row_plan.h"

namespace mw::recipes {

enum class Kind { tunix, torchax, trl_fsdp, vllm_tpu, vllm_gpu };
inline constexpr std::array<Kind, 5> kKinds{Kind::tunix, Kind::torchax, Kind::trl_fsdp, Kind::vllm_tpu, Kind::vllm_gpu};
std::string_view to_string(Kind kind);    // as --recipe takes it
Kind recipe_kind(std::string_view name);  // throws Error RECIPE naming the kinds
std::string_view described(Kind kind);    // one line for people
bool trains(Kind kind);

// What a recipe is made of.
struct Subject {
  Kind kind = Kind::tunix;
  std::string name;
  model::Config model;
  std::string model_id{};              // of the catalogue, or empty
  std::filesystem::path model_path{};  // on this machine, or empty
  mesh::Mesh mesh{};
  std::vector<model::Role> targets{};
  Json values = Json::object();        // sections of the parameter table as in force: lora, data, train, serve, sweep
  Json experiment = Json::object();    // the document itself, kept beside them
  std::optional<RowPlan> rows{};       // the batches of training; none: no data or no tokenizer at hand
  std::filesystem::path adapter{};     // PEFT folder to start from, or empty
  std::vector<std::string> remarks{};  // that README.md repeats: what the checker finds, what is missing
};

struct File {
  std::string path;  // inside the folder, with /
  std::string content;
  bool executable = false;
};

// All files but the rows (data/rows.safetensors) and the adapter's, in the order they are listed. `templates` is
// resources/recipes. Throws Error RECIPE for what the software cannot express.
std::vector<File> recipe(const Subject& subject, const std::filesystem::path& templates);

// "google-tunix==0.1.7" lines of a kind's requirements.txt.
std::vector<std::string> pinned(Kind kind, const std::filesystem::path& templates);

// On Hugging Face, instruction-tuned: "google/gemma-3-1b-it"; empty for others than Gemma.
std::string hub_name(std::string_view catalogue_id);

enum class Overwrite { refuse, changed_files };
// Makes the folder, or writes again what an export wrote there before. Files in it that no export wrote stay; where one
// has been changed since, or a folder is in use by others, nothing is written and Error RECIPE-FOLDER is thrown (with
// changed_files: only the latter). Returns the paths inside the folder, recipe.json among them.
std::vector<std::string> write_recipe(const Subject& subject, const std::filesystem::path& templates,
                                      const std::filesystem::path& folder, Overwrite overwrite);

}  // namespace mw::recipes
