// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transformer/norms.h"

#include <cstring>

#include "core/engine/transformer/transformer.h"

namespace mw::engine {
namespace {

// Rows a thread takes at least: waking another one for less costs more than it saves, most of all when decoding.
constexpr std::int64_t kGrain = 32;
constexpr std::int64_t kBackwardGrain = 8;

}  // namespace

void norm(Transformer& net, std::int64_t rows, std::int64_t dim, const float* x, const Weight& w, float* y,
          float* inv) {
  const auto timer = net.profile.time(Kernel::norms);
  net.device.pool.parallel_for(rows, kGrain, [&](std::int64_t begin, std::int64_t end) {
    net.kernels.rms_norm(end - begin, dim, x + begin * dim, w.gain(), net.config.norm_eps, y + begin * dim,
                         inv + begin);
  });
}

void norm_add(Transformer& net, std::int64_t rows, std::int64_t dim, const float* x, const Weight& w,
              const float* residual, float* y, float* inv) {
  const auto timer = net.profile.time(Kernel::norms);
  net.device.pool.parallel_for(rows, kGrain, [&](std::int64_t begin, std::int64_t end) {
    net.kernels.rms_norm_add(end - begin, dim, x + begin * dim, w.gain(), net.config.norm_eps, residual + begin * dim,
                             y + begin * dim, inv + begin);
  });
}

void head_norm(Transformer& net, std::int64_t rows, std::int64_t dim, const float* x, const Weight* w, float* y,
               float* inv) {
  if (w)
    norm(net, rows, dim, x, *w, y, inv);
  else
    std::memcpy(y, x, static_cast<size_t>(rows * dim) * sizeof(float));
}

void recompute_norm(Transformer& net, std::int64_t rows, std::int64_t dim, const float* x, const Weight& w,
                    const float* inv, float* y) {
  const auto timer = net.profile.time(Kernel::norms);
  net.device.pool.parallel_for(rows, kBackwardGrain, [&](std::int64_t begin, std::int64_t end) {
    net.kernels.recompute_rms_norm(end - begin, dim, x + begin * dim, w.gain(), inv + begin, y + begin * dim);
  });
}

void recompute_head_norm(Transformer& net, std::int64_t rows, std::int64_t dim, const float* x, const Weight* w,
                         const float* inv, float* y) {
  if (w)
    recompute_norm(net, rows, dim, x, *w, inv, y);
  else
    std::memcpy(y, x, static_cast<size_t>(rows * dim) * sizeof(float));
}

void norm_backward(Transformer& net, std::int64_t rows, std::int64_t dim, const float* x, Weight& w, const float* inv,
                   const float* dy, float keep, float* dx) {
  const auto timer = net.profile.time(Kernel::norms);
  if (w.gradient)
    net.device.pool.parallel_for(dim, 16, [&](std::int64_t begin, std::int64_t end) {
      net.kernels.rms_norm_weight(rows, dim, x, inv, dy, begin, end, w.gradient);
    });
  net.device.pool.parallel_for(rows, kBackwardGrain, [&](std::int64_t begin, std::int64_t end) {
    net.kernels.rms_norm_backward(end - begin, dim, x + begin * dim, w.gain(), inv + begin, dy + begin * dim, keep,
                                  dx + begin * dim);
  });
}

void head_norm_backward(Transformer& net, std::int64_t rows, std::int64_t dim, const float* x, Weight* w,
                        const float* inv, float* d) {
  if (w) norm_backward(net, rows, dim, x, *w, inv, d, 0.0f, d);
}

}  // namespace mw::engine
