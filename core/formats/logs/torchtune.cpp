// SPDX-License-Identifier: Apache-2.0
// Text of torchtune's DiskLogger (log_TIME.txt): "Step 5 | loss:0.35 lr:1e-06 peak_memory_active:85.5". Memory is in
// GiB.

#include "core/base/files.h"
#include "core/base/text.h"
#include "core/formats/logs/log_readers.h"

namespace mw::formats {
namespace {

constexpr double kBytesOfGib = 1024.0 * 1024 * 1024;

std::string torchtune_name(std::string_view name) {
  if (name.starts_with("peak_memory_")) return "train/" + std::string(name) + "_bytes";
  return usual_name(name == "val_loss" ? "eval_loss" : std::string(name));
}

// The values of a line; false if it is not one of the logger.
bool take_values(std::string_view line, RunLog& log) {
  if (!line.starts_with("Step ")) return false;
  const size_t bar = line.find(" | ");
  if (bar == std::string_view::npos) return false;
  const auto step = parse_number<long>(line.substr(5, bar - 5));
  if (!step || *step < 0 || *step > kMostStep) return false;
  bool any = false;
  for (std::string_view left = line.substr(bar + 3); !left.empty();) {
    const std::string_view item = left.substr(0, left.find(' '));
    left.remove_prefix(std::min(left.size(), item.size() + 1));
    const size_t colon = item.rfind(':');
    if (colon == std::string_view::npos || colon == 0) continue;
    const auto value = parse_number<double>(item.substr(colon + 1));
    if (!value) continue;
    const bool memory = item.starts_with("peak_memory_");
    log.scalars.push_back({torchtune_name(item.substr(0, colon)), *step, memory ? *value * kBytesOfGib : *value, 0});
    any = true;
  }
  return any;
}

}  // namespace

bool contains_torchtune_line(std::string_view beginning) {
  for (std::string_view left = beginning; !left.empty();) {
    RunLog line;
    if (take_values(take_line(left), line) && line.scalars.front().name == "train/loss") return true;
  }
  return false;
}

RunLog read_torchtune(const std::filesystem::path& file) {
  const std::string text = read_text(file, kMostLog);
  RunLog log;
  log.name = file.stem().string();
  log.tool = "torchtune";
  long line = 0, others = 0, first_other = 0;
  for (std::string_view left = text; !left.empty();) {
    const std::string_view content = take_line(left);
    ++line;
    if (content.find_first_not_of(" \t\r") == std::string_view::npos || take_values(content, log)) continue;
    if (others++ == 0) first_other = line;
  }
  if (others > 0)
    log.notes.push_back(std::to_string(others) + " lines have no values and were skipped, the first is line " +
                        std::to_string(first_other));
  return log;
}

}  // namespace mw::formats
