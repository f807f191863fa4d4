// SPDX-License-Identifier: Apache-2.0
#include "core/recipes/recipe.h"
#include "core/base/file_system.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/recipes/settings.h"

namespace mw::recipes {
namespace fs = std::filesystem;
using model::Stack;
using model::to_string;

namespace {

// Every file of a template folder, by name.
void add_templates(const fs::path& folder, std::vector<File>& files) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_regular_file()) found.push_back(entry.path());
  if (error || found.empty())
    throw Error("RECIPE", "the folder of recipe templates does not exist", {.file = folder.string()},
                Error::Kind::failed);
  std::sort(found.begin(), found.end());
  for (const fs::path& file : found)
    files.push_back({file.filename().string(), read_file(file), file.extension() == ".sh"});
}

// README.md: the text of the template, settings of the experiment, differences and remarks.
std::string readme(const RecipeInput& s, const Json& settings, const std::string& about) {
  std::string out =
      "# " + escape_markdown(s.name.empty() ? s.model.id : s.name) + "\n\n" + about + "\n## This experiment\n\n";
  out += "| setting | value |\n|---|---|\n";
  out += "| model | " + escape_markdown(settings["model"]["name"].get<std::string>()) + " |\n";
  for (const auto& [axis, size] : settings["mesh"].items()) out += "| mesh." + axis + " | " + size.dump() + " |\n";
  for (const char* section : {"lora", "data", "train", "serve", "sweep"})
    if (settings.contains(section))
      for (const auto& [key, value] : settings[section].items())
        if (key != "modules" && !value.is_null() && !value_text(value).empty() && !value.is_object())
          out += "| " + std::string(section) + "." + key + " | " + escape_markdown(value_text(value)) + " |\n";
  const auto list = [&](const char* title, const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    out += std::string("\n## ") + title + "\n\n";
    for (const std::string& line : lines) out += "- " + line + "\n";
  };
  list("Differences by design", differences(s));
  std::vector<std::string> remarks;
  for (const std::string& r : s.remarks) remarks.push_back(escape_markdown(r));
  list("Remarks", remarks);
  return out;
}

constexpr const char* kManifest = "recipe.json";

// FNV-1a; detects changed files, but is not cryptographic.
std::string fingerprint_of(const fs::path& path) {
  constexpr size_t kChunk = 1 << 20;
  std::uint64_t hash = 0xcbf29ce484222325ull;
  const formats::PreadFile file(path);
  std::vector<std::byte> bytes;
  for (std::uint64_t at = 0; at < file.size(); at += bytes.size()) {
    bytes.resize(std::min<std::uint64_t>(kChunk, file.size() - at));
    file.read(at, bytes);
    for (const std::byte b : bytes) hash = (hash ^ std::to_integer<std::uint64_t>(b)) * 0x100000001b3ull;
  }
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (int shift = 60; shift >= 0; shift -= 4) out += digits[(hash >> shift) & 15];
  return out;
}

// path -> valid fingerprints of the file. There are two while an export is replaced, so that a crash is not mistaken
// for manual changes.
using Written = std::map<std::string, std::set<std::string>>;

[[noreturn]] void refuse(const fs::path& folder, const std::string& message, const std::string& found,
                         const std::string& fix) {
  throw Error("RECIPE-FOLDER", message,
              {.file = folder.string(),
               .found = found,
               .expected = "a folder that does not exist, is empty, or contains an unchanged export",
               .fix = fix});
}

Written written_before(const fs::path& folder) {
  std::error_code error;
  const auto kind = fs::status(folder, error).type();
  if (kind == fs::file_type::not_found) return {};
  if (kind != fs::file_type::directory) refuse(folder, "the output is not a folder", "a file", "choose another --out");
  if (fs::is_empty(folder, error)) return {};
  if (!path_exists(folder / kManifest))
    refuse(folder, "the folder contains files of other programs", "files that are not part of an export",
           "choose another --out");
  Written out;
  const Json manifest = read_json(folder / kManifest);
  for (const char* part : {"files", "replaces"})
    if (manifest.is_object() && manifest.value(part, Json()).is_object())
      for (const auto& [path, hash] : manifest[part].items())
        out[path].insert(hash.is_string() ? hash.get<std::string>() : "");
  return out;
}

