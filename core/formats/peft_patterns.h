// SPDX-License-Identifier: Apache-2.0
// rank_pattern and alpha_pattern as peft resolves them: keys are regular expressions matched as "(.*\.)?(KEY)" against
// the whole module path; the first key that matches wins. One thread.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace mw::formats {

class PeftPatterns {
 public:
  PeftPatterns() = default;
  // `place` is the config key and `file` the config, for errors (invalid or too long expressions).
  PeftPatterns(const std::vector<std::pair<std::string, double>>& patterns, const std::string& file,
               const std::string& place);
  double resolve(const std::string& module, double fallback) const;

 private:
  std::vector<std::pair<std::function<bool(const std::string& module)>, double>> patterns_;
};

}  // namespace mw::formats
