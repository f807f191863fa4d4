// SPDX-License-Identifier: Apache-2.0
// What is kept of a launch in its run's folder, launch.json: enough to find the job again. No secrets: programs that
// connect keep theirs themselves. Plain values; any thread.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/launch/target.h"
#include "core/recipes/recipe.h"

namespace mw::launch {

struct Ticket {
  Target target;
  std::string folder;  // there, absolute
  std::string token;   // tells this launch's folder from another's
  std::string command;
  recipes::Kind recipe = recipes::Kind::tunix;
  std::vector<std::string> fetch;
};
void save(const Ticket& ticket, const std::filesystem::path& run_folder);
Ticket load_ticket(const std::filesystem::path& run_folder);  // throws Error LAUNCH-TICKET: not launched
bool has_ticket(const std::filesystem::path& run_folder);
std::string new_token();  // 16 random hexadecimal digits

}  // namespace mw::launch
