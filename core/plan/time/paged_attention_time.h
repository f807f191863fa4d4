// SPDX-License-Identifier: Apache-2.0
// What the attention of decoding requests takes in vLLM's kernel on TPUs (ragged paged attention v3 of tpu-inference):
// it walks the cache in blocks, windows skip whole blocks only, and the matrix units multiply whole blocks, however
// short the context is. Any thread.
#pragma once
#include <vector>

#include "core/plan/request/local_model.h"

namespace mw::plan {

class PagedAttentionTime {
 public:
  PagedAttentionTime() = default;
  explicit PagedAttentionTime(const LocalModel& model);  // of a server on TPUs
  // Keys that a prompt's queries are multiplied with where they see `window` of them, in the mean of a long prompt.
  static double walked(int window);
  // Seconds of one request with `context` tokens, `share` of the bandwidth reached.
  double seconds(double context, double share) const;

 private:
  struct Kind {
    int count = 0, window = 0;        // layers; 0: they see everything
    double block = 0;                 // tokens of a step through the cache
    double token_s = 0, block_s = 0;  // at the full bandwidth; at the peak
  };
  std::vector<Kind> kinds_;
};

}  // namespace mw::plan
