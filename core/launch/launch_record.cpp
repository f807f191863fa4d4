// SPDX-License-Identifier: Apache-2.0
#include "core/launch/launch_record.h"

#include <array>
#include <random>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"

namespace mw::launch {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFile = "launch.json";

}  // namespace

std::string new_token() {
  std::random_device device;
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (int i = 0; i < 16; ++i) out += digits[device() & 15];
  return out;
}

void save(const LaunchRecord& t, const fs::path& run_folder) {
  const Json json{{"schema", 1},
                  {"on", t.target.text},
                  {"where", to_string(t.target.where)},
                  {"host", t.target.host},
                  {"port", t.target.port},
                  {"template", t.target.command},
                  {"ssh_config", t.target.ssh_config.string()},
                  {"folder", t.folder},
                  {"token", t.token},
                  {"command", t.command},
                  {"recipe", std::string(recipes::to_string(t.recipe))},
                  {"fetch", t.fetch}};
  write_file_atomically(run_folder / kFile, json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

bool has_launch_record(const fs::path& run_folder) {
  return path_exists(run_folder / kFile);
}

LaunchRecord load_launch_record(const fs::path& run_folder) {
  const fs::path file = run_folder / kFile;
  if (!has_launch_record(run_folder))
    throw Error({.id = "LAUNCH-TICKET",
                 .message = "the run was not launched on a target",
                 .file = file.string(),
                 .fix = "list the runs with `meshwright runs`"});
  const Json json = read_json(file);
  const auto text = [&](const char* key) { return string_member(json, key, file.string()); };
  LaunchRecord t{.target = {.where = Where::local, .text = text("on")},
                 .folder = text("folder"),
                 .token = text("token"),
                 .command = text("command"),
                 .recipe = recipes::parse_recipe_kind(text("recipe")),
                 .fetch = {}};
  t.target.where = parse<Where>(text("where")).value_or(Where::local);
  t.target.host = text("host");
  t.target.port = text("port");
  t.target.command = text("template");
  t.target.ssh_config = text("ssh_config");
  for (const Json& path : member(json, "fetch", file.string()))
    if (path.is_string()) t.fetch.push_back(path.get<std::string>());
  return t;
}

}  // namespace mw::launch
