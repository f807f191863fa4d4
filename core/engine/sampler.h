// SPDX-License-Identifier: Apache-2.0
// Autoregressive sampling from a Network (with its adapters) through a KV cache (category kv_cache).
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <vector>

#include "core/engine/network.h"

namespace mw::engine {

struct SampleOptions {
  int max_new_tokens = 64;
  float temperature = 0;  // 0: greedy
  int top_k = 0;          // 0: off
  float top_p = 1;
  std::uint64_t seed = 0;
  std::vector<int> stop_ids{};  // generation ends after one of these (it is not returned)
};

class Sampler {
 public:
  explicit Sampler(Network& network) : network_(network) {}
  // prompt includes bos. on_token may return false to stop early.
  std::vector<int> generate(std::span<const int> prompt, const SampleOptions& options, std::stop_token stop = {},
                            const std::function<bool(int)>& on_token = {});

 private:
  Network& network_;
};

}  // namespace mw::engine