void check_unchanged(const fs::path& folder, const Written& before) {
  for (const auto& [path, fingerprints] : before) {
    const fs::path file = folder / path;
    if (path_exists(file) && !fingerprints.contains(fingerprint_of(file)))
      refuse(folder, "a file of the recipe was changed after the export", path,
             "choose another --out, or use --force to overwrite it");
  }
}

// Only files of known names are copied.
void copy_adapter(const fs::path& from, const fs::path& to) {
  make_folders(to);
  for (const char* name : {"adapter_config.json", "adapter_model.safetensors"}) copy_atomically(from / name, to / name);
}

// Copies the tokenizer's files, which the scripts save with the adapter. Returns their paths in the recipe.
std::vector<std::string> copy_tokenizer(const fs::path& from, const fs::path& recipe) {
  std::vector<std::string> copied;
  const auto copy = [&](const fs::path& file, const std::string& name) {
    make_folders(recipe / "tokenizer");
    copy_atomically(file, recipe / "tokenizer" / name);
    copied.push_back("tokenizer/" + name);
  };
  const bool one_file = is_file(from);
  if (one_file) copy(from, from.extension() == ".json" ? "tokenizer.json" : "tokenizer.model");
  const fs::path folder = one_file ? from.parent_path() : from;
  std::vector<std::string> names{"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
                                 "chat_template.jinja"};
  if (!one_file) names.insert(names.end(), {"tokenizer.json", "tokenizer.model"});
  for (const std::string& name : names)
    if (is_file(folder / name)) copy(folder / name, name);
  return copied;
}

// Replaces an earlier export; other files remain.
void replace_recipe(const fs::path& staged, const fs::path& folder, const Written& before, Json manifest) {
  for (const auto& [path, fingerprints] : before)
    if (is_file(folder / path)) manifest["replaces"][path] = fingerprint_of(folder / path);
  write_file_atomically(folder / kManifest, manifest.dump(1) + "\n");
  for (const auto& [path, hash] : manifest["files"].items()) {
    make_folders((folder / path).parent_path());
    if (file_system().rename((staged / path).c_str(), (folder / path).c_str()) != 0)
      throw system_error("cannot write", (folder / path).string(), errno);
  }
  for (const auto& [path, fingerprints] :
       before)  // removes files of the earlier export; ignores unsafe paths in its manifest
    if (!manifest["files"].contains(path) && fs::path(path).is_relative() && path.find("..") == std::string::npos)
      remove_tree(folder / path);
  manifest.erase("replaces");
  write_file_atomically(folder / kManifest, manifest.dump(1) + "\n");
}

}  // namespace

std::string_view description(Stack recipe) {
  switch (recipe) {
    case Stack::tunix:
      return "LoRA on JAX with Tunix and Qwix, on TPU";
    case Stack::torchax:
      return "LoRA with transformers and PEFT on JAX (TorchAX), on TPU";
    case Stack::trl_fsdp:
      return "LoRA on PyTorch with TRL, PEFT and FSDP2, on GPUs";
    case Stack::vllm_tpu:
      return "vLLM on TPU, and its latency sweep";
    case Stack::vllm_gpu:
      return "vLLM on GPUs, and its latency sweep";
    default:
      return {};
  }
}

Stack parse_recipe(std::string_view name) {
  for (const Stack recipe : kRecipes)
    if (to_string(recipe) == name) return recipe;
  throw Error(
      "RECIPE", "unknown recipe",
      {.found = std::string(name), .expected = joined(kRecipes, ", ", [](Stack recipe) { return to_string(recipe); })});
}

