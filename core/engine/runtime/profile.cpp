// SPDX-License-Identifier: Apache-2.0
#include "core/engine/runtime/profile.h"

namespace mw::engine {

std::vector<KernelTime> Profile::take() {
  static constexpr std::array<const char*, kKernels> kNames{"projections",
                                                            "projections backward",
                                                            "weight gradients",
                                                            "lora",
                                                            "attention",
                                                            "attention backward",
                                                            "norms",
                                                            "rope",
                                                            "geglu",
                                                            "output head",
                                                            "cross-entropy",
                                                            "embedding",
                                                            "experts",
                                                            "sampling"};
  std::vector<KernelTime> times;
  for (size_t i = 0; i < kKernels; ++i)
    if (entries_[i].calls > 0) times.push_back({kNames[i], entries_[i].seconds, entries_[i].calls, entries_[i].flops});
  entries_ = {};
  return times;
}

}  // namespace mw::engine
