// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transformer/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "core/engine/kernels/vector.h"
#include "core/engine/layout/weights_layout.h"

namespace mw::engine {
namespace {

constexpr std::int64_t kSumBlock = 1 << 16;  // elements whose squares are summed at once
constexpr std::int64_t kGrain = 4096;

}  // namespace

AdamW::AdamW(Device& device, std::span<const TrainableTensor> parameters, options::AdamWOptions options)
    : device_(device), parameters_(parameters.begin(), parameters.end()), starts_{0}, options_(options) {
  for (const TrainableTensor& p : parameters_) {
    starts_.push_back(starts_.back() + static_cast<std::int64_t>(p.value.size()));
    const Group group{p.rate, p.decays};
    const auto same = std::find(groups_.begin(), groups_.end(), group);
    group_of_.push_back(static_cast<size_t>(same - groups_.begin()));
    if (same == groups_.end()) groups_.push_back(group);
  }
  const auto [first, second] = moment_allocations(starts_.back());
  m_ = DeviceBuffer<float>(device.arena, first);
  v_ = DeviceBuffer<float>(device.arena, second);
}

// fn(parameter, its first element, count) for what elements [begin, end) of all parameters are made of.
template <class F>
void AdamW::each_part(std::int64_t begin, std::int64_t end, F fn) const {
  auto i = static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), begin) - starts_.begin()) - 1;
  for (; begin < end; begin = starts_[++i])
    if (const std::int64_t stop = std::min(end, starts_[i + 1]); begin < stop)
      fn(parameters_[i], begin - starts_[i], stop - begin);
}

double AdamW::gradient_norm() const {
  std::vector<double> squares(static_cast<size_t>((starts_.back() + kSumBlock - 1) / kSumBlock));
  device_.pool.parallel_for(starts_.back(), kSumBlock, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t begin = first; begin < last; begin += kSumBlock) {
      double& sum = squares[static_cast<size_t>(begin / kSumBlock)] = 0;
      each_part(begin, std::min(last, begin + kSumBlock),
                [&](const TrainableTensor& p, std::int64_t at, std::int64_t count) {
                  sum += vector_kernels().dot(count, p.grad.data() + at, p.grad.data() + at);
                });
    }
  });
  return std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
}

void AdamW::step(std::int64_t t, float learning_rate, float clip, double norm) {
  // torch: clip_coef = max_norm / (norm + 1e-6), at most 1
  const double coefficient = clip > 0 ? std::min(1.0, static_cast<double>(clip) / (norm + 1e-6)) : 1.0;
  const double bias1 = 1 - std::pow(options_.beta1, static_cast<double>(t));
  const double bias2 = 1 - std::pow(options_.beta2, static_cast<double>(t));
  const AdamWScalars plain{.one_minus_beta1 = static_cast<float>(1 - options_.beta1),
                           .beta2 = static_cast<float>(options_.beta2),
                           .one_minus_beta2 = static_cast<float>(1 - options_.beta2),
                           .decay = 1,
                           .step_size = 0,
                           .inverse_sqrt_bias2 = static_cast<float>(1 / std::sqrt(bias2)),
                           .epsilon = static_cast<float>(options_.epsilon),
                           .gradient_scale = static_cast<float>(coefficient)};
  std::vector<AdamWScalars> of_group;
  for (const Group& group : groups_) {
    const double rate = static_cast<double>(learning_rate) * static_cast<double>(group.rate);
    AdamWScalars& scalars = of_group.emplace_back(plain);
    scalars.step_size = static_cast<float>(rate / bias1);
    if (group.decays) scalars.decay = static_cast<float>(1 - rate * options_.weight_decay);
  }
  device_.pool.parallel_for(starts_.back(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    float *m = m_.data() + begin, *v = v_.data() + begin;
    each_part(begin, end, [&](const TrainableTensor& p, std::int64_t at, std::int64_t count) {
      const auto index = static_cast<size_t>(&p - parameters_.data());
      vector_kernels().adamw(count, of_group[group_of_[index]], p.grad.data() + at, p.value.data() + at, m, v);
      m += count, v += count;
    });
  });
}

std::span<float> AdamW::first_moment(size_t parameter) {
  const auto begin = static_cast<size_t>(starts_.at(parameter));
  return m_.span().subspan(begin, parameters_.at(parameter).value.size());
}

std::span<float> AdamW::second_moment(size_t parameter) {
  const auto begin = static_cast<size_t>(starts_.at(parameter));
  return v_.span().subspan(begin, parameters_.at(parameter).value.size());
}

}  // namespace mw::engine
