// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/recipes/recipe.h"

namespace mw::recipes {
namespace fs = std::filesystem;
namespace {

constexpr const char* kManifest = "recipe.json";

// FNV-1a: tells whether a file has been changed, not who changed it.
std::string fingerprint(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (int shift = 60; shift >= 0; shift -= 4) out += digits[(hash >> shift) & 15];
  return out;
}

using Written = std::map<std::string, std::string>;  // path: fingerprint

[[noreturn]] void refuse(const fs::path& folder, const std::string& message, const std::string& found,
                         const std::string& fix) {
  throw Error({.id = "RECIPE-FOLDER",
               .message = message,
               .file = folder.string(),
               .found = found,
               .expected = "a folder that is empty, does not exist, or holds an export as it was written",
               .fix = fix});
}

Written written_before(const fs::path& folder) {
  std::error_code error;
  const auto kind = fs::status(folder, error).type();
  if (kind == fs::file_type::not_found) return {};
  if (kind != fs::file_type::directory) refuse(folder, "not a folder", "a file", "choose another --out");
  if (fs::is_empty(folder, error)) return {};
  if (!is_there(folder / kManifest))
    refuse(folder, "the folder is in use by something else", "files that no export wrote", "choose another --out");
  Written out;
  const Json manifest = read_json(folder / kManifest);
  if (manifest.is_object() && manifest.value("files", Json()).is_object())
    for (const auto& [path, hash] : manifest["files"].items())
      out[path] = hash.is_string() ? hash.get<std::string>() : "";
  return out;
}

void check_unchanged(const fs::path& folder, const Written& before) {
  for (const auto& [path, hash] : before) {
    const fs::path file = folder / path;
    if (is_there(file) && fingerprint(read_file(file)) != hash)
      refuse(folder, "a file of the recipe has been changed since it was written", path,
             "choose another --out, or give --force to write it again");
  }
}

// Paths of a manifest are only ever looked up, and what is written has names of ours.
void copy_adapter(const fs::path& from, const fs::path& to) {
  fs::create_directories(to);
  for (const char* name : {"adapter_config.json", "adapter_model.safetensors"})
    fs::copy_file(from / name, to / name, fs::copy_options::overwrite_existing);
}

}  // namespace

std::vector<std::string> write_recipe(const Subject& subject, const fs::path& templates, const fs::path& folder,
                                      Overwrite overwrite) {
  const std::vector<File> files = recipe(subject, templates);
  const Written before = written_before(folder);
  if (overwrite == Overwrite::refuse) check_unchanged(folder, before);
  const auto place = [&](const fs::path& into) {
    std::vector<std::string> paths;
    for (const File& file : files) {
      write_file_atomically(into / file.path, file.content);
      if (file.executable)
        fs::permissions(into / file.path, fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
                        fs::perm_options::add);
      paths.push_back(file.path);
    }
    if (trains(subject.kind) && subject.rows) {
      write_rows(into / "data" / "rows.safetensors", *subject.rows);
      paths.push_back("data/rows.safetensors");
    }
    if (trains(subject.kind) && !subject.adapter.empty()) {
      copy_adapter(subject.adapter, into / "adapter");
      paths.insert(paths.end(), {"adapter/adapter_config.json", "adapter/adapter_model.safetensors"});
    }
    Json manifest{{"recipe", std::string(to_string(subject.kind))}, {"made_by", "Meshwright " MW_VERSION}};
    for (const std::string& path : paths) manifest["files"][path] = fingerprint(read_file(into / path));
    write_file_atomically(into / kManifest, manifest.dump(1) + "\n");
    paths.push_back(kManifest);
    std::sort(paths.begin(), paths.end());
    return paths;
  };
  if (!before.empty()) {
    auto paths = place(folder);
    for (const auto& [path, hash] : before)  // of another kind that was here
      if (std::find(paths.begin(), paths.end(), path) == paths.end() && fs::path(path).is_relative() &&
          path.find("..") == std::string::npos)
        fs::remove(folder / path);
    return paths;
  }
  StagedFolder staged(folder);
  auto paths = place(staged.path());
  std::error_code error;
  fs::remove(folder, error);  // empty, or not there
  staged.commit();
  return paths;
}

}  // namespace mw::recipes
