// SPDX-License-Identifier: Apache-2.0
// Counts with their noun: "1 device", "2 devices". Thread-safe.
#pragma once
#include <concepts>
#include <string>

namespace mw {

// `number`: as it is written, such as "1,024" or "1.2k". Regular plurals: "entry" gives "entries", "batch" "batches".
inline std::string counted(const std::string& number, std::string noun) {
  if (number != "1") {
    const bool sibilant = noun.ends_with("ch") || noun.ends_with("sh") || noun.ends_with('s');
    if (noun.ends_with("ry"))
      noun.replace(noun.size() - 1, 1, "ies");
    else
      noun += sibilant ? "es" : "s";
  }
  return number + " " + noun;
}
std::string counted(std::integral auto n, const char* noun) {
  return counted(std::to_string(n), noun);
}

}  // namespace mw
