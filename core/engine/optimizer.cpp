// SPDX-License-Identifier: Apache-2.0
#include "core/engine/optimizer.h"

#include <cmath>

#include "core/base/error.h"
#include "core/engine/kernels/vector.h"

namespace mw::engine {
namespace {

constexpr std::int64_t kSumBlock =
    1 << 16;  // sums per block, then across blocks in order: the same for any thread count

}  // namespace

AdamW::AdamW(Device& device, std::span<const Parameter> parameters, AdamWOptions options)
    : device_(device), parameters_(parameters.begin(), parameters.end()), options_(options) {
  std::size_t total = 0;
  for (const Parameter& p : parameters_) total += p.value.size();
  m_.emplace_back(device.arena, MemoryCategory::optimizer, total, "AdamW first moments");
  v_.emplace_back(device.arena, MemoryCategory::optimizer, total, "AdamW second moments");
}

double AdamW::gradient_norm() const {
  double squares = 0;
  std::vector<double> blocks;
  for (const Parameter& p : parameters_) {
    const auto n = static_cast<std::int64_t>(p.grad.size()), count = (n + kSumBlock - 1) / kSumBlock;
    blocks.assign(static_cast<size_t>(count), 0.0);
    device_.pool.parallel_for(count, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t b = first; b < last; ++b) {
        const float* g = p.grad.data() + b * kSumBlock;
        blocks[static_cast<size_t>(b)] = vector_kernels().dot(std::min(kSumBlock, n - b * kSumBlock), g, g);
      }
    });
    for (const double b : blocks) squares += b;
  }
  return std::sqrt(squares);
}

void AdamW::step(std::int64_t t, float learning_rate, float clip, double norm) {
  // torch: clip_coef = max_norm / (norm + 1e-6), at most 1
  const double coefficient = clip > 0 ? std::min(1.0, static_cast<double>(clip) / (norm + 1e-6)) : 1.0;
  const double bias1 = 1 - std::pow(options_.beta1, static_cast<double>(t));
  const double bias2 = 1 - std::pow(options_.beta2, static_cast<double>(t));
  std::size_t offset = 0;
  for (const Parameter& p : parameters_) {
    const double decay = p.decays ? static_cast<double>(learning_rate) * options_.weight_decay : 0.0;
    const AdamWScalars scalars{.new1 = static_cast<float>(1 - options_.beta1),
                               .beta2 = static_cast<float>(options_.beta2),
                               .new2 = static_cast<float>(1 - options_.beta2),
                               .decay = static_cast<float>(1 - decay),
                               .step_size = static_cast<float>(static_cast<double>(learning_rate) / bias1),
                               .inverse_sqrt_bias2 = static_cast<float>(1 / std::sqrt(bias2)),
                               .epsilon = static_cast<float>(options_.epsilon),
                               .gradient_scale = static_cast<float>(coefficient)};
    float *m = m_[0].data() + offset, *v = v_[0].data() + offset;
    device_.pool.parallel_for(static_cast<std::int64_t>(p.value.size()), 4096,
                              [&](std::int64_t begin, std::int64_t end) {
                                vector_kernels().adamw(end - begin, scalars, p.grad.data() + begin,
                                                       p.value.data() + begin, m + begin, v + begin);
                              });
    offset += p.value.size();
  }
}

std::span<float> AdamW::first_moment(size_t parameter) {
  std::size_t offset = 0;
  for (size_t i = 0; i < parameter; ++i) offset += parameters_.at(i).value.size();
  return m_[0].span().subspan(offset, parameters_.at(parameter).value.size());
}

std::span<float> AdamW::second_moment(size_t parameter) {
  const std::span<float> m = first_moment(parameter);
  return {v_[0].data() + (m.data() - m_[0].data()), m.size()};
}

}  // namespace mw::engine
