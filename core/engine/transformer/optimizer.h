// SPDX-License-Identifier: Apache-2.0
// AdamW as torch.optim.AdamW (decoupled decay, bias correction), with global-norm clipping as
// torch.nn.utils.clip_grad_norm_. Moments live in the device's arena (category optimizer).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/engine/transformer/network.h"
#include "core/options/training.h"

namespace mw::engine {

class AdamW {
 public:
  AdamW(Device& device, std::span<const TrainableTensor> parameters, options::AdamWOptions options);
  // Global L2 norm over all gradients, f64 accumulation in a fixed order: the same for any thread count.
  double gradient_norm() const;
  // t counts from 1. clip <= 0: no clipping. Uses `norm` from gradient_norm().
  void step(std::int64_t t, float learning_rate, float clip, double norm);
  std::span<float> first_moment(size_t parameter);
  std::span<float> second_moment(size_t parameter);

 private:
  template <class F>
  void each_part(std::int64_t begin, std::int64_t end, F fn) const;

  Device& device_;
  std::vector<TrainableTensor> parameters_;
  struct Group {  // parameters with the same rate and decay
    float rate = 1;
    bool decays = true;
    bool operator==(const Group&) const = default;
  };
  std::vector<Group> groups_;
  std::vector<size_t> group_of_;      // by parameter
  std::vector<std::int64_t> starts_;  // the first element of each parameter, and the number of all elements
  options::AdamWOptions options_;
  DeviceBuffer<float> m_, v_;
};

}  // namespace mw::engine
