// SPDX-License-Identifier: Apache-2.0
#include "core/formats/peft_patterns.h"

#if defined(__GNUC__) && !defined(__clang__)  // g++ 12 with -fsanitize sees ghosts inside <regex>
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <regex>

#include "core/base/error.h"
#include "core/base/json.h"

namespace mw::formats {
namespace {

constexpr size_t kMaxPatterns = 4096, kMaxLength = 256;

// libstdc++'s polynomial matcher: no expression from a file may take exponential time or deep recursion.
std::regex compile(const std::string& key, const std::string& file, const std::string& place) {
  const auto fail = [&](const std::string& message) {
    throw Error({.id = "ADAPTER",
                 .message = message,
                 .file = file,
                 .place = place,
                 .found = valid_utf8(key.substr(0, 60)),
                 .expected = "a module name or a regular expression"});
  };
  if (key.size() > kMaxLength) fail("the pattern is too long");
  try {
#ifdef __GLIBCXX__
    return std::regex("(.*\\.)?(" + key + ")", std::regex::ECMAScript | std::regex_constants::__polynomial);
#else
    return std::regex("(.*\\.)?(" + key + ")", std::regex::ECMAScript);
#endif
  } catch (const std::regex_error&) {
    fail("not a usable regular expression");
  }
  return {};
}

}  // namespace

PeftPatterns::PeftPatterns(const std::vector<std::pair<std::string, double>>& patterns, const std::string& file,
                           const std::string& place) {
  if (patterns.size() > kMaxPatterns)
    throw Error({.id = "ADAPTER",
                 .message = "too many patterns",
                 .file = file,
                 .place = place,
                 .found = std::to_string(patterns.size()),
                 .expected = "at most " + std::to_string(kMaxPatterns)});
  for (const auto& [key, value] : patterns) {
    auto matches = [expression = compile(key, file, place + "." + key)](const std::string& module) {
      return std::regex_match(module, expression);
    };
    patterns_.emplace_back(std::move(matches), value);
  }
}

double PeftPatterns::resolve(const std::string& module, double fallback) const {
  for (const auto& [matches, value] : patterns_)
    if (matches(module)) return value;
  return fallback;
}

}  // namespace mw::formats
