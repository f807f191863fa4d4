// SPDX-License-Identifier: Apache-2.0
// Resolves rank_pattern and alpha_pattern like PEFT: the first key whose regular expression "(.*\.)?(KEY)" matches the
// whole module path determines the value. Thread-safe.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/base/pattern.h"

namespace mw::formats {

class PeftPatterns {
 public:
  PeftPatterns() = default;
  // Throws ADAPTER, naming `file` and the config key `place`, for invalid or too long expressions.
  PeftPatterns(const std::vector<std::pair<std::string, double>>& patterns, const std::string& file,
               const std::string& place);
  // Throws ADAPTER if matching takes too long.
  double resolve(const std::string& module, double fallback) const;

 private:
  struct Entry {
    std::string key;
    Pattern expression;
    double value;
  };
  std::string file_, place_;
  std::vector<Entry> patterns_;
};

}  // namespace mw::formats
