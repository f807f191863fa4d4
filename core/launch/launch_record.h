// SPDX-License-Identifier: Apache-2.0
// launch.json in a run's folder: identifies a launched job so that a later process can reattach to it. Contains no
// secrets. Plain values.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/launch/target.h"
#include "core/recipes/recipe.h"

namespace mw::launch {

struct LaunchRecord {
  Target target;
  std::string folder;  // absolute path on the target
  std::string token;   // identifies the folder of this launch
  std::string command;
  recipes::Kind recipe = recipes::Kind::tunix;
  std::vector<std::string> fetch;
};
void save(const LaunchRecord& record, const std::filesystem::path& run_folder);
LaunchRecord load_launch_record(
    const std::filesystem::path& run_folder);  // throws LAUNCH-TICKET if the run was not launched
bool has_launch_record(const std::filesystem::path& run_folder);
std::string new_token();  // 16 random hexadecimal digits

}  // namespace mw::launch