std::string hub_name(std::string_view id) {
  const size_t dash = id.find('-');
  if (!id.starts_with("gemma") || dash == std::string_view::npos) return {};
  const std::string_view generation = id.substr(5, dash - 5);
  std::string size(id.substr(dash + 1));
  if (generation == "4")  // 31b -> 31B, e2b -> E2B, 26b-a4b -> 26B-A4B; before: 2b, 1b, 270m
    std::transform(size.begin(), size.end(), size.begin(), [](unsigned char c) { return std::toupper(c); });
  return "google/gemma-" + std::string(generation) + "-" + size + "-it";
}

std::vector<std::string> pinned_packages(Stack kind, const fs::path& templates) {
  std::vector<std::string> out;
  const std::string content = read_file(templates / to_string(kind) / "requirements.txt");
  for (std::string_view text = content; !text.empty();) {
    std::string line(take_line(text));
    if (const size_t extra = line.find('['); extra != std::string::npos)  // jax[tpu]==0.10.2
      line.erase(extra, line.find(']') + 1 - extra);
    if (!line.empty() && line.front() != '#' && line.find("==") != std::string::npos) out.push_back(std::move(line));
  }
  return out;
}

std::vector<File> recipe_files(const RecipeInput& input, const fs::path& templates) {
  if (model::is_planning_only(input.model))
    throw Error("RECIPE", "the model is known for planning only and cannot be exported",
                {.place = "model.id", .found = input.model.id, .expected = "a Gemma model"});
  const Json settings = settings_json(input);
  std::vector<File> files;
  add_templates(templates / to_string(input.kind), files);
  add_templates(templates / (model::serves(input.kind) ? "serving" : "common"), files);
  if (input.kind == Stack::torchax || input.kind == Stack::trl_fsdp) add_templates(templates / "hf", files);
  for (File& file : files)
    if (file.path == "README.md") file.content = readme(input, settings, file.content);
  if (model::serves(input.kind)) add_serving(input, settings, files);
  files.push_back({"settings.json", dump_utf8(settings, 1) + "\n", false});
  files.push_back({"experiment.json", dump_utf8(input.experiment, 1) + "\n", false});
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.path < b.path; });
  return files;
}

std::vector<std::string> write_recipe(const RecipeInput& input, const fs::path& templates, const fs::path& folder,
                                      Overwrite overwrite) {
  const std::vector<File> files = recipe_files(input, templates);
  const Written before = written_before(folder);
  if (overwrite == Overwrite::refuse) check_unchanged(folder, before);
  StagedFolder staged(folder);
  std::vector<std::string> paths;
  for (const File& file : files) {
    write_file_atomically(staged.path() / file.path, file.content);
    if (file.executable) make_executable(staged.path() / file.path);
    paths.push_back(file.path);
  }
  if (!model::serves(input.kind) && input.rows) {
    write_rows(staged.path() / "data" / "rows.safetensors", *input.rows);
    write_file_atomically(staged.path() / "data" / "answers.json", dump_utf8(answers_json(*input.rows), 1) + "\n");
    paths.insert(paths.end(), {"data/rows.safetensors", "data/answers.json"});
  }
  if (!model::serves(input.kind) && !input.tokenizer.empty()) {
    const auto copied = copy_tokenizer(input.tokenizer, staged.path());
    paths.insert(paths.end(), copied.begin(), copied.end());
  }
  if (!model::serves(input.kind) && !input.adapter.empty()) {
    copy_adapter(input.adapter, staged.path() / "adapter");
    paths.insert(paths.end(), {"adapter/adapter_config.json", "adapter/adapter_model.safetensors"});
  }
  Json manifest{{"recipe", std::string(to_string(input.kind))}, {"made_by", "Meshwright " MW_VERSION}};
  for (const std::string& path : paths) manifest["files"][path] = fingerprint_of(staged.path() / path);
  if (before.empty()) {
    write_file_atomically(staged.path() / kManifest, manifest.dump(1) + "\n");
    staged.commit();
  } else {
    replace_recipe(staged.path(), folder, before, std::move(manifest));
  }
  paths.push_back(kManifest);
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace mw::recipes
