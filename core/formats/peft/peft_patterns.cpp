// SPDX-License-Identifier: Apache-2.0
#include "core/formats/peft/peft_patterns.h"

#include "core/base/error.h"
#include "core/base/json.h"

namespace mw::formats {
namespace {

constexpr size_t kMaxPatterns = 4096, kMaxLength = 256;

Error fault(const std::string& file, const std::string& place, const std::string& message, const std::string& key) {
  return Error({.id = "ADAPTER",
                .message = message,
                .file = file,
                .place = valid_utf8(place),
                .found = valid_utf8(key.substr(0, 60)),
                .expected = "a module name or a regular expression"});
}

Pattern compile(const std::string& key, const std::string& file, const std::string& place) {
  if (key.size() > kMaxLength) throw fault(file, place, "the pattern is too long", key);
  try {
    return Pattern("(.*\\.)?(" + key + ")");
  } catch (const Error&) {
    throw fault(file, place, "invalid regular expression", key);
  }
}

}  // namespace

PeftPatterns::PeftPatterns(const std::vector<std::pair<std::string, double>>& patterns, const std::string& file,
                           const std::string& place)
    : file_(file), place_(place) {
  if (patterns.size() > kMaxPatterns)
    throw Error({.id = "ADAPTER",
                 .message = "there are too many patterns",
                 .file = file,
                 .place = place,
                 .found = std::to_string(patterns.size()),
                 .expected = "at most " + std::to_string(kMaxPatterns)});
  for (const auto& [key, value] : patterns) patterns_.push_back({key, compile(key, file, place + "." + key), value});
}

double PeftPatterns::resolve(const std::string& module, double fallback) const {
  for (const Entry& entry : patterns_) {
    try {
      if (entry.expression.matches_all(module)) return entry.value;
    } catch (const Error&) {
      throw fault(file_, place_ + "." + entry.key, "matching the regular expression takes too long", entry.key);
    }
  }
  return fallback;
}

}  // namespace mw::formats
