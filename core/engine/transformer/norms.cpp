// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transformer/norms.h"

#include <cstring>

#include "core/engine/transformer/transformer.h"

namespace mw::engine {
namespace {

// Rows a thread takes at least: waking another one for less costs more than it saves, most of all when decoding.
constexpr std::int64_t kGrain = 32;
constexpr std::int64_t kBackwardGrain = 8;

NormRows rows_of(const RmsNorm& n, std::int64_t begin, std::int64_t end) {
  return {end - begin, n.dim, n.x + begin * n.dim, n.weight->gain()};
}

}  // namespace

void norm(Transformer& net, const RmsNorm& n, float* y) {
  const auto timer = net.profile.time(Kernel::norms);
  net.device.pool.parallel_for(n.rows, kGrain, [&](std::int64_t begin, std::int64_t end) {
    net.kernels.rms_norm(rows_of(n, begin, end), net.config.norm_eps, y + begin * n.dim, n.inv + begin);
  });
}

void norm_add(Transformer& net, const RmsNorm& n, const float* residual, float* y) {
  const auto timer = net.profile.time(Kernel::norms);
  net.device.pool.parallel_for(n.rows, kGrain, [&](std::int64_t begin, std::int64_t end) {
    net.kernels.rms_norm_add(rows_of(n, begin, end), net.config.norm_eps, residual + begin * n.dim, y + begin * n.dim,
                             n.inv + begin);
  });
}

void recompute_norm(Transformer& net, const RmsNorm& n, float* y) {
  const auto timer = net.profile.time(Kernel::norms);
  net.device.pool.parallel_for(n.rows, kBackwardGrain, [&](std::int64_t begin, std::int64_t end) {
    net.kernels.recompute_rms_norm(rows_of(n, begin, end), n.inv + begin, y + begin * n.dim);
  });
}

void recompute_norm_add(Transformer& net, const RmsNorm& n, const float* residual, float* y) {
  const auto timer = net.profile.time(Kernel::norms);
  net.device.pool.parallel_for(n.rows, kBackwardGrain, [&](std::int64_t begin, std::int64_t end) {
    net.kernels.recompute_rms_norm_add(rows_of(n, begin, end), n.inv + begin, residual + begin * n.dim,
                                       y + begin * n.dim);
  });
}

void norm_backward(Transformer& net, const RmsNorm& n, const float* dy, float* dx, StoreMode how) {
  const auto timer = net.profile.time(Kernel::norms);
  if (n.weight->gradient)
    net.device.pool.parallel_for(n.dim, 16, [&](std::int64_t begin, std::int64_t end) {
      net.kernels.rms_norm_weight(rows_of(n, 0, n.rows), n.inv, dy, {begin, end}, n.weight->gradient);
    });
  net.device.pool.parallel_for(n.rows, kBackwardGrain, [&](std::int64_t begin, std::int64_t end) {
    net.kernels.rms_norm_backward(rows_of(n, begin, end), n.inv + begin, dy + begin * n.dim, dx + begin * n.dim, how);
  });
}

void head_norm(Transformer& net, const RmsNorm& n, NormStatistics statistics, float* y) {
  if (n.weight)
    statistics == NormStatistics::compute ? norm(net, n, y) : recompute_norm(net, n, y);
  else
    std::memcpy(y, n.x, static_cast<size_t>(n.rows * n.dim) * sizeof(float));
}

void head_norm_backward(Transformer& net, const RmsNorm& n, float* d) {
  if (n.weight) norm_backward(net, n, d, d, StoreMode::write);
}

}  // namespace mw::engine
