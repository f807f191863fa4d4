// SPDX-License-Identifier: Apache-2.0
// How many held-out prompts a model answered correctly, by step. Thread-safe.
#pragma once
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace mw::store {

struct ScoredAnswers {
  long step = 0, right = 0, scored = 0;
  double share() const { return static_cast<double>(right) / static_cast<double>(scored); }
  // The 95 % Wilson score interval of the share.
  std::pair<double, double> interval() const {
    const double n = static_cast<double>(scored), z2 = 1.96 * 1.96, p = share();
    const double middle = (p + z2 / (2 * n)) / (1 + z2 / n);
    const double half = 1.96 * std::sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n);
    return {middle - half, middle + half};
  }
  bool operator==(const ScoredAnswers&) const = default;
};
inline std::string to_text(const ScoredAnswers& answers) {
  return std::to_string(answers.right) + " of " + std::to_string(answers.scored);
}

// Ascending by step. `samples` have step, prompt and verdict; those without a verdict are ignored. A prompt that was
// answered twice after the same step counts once, with its last verdict.
template <class Samples>
std::vector<ScoredAnswers> scored_answers(const Samples& samples) {
  std::map<long, std::map<std::string, bool>> by_step;
  for (const auto& s : samples)
    if (!s.verdict.empty()) by_step[s.step][s.prompt] = s.verdict == "right";
  std::vector<ScoredAnswers> out;
  for (const auto& [step, prompts] : by_step) {
    ScoredAnswers at{step, 0, static_cast<long>(prompts.size())};
    for (const auto& [prompt, right] : prompts) at.right += right;
    out.push_back(at);
  }
  return out;
}

}  // namespace mw::store
