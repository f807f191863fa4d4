// SPDX-License-Identifier: Apache-2.0
// How tokens are drawn from logits. Plain values.
#pragma once
#include <cstdint>
#include <vector>

namespace mw::options {

struct SampleOptions {
  int max_new_tokens = 64;
  float temperature = 0;  // 0: greedy
  int top_k = 0;          // 0: off
  float top_p = 1;
  float min_p = 0;  // 0: off
  std::uint64_t seed = 0;
  int first_row = 0;            // of the whole batch, where these prompts are a part of it
  std::vector<int> stop_ids{};  // a row ends before one of these (it is not returned)
};

}  // namespace mw::options
