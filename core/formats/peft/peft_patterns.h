// SPDX-License-Identifier: Apache-2.0
// rank_pattern and alpha_pattern as peft resolves them: keys are regular expressions matched as "(.*\.)?(KEY)" against
// the whole module path; the first key that matches wins. One thread.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/base/pattern.h"

namespace mw::formats {

class PeftPatterns {
 public:
  PeftPatterns() = default;
  // `place` is the config key and `file` the config, for errors (invalid or too long expressions).
  PeftPatterns(const std::vector<std::pair<std::string, double>>& patterns, const std::string& file,
               const std::string& place);
  // Throws where an expression takes too long to match.
  double resolve(const std::string& module, double fallback) const;

 private:
  struct One {
    std::string key;
    Pattern expression;
    double value;
  };
  std::string file_, place_;
  std::vector<One> patterns_;
};

}  // namespace mw::formats
