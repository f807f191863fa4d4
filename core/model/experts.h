// SPDX-License-Identifier: Apache-2.0
// How many experts of a layer a number of tokens uses. A pure function; any thread.
#pragma once
#include <algorithm>
#include <cmath>

#include "core/model/config.h"

namespace mw::model {

// The expected number of distinct experts of one layer that `tokens` tokens choose, if each chooses experts_per_token
// of them independently and evenly: E (1 - (1 - k/E)^n). Between k, for one token, and E. 0 without experts or tokens.
inline double expected_experts(const Config& config, double tokens) {
  if (config.experts <= 0 || tokens <= 0) return 0;
  const double all = config.experts, chosen = std::min<double>(config.experts_per_token, all);
  return all * (1 - std::pow(1 - chosen / all, tokens));
}

}  // namespace mw::model
