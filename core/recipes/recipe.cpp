// SPDX-License-Identifier: Apache-2.0
#include "core/recipes/recipe.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/recipes/quote.h"
#include "core/recipes/serving.h"
#include "core/recipes/settings.h"

namespace mw::recipes {
namespace fs = std::filesystem;
namespace {

struct Row {
  Kind kind;
  std::string_view name, text;
  bool trains;
};
constexpr std::array<Row, 5> kRows{{
    {Kind::tunix, "tunix", "LoRA on JAX with Tunix and Qwix, on TPU", true},
    {Kind::torchax, "torchax", "LoRA with transformers and PEFT on JAX (TorchAX), on TPU", true},
    {Kind::trl_fsdp, "trl-fsdp", "LoRA on PyTorch with TRL, PEFT and FSDP2, on GPUs", true},
    {Kind::vllm_tpu, "vllm-tpu", "vLLM on TPU, and its latency sweep", false},
    {Kind::vllm_gpu, "vllm-gpu", "vLLM on GPUs, and its latency sweep", false},
}};
const Row& row_of(Kind kind) {
  return *std::find_if(kRows.begin(), kRows.end(), [&](const Row& r) { return r.kind == kind; });
}

// Every file of a template folder, by name.
void add_templates(const fs::path& folder, std::vector<File>& files) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_regular_file()) found.push_back(entry.path());
  if (error || found.empty())
    throw Error({.id = "RECIPE", .message = "the recipe's templates are not there", .file = folder.string()},
                Error::Kind::failed);
  std::sort(found.begin(), found.end());
  for (const fs::path& file : found)
    files.push_back({file.filename().string(), read_file(file), file.extension() == ".sh"});
}

std::string value_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// What the template says, then this experiment: its settings, its differences, what the checker says.
std::string readme(const Subject& s, const Json& settings, const std::string& about) {
  std::string out = "# " + markdown(s.name.empty() ? s.model.id : s.name) + "\n\n" + about + "\n## This experiment\n\n";
  out += "| setting | value |\n|---|---|\n";
  out += "| model | " + markdown(settings["model"]["name"].get<std::string>()) + " |\n";
  for (const auto& [axis, size] : settings["mesh"].items()) out += "| mesh." + axis + " | " + size.dump() + " |\n";
  for (const char* section : {"lora", "data", "train", "serve", "sweep"})
    if (settings.contains(section))
      for (const auto& [key, value] : settings[section].items())
        if (key != "modules" && !value.is_null() && value_text(value) != "" && !value.is_object())
          out += "| " + std::string(section) + "." + key + " | " + markdown(value_text(value)) + " |\n";
  const auto list = [&](const char* title, const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    out += std::string("\n## ") + title + "\n\n";
    for (const std::string& line : lines) out += "- " + line + "\n";
  };
  list("Different by design", differences(s));
  std::vector<std::string> remarks;
  for (const std::string& r : s.remarks) remarks.push_back(markdown(r));
  list("What to know", remarks);
  return out;
}

}  // namespace

std::string_view to_string(Kind kind) {
  return row_of(kind).name;
}
std::string_view described(Kind kind) {
  return row_of(kind).text;
}
bool trains(Kind kind) {
  return row_of(kind).trains;
}

Kind recipe_kind(std::string_view name) {
  std::string all;
  for (const Row& r : kRows) {
    if (r.name == name) return r.kind;
    all += (all.empty() ? "" : ", ") + std::string(r.name);
  }
  throw Error({.id = "RECIPE", .message = "no such recipe", .found = std::string(name), .expected = all});
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

std::vector<std::string> pinned(Kind kind, const fs::path& templates) {
  std::vector<std::string> out;
  const std::string text = read_file(templates / to_string(kind) / "requirements.txt");
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (const size_t extra = line.find('['); extra != std::string::npos)  // jax[tpu]==0.10.2
      line.erase(extra, line.find(']') + 1 - extra);
    if (!line.empty() && line.front() != '#' && line.find("==") != std::string::npos) out.push_back(std::move(line));
    at = end + 1;
  }
  return out;
}

std::vector<File> recipe(const Subject& subject, const fs::path& templates) {
  if (model::is_planning_only(subject.model))
    throw Error({.id = "RECIPE",
                 .message = "this model is known for planning only",
                 .place = "model.id",
                 .found = subject.model.id,
                 .expected = "a Gemma"});
  const Json settings = settings_json(subject);
  std::vector<File> files;
  add_templates(templates / to_string(subject.kind), files);
  add_templates(templates / (trains(subject.kind) ? "common" : "serving"), files);
  if (subject.kind == Kind::torchax || subject.kind == Kind::trl_fsdp) add_templates(templates / "hf", files);
  for (File& file : files)
    if (file.path == "README.md") file.content = readme(subject, settings, file.content);
  if (!trains(subject.kind)) add_serving(subject, settings, files);
  const auto dump = [](const Json& j) { return j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"; };
  files.push_back({"settings.json", dump(settings), false});
  files.push_back({"experiment.json", dump(subject.experiment), false});
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.path < b.path; });
  return files;
}

}  // namespace mw::recipes
