// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/base/file_system.h"
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

// path: fingerprints that its file may have. Two while an export is being replaced, so that a crash halfway does not
// make the folder look edited by hand.
using Written = std::map<std::string, std::set<std::string>>;

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
  if (!path_exists(folder / kManifest))
    refuse(folder, "the folder is in use by something else", "files that no export wrote", "choose another --out");
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
    if (path_exists(file) && !fingerprints.contains(fingerprint(read_file(file))))
      refuse(folder, "a file of the recipe has been changed since it was written", path,
             "choose another --out, or give --force to write it again");
  }
}

// Paths of a manifest are only ever looked up, and what is written has names of ours.
void copy_adapter(const fs::path& from, const fs::path& to) {
  make_folders(to);
  for (const char* name : {"adapter_config.json", "adapter_model.safetensors"}) copy_atomically(from / name, to / name);
}

// Moves an export over an earlier one. Files that no export wrote stay.
void replace_recipe(const fs::path& staged, const fs::path& folder, const Written& before, Json manifest) {
  for (const auto& [path, fingerprints] : before)
    if (is_file(folder / path)) manifest["replaces"][path] = fingerprint(read_file(folder / path));
  write_file_atomically(folder / kManifest, manifest.dump(1) + "\n");
  for (const auto& [path, hash] : manifest["files"].items()) {
    make_folders((folder / path).parent_path());
    if (file_system().rename((staged / path).c_str(), (folder / path).c_str()) != 0)
      throw system_error("cannot write", (folder / path).string(), errno);
  }
  for (const auto& [path, fingerprints] : before)  // of another kind of recipe; paths of a manifest are not trusted
    if (!manifest["files"].contains(path) && fs::path(path).is_relative() && path.find("..") == std::string::npos)
      remove_tree(folder / path);
  manifest.erase("replaces");
  write_file_atomically(folder / kManifest, manifest.dump(1) + "\n");
}

}  // namespace

std::vector<std::string> write_recipe(const Subject& subject, const fs::path& templates, const fs::path& folder,
                                      Overwrite overwrite) {
  const std::vector<File> files = recipe(subject, templates);
  const Written before = written_before(folder);
  if (overwrite == Overwrite::refuse) check_unchanged(folder, before);
  StagedFolder staged(folder);
  std::vector<std::string> paths;
  for (const File& file : files) {
    write_file_atomically(staged.path() / file.path, file.content);
    if (file.executable) make_executable(staged.path() / file.path);
    paths.push_back(file.path);
  }
  if (trains(subject.kind) && subject.rows) {
    write_rows(staged.path() / "data" / "rows.safetensors", *subject.rows);
    paths.push_back("data/rows.safetensors");
  }
  if (trains(subject.kind) && !subject.adapter.empty()) {
    copy_adapter(subject.adapter, staged.path() / "adapter");
    paths.insert(paths.end(), {"adapter/adapter_config.json", "adapter/adapter_model.safetensors"});
  }
  Json manifest{{"recipe", std::string(to_string(subject.kind))}, {"made_by", "Meshwright " MW_VERSION}};
  for (const std::string& path : paths) manifest["files"][path] = fingerprint(read_file(staged.path() / path));
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
