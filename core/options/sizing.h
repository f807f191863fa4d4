// SPDX-License-Identifier: Apache-2.0
// Inference workloads by batch size. Plain values.
#pragma once
#include <string>
#include <vector>

#include "core/base/enum_names.h"

namespace mw::options {

enum class Workload {
  rollout,         // prefill of all prompts, then decoding with a KV cache
  forward,         // log-probabilities of given tokens, with the logits of all positions at once
  chunked_forward  // the same in chunks of logits, keeping the top_k tokens of each position
};

struct Sizing {
  std::vector<Workload> workloads;
  std::vector<std::string> batches;  // see plan::size_cases()
  int prompt_len = 0, new_tokens = 0, cache_len = 0, forward_len = 0;
  int top_k = 0, chunk = 0;
  bool adapters = false;
};

}  // namespace mw::options

template <>
inline constexpr mw::EnumNames<3> mw::kEnumNames<mw::options::Workload>{"rollout", "forward", "chunked_forward"};
