// SPDX-License-Identifier: Apache-2.0
// Seconds of attention of decoding requests in vLLM's kernel on TPUs (ragged paged attention v3 of tpu-inference). The
// kernel reads the cache in blocks: windows skip whole blocks only, and the matrix units multiply whole blocks however
// short the context is. Immutable; any thread.
#pragma once
#include <vector>

#include "core/plan/request/local_model.h"

namespace mw::plan {

class PagedAttentionTime {
 public:
  PagedAttentionTime() = default;
  explicit PagedAttentionTime(const LocalModel& model);  // of a server on TPUs
  // The mean number of keys that the kernel multiplies with each query of a long prompt under a window of `window`
  // keys.
  static double walked(int window);
  // Seconds for one request with `context` tokens at `share` of the memory bandwidth.
  double seconds(double context, double share) const;

 private:
  struct Kind {
    int count = 0, window = 0;        // layers; window 0: full attention
    double block = 0;                 // tokens of a block
    double token_s = 0, block_s = 0;  // at the full bandwidth; at the peak
  };
  std::vector<Kind> kinds_;
};

}  // namespace mw::plan
