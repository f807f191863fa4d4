// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transformer/projections.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/engine/transformer/mlp.h"
#include "core/engine/transformer/norms.h"
#include "core/engine/transformer/paged_attention.h"

namespace mw::engine {
namespace {

double flops(std::int64_t n, std::int64_t in, std::int64_t out) {
  return 2.0 * static_cast<double>(n) * static_cast<double>(in) * static_cast<double>(out);
}

// The mask is a function of (seed, step, micro-batch, layer, module, element of the whole unpacked batch): it is the
// same when rematerialised and on every mesh.
void dropout(Transformer& net, const PassContext& pass, const Adapter& a, const float* x, float* out, StoreMode how) {
  const Tokens& tokens = *pass.tokens;
  const std::uint64_t key = Rng{pass.dropout_seed, pass.step, pass.micro_batch, static_cast<std::uint64_t>(a.layer),
                                static_cast<std::uint64_t>(a.projection)}
                                .at(0);
  net.device.pool.parallel_for(tokens.count, 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::uint64_t cell = pass.first_cell + static_cast<std::uint64_t>(tokens.origin[static_cast<size_t>(i)]);
      const std::uint64_t first =
          cell * static_cast<std::uint64_t>(a.whole_in) + static_cast<std::uint64_t>(a.first_in);
      net.kernels.dropout(a.in, {key, first, pass.dropout}, x + i * a.in, out + i * a.in, how);
    }
  });
}

const Weight& weight_of(const Transformer& net, LayerProjection which) {
  return *net.weights.layers[static_cast<size_t>(which.layer)].projection[static_cast<size_t>(which.projection)];
}

const Adapter* adapter_of(const Transformer& net, LayerProjection which) {
  return net.weights.layers[static_cast<size_t>(which.layer)].adapter[static_cast<size_t>(which.projection)];
}

struct Output {
  float *y, *z;  // x W^T + the adapter's part; A x
};

Output output_of(Transformer& net, LayerProjection which) {
  const LayerActivations& acts = net.activations(which.layer);
  float* const y[kProjections] = {acts.q, acts.k, acts.v, acts.a, acts.g, acts.u, acts.dense};
  return {y[static_cast<size_t>(which.projection)], acts.z[static_cast<size_t>(which.projection)]};
}

PackedProduct::Matrix factor(const float* at, Transpose transpose) {
  return stored_matrix({.f32 = at}, transpose);
}

Activations activations(const ProjectionInput& in, std::int64_t k) {
  return {in.x, k, in.inv, in.norm ? in.norm->gain() : NormGain{}};
}

bool is_fusable(Transformer& net, const PassContext& pass, const Weight& w, const Adapter* a) {
  return !w.at.f32 && !w.at.bf16 &&
         (!a || (pass.dropout == 0 && !a->m && a->rank <= net.gemm.packed().most_fused_rank()));
}

void apply_projection(Transformer& net, const PassContext& pass, LayerProjection which, const float* x) {
  const std::int64_t n = pass.tokens->count;
  const Weight& w = weight_of(net, which);
  const Output out = output_of(net, which);
  LowRank low;
  const Adapter* const a = adapter_of(net, which);
  if (a) {
    const auto timer = net.profile.time(Kernel::lora, flops(n, a->in, a->rank));
    const float* in = x;
    if (pass.dropout > 0) {
      dropout(net, pass, *a, x, net.buffers.step.scratch.drop, StoreMode::write);
      in = net.buffers.step.scratch.drop;
    }
    net.gemm.nt({n, a->rank, a->in}, in, {.f32 = a->a}, out.z);
    low = {out.z, a->b, a->rank, a->scaling};
  }
  {
    const auto timer = net.profile.time(Kernel::projections, flops(n, w.cols + low.rank, w.rows));
    net.gemm.nt({n, w.rows, w.cols}, x, w.at, out.y, {}, low);
  }
  if (!a || !a->m) return;
  const auto timer = net.profile.time(Kernel::lora, flops(n, 1, a->out));
  scale_outputs(net.device, *a, {n, out.y, out.y});
}

// Adds the low-rank products of the rows' own adapters to projections of x: adapters with few rows in two dispatches
// for all of them, others by matrix products.
void add_row_adapters(Transformer& net, const PassContext& pass, int layer, std::span<const Projection> projections,
                      const float* x) {
  struct Product {
    const Adapter* adapter;
    std::int64_t rows;
    const float* x;
    float *z, *y;
  };
  std::vector<Product> few;
  double work = 0;
  const PagedBatch& batch = *pass.paged;
  for (size_t i = 0; i < projections.size(); ++i)
    for (const AdapterSpan& r : batch.adapted) {
      const Adapter* const a = r.adapter->at(layer, projections[i]);
      if (!a) continue;
      const std::int64_t rows = r.end - r.begin;
      float* const z = batch.low_rank + (static_cast<std::int64_t>(i) * pass.tokens->count + r.begin) * batch.max_rank;
      float* const y = output_of(net, {layer, projections[i]}).y + r.begin * a->out;
      const Product p{a, rows, x + r.begin * a->in, z, y};
      if (rows <= kMaxSkinnyRows) {
        few.push_back(p);
        work += flops(rows, a->in + a->out, a->rank);
        continue;
      }
      const auto timer = net.profile.time(Kernel::lora, flops(rows, a->in + a->out, a->rank));
      net.gemm.nt({rows, a->rank, a->in}, p.x, {.f32 = a->a}, p.z);
      net.gemm.nt({rows, a->out, a->rank}, p.z, {.f32 = a->b}, p.y, {.alpha = a->scaling, .beta = 1});
      if (a->m) scale_outputs(net.device, *a, {rows, p.y, p.y});
    }
  if (few.empty()) return;
  const auto timer = net.profile.time(Kernel::lora, work);
  constexpr double kInlineFlops = 200e3;  // waking a worker twice costs about as much
  const std::int64_t threads = work < kInlineFlops ? 1 : net.device.pool.threads();
  const auto for_each_share = [&](auto fn) {  // fn(product, thread)
    net.device.pool.parallel_for(threads, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t t = first; t < last; ++t)
        for (const Product& p : few) fn(p, t);
    });
  };
  const auto columns_of = [&](std::int64_t total, std::int64_t unit, std::int64_t t) -> ColumnRange {
    const auto edge = [&](std::int64_t i) { return std::min(total, (total + unit - 1) / unit * i / threads * unit); };
    return {edge(t), edge(t + 1)};
  };
  for_each_share([&](const Product& p, std::int64_t t) {
    const Adapter& a = *p.adapter;
    net.kernels.dot_rows({p.rows, a.rank, a.in}, p.x, a.a, p.z, {}, columns_of(a.rank, 4, t));
  });
  for_each_share([&](const Product& p, std::int64_t t) {
    const Adapter& a = *p.adapter;
    const ColumnRange columns = columns_of(a.out, 32, t);
    net.kernels.dot_rows({p.rows, a.out, a.rank}, p.z, a.b, p.y, {.alpha = a.scaling, .beta = 1}, columns);
    if (a.m) scale_outputs(a, {p.rows, p.y, p.y}, columns);
  });
}

// scaling * dy B. Cached, because the gradients of a projection's input and weights need it one after the other.
float* adapter_dz(Transformer& net, std::int64_t n, const Adapter& a, const float* dy) {
  Scratch& scratch = net.buffers.step.scratch;
  if (scratch.dz_of != &a) net.gemm.nn({n, a.rank, a.out}, dy, {.f32 = a.b}, scratch.dz, {.alpha = a.scaling});
  scratch.dz_of = &a;
  return scratch.dz;
}

// The gradient of the output before its columns were scaled; dy itself without magnitudes.
const float* unscaled_gradient(Transformer& net, std::int64_t n, const Adapter* a, const float* dy) {
  if (!a || !a->m) return dy;
  scale_outputs(net.device, *a, {n, dy, net.buffers.step.scratch.dora});
  return net.buffers.step.scratch.dora;
}

const float* normed_input(Transformer& net, std::int64_t n, const ProjectionInput& in) {
  if (!in.norm) return in.x;
  norm(net, {n, in.norm->cols, in.x, in.norm, in.inv}, net.buffers.step.scratch.norm);
  return net.buffers.step.scratch.norm;
}

constexpr float kLeast = std::numeric_limits<float>::min();  // a row of zeros stays one

float norm_of(double squares) {
  return std::max(static_cast<float>(std::sqrt(squares)), kLeast);
}

// each(row, sum of the squares of W + scaling B A in it)
template <class Each>
void for_each_row(Device& device, const Weight& w, const Adapter& a, const Each& each) {
  const VectorKernels& kernels = vector_kernels();
  device.pool.parallel_for(a.out, 16, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> row(static_cast<size_t>(a.in));
    for (std::int64_t j = begin; j < end; ++j) {
      read_rows(w, j, row);
      for (int k = 0; k < a.rank; ++k) kernels.add(a.in, a.a + k * a.in, a.scaling * a.b[j * a.rank + k], row.data());
      each(j, kernels.dot(a.in, row.data(), row.data()));
    }
  });
}

}  // namespace

void project(Transformer& net, const PassContext& pass, int layer, std::span<const Projection> projections,
             const ProjectionInput& in, float* gated) {
  const std::int64_t n = pass.tokens->count;
  if (pass.paged && !pass.paged->adapted.empty()) {
    // One product of the base weights for all rows; the adapters of the rows read the normed input.
    const float* x = normed_input(net, n, in);
    project(net, {.tokens = pass.tokens}, layer, projections, {x});
    add_row_adapters(net, pass, layer, projections, x);
    if (gated) gate_activation(net, pass, layer, gated);
    return;
  }
  FusedProduct branches[kProjections];
  std::int64_t k = 0;
  double work = 0;
  bool together = true, adapted = false;
  for (size_t i = 0; i < projections.size(); ++i) {
    const LayerProjection which{layer, projections[i]};
    const Weight& w = weight_of(net, which);
    const Adapter* const a = adapter_of(net, which);
    const Output out = output_of(net, which);
    k = w.cols;
    together = together && is_fusable(net, pass, w, a);
    FusedProduct& b = branches[i];
    b.b = stored_matrix(w.at, Transpose::no);
    b.n = w.rows, b.c = out.y;
    adapted = adapted || a;
    if (a) b.low = {factor(a->a, Transpose::no), factor(a->b, Transpose::no), a->rank, out.z, 1.0f, a->scaling};
    work += flops(n, k, w.rows) + flops(n, k + w.rows, b.low.rank);
  }
  const PackedGemm::RowNorm row_norm{in.norm ? in.inv : nullptr, net.config.norm_eps};
  // In f32 a row's result does not depend on the rows beside it, and multiply_skinny() adds in an order of its own.
  const bool same_order = !adapted || net.weights.type != model::WeightType::f32;
  if (together && same_order && net.gemm.packed().fits_skinny(n, k)) {
    const auto timer = net.profile.time(Kernel::projections, work);
    return net.gemm.packed().multiply_skinny(n, k, activations(in, k), {branches, projections.size()}, row_norm, gated);
  }
  if (together && net.gemm.packed().can_fuse(n, k)) {
    const auto timer = net.profile.time(Kernel::projections, work);
    // Only a backward reads the gate and up projections again.
    const std::span<const FusedProduct> all(branches, projections.size());
    if (gated && !net.buffers.step.shape.backward && net.gemm.packed().can_gate_alone(k, all))
      branches[0].c = branches[1].c = nullptr;
    return net.gemm.packed().multiply_fused(n, k, activations(in, k), all, row_norm, gated);
  }
  const float* x = normed_input(net, n, in);
  for (const Projection p : projections) apply_projection(net, pass, {layer, p}, x);
  if (gated) gate_activation(net, pass, layer, gated);
}

void projection_backward_input(Transformer& net, const PassContext& pass, LayerProjection which, const float* dy,
                               float* dx, StoreMode how) {
  const std::int64_t n = pass.tokens->count;
  const Weight& w = weight_of(net, which);
  const Adapter* a = adapter_of(net, which);
  dy = unscaled_gradient(net, n, a, dy);
  if ((w.at.packed || w.at.packed_f32) && is_fusable(net, pass, w, a) && net.gemm.packed().can_fuse(n, w.rows)) {
    FusedProduct b{.b = stored_matrix(w.at, Transpose::yes), .n = w.cols, .c = dx, .store = how};
    if (a) {
      b.low = {factor(a->b, Transpose::yes),
               factor(a->a, Transpose::yes),
               a->rank,
               net.buffers.step.scratch.dz,
               a->scaling,
               1.0f};
      net.buffers.step.scratch.dz_of = a;
    }
    const auto timer =
        net.profile.time(Kernel::projections_back, flops(n, w.cols, w.rows) + flops(n, w.cols + w.rows, b.low.rank));
    return net.gemm.packed().multiply_fused(n, w.rows, {dy, w.rows}, {&b, 1}, {}, nullptr);
  }
  const float* dz = nullptr;
  if (a) {
    const auto timer = net.profile.time(Kernel::lora, flops(n, a->out, a->rank));
    dz = adapter_dz(net, n, *a, dy);
  }
  const LowRank low = a && pass.dropout == 0 ? LowRank{dz, a->a, a->rank, 1.0f} : LowRank{};
  {
    const auto timer = net.profile.time(Kernel::projections_back, flops(n, w.cols, w.rows + low.rank));
    net.gemm.nn({n, w.cols, w.rows}, dy, w.at, dx, {.beta = how == StoreMode::write ? 0.0f : 1.0f}, low);
  }
  if (!a || pass.dropout == 0) return;
  const auto timer = net.profile.time(Kernel::lora, flops(n, a->in, a->rank));
  net.gemm.nn({n, a->in, a->rank}, dz, {.f32 = a->a}, net.buffers.step.scratch.drop);
  dropout(net, pass, *a, net.buffers.step.scratch.drop, dx, StoreMode::accumulate);
}

ProjectionInput recompute_input(Transformer& net, const PassContext& pass, const ProjectionInput& in) {
  if (pass.dropout == 0 && !net.weights.full && !net.weights.has_magnitudes) return in;
  recompute_norm(net, {pass.tokens->count, net.config.dim, in.x, in.norm, in.inv}, net.buffers.step.scratch.norm);
  return {net.buffers.step.scratch.norm};
}

void projection_backward_weights(Transformer& net, const PassContext& pass, LayerProjection which,
                                 const ProjectionInput& in, const float* dy) {
  const std::int64_t n = pass.tokens->count;
  const Weight& w = weight_of(net, which);
  if (w.gradient) {
    const auto timer = net.profile.time(Kernel::weight_gradients, flops(n, w.cols, w.rows));
    net.gemm.tn({w.rows, w.cols, n}, dy, in.x, w.gradient, {.beta = 1});
  }
  const Adapter* a = adapter_of(net, which);
  if (!a || !a->da) return;
  const float* const z = output_of(net, which).z;
  if (a->m) {
    // The output is computed again: the backward of what follows has overwritten it.
    const auto timer = net.profile.time(Kernel::projections_back, flops(n, w.cols + a->rank, w.rows));
    float* const y = net.buffers.step.scratch.dora;
    net.gemm.nt({n, w.rows, w.cols}, in.x, w.at, y, {}, {z, a->b, a->rank, a->scaling});
    add_magnitude_gradient(net.device, *a, n, dy, y);
    dy = unscaled_gradient(net, n, a, dy);
  }
  const auto timer = net.profile.time(Kernel::lora, flops(n, a->in + a->out, a->rank));
  const float* const dz = adapter_dz(net, n, *a, dy);
  ProjectionInput from = in;
  if (pass.dropout > 0) {
    dropout(net, pass, *a, in.x, net.buffers.step.scratch.drop, StoreMode::write);
    from = {net.buffers.step.scratch.drop};
  }
  net.gemm.packed().add_lora_gradient({.m = n,
                                       .rank = a->rank,
                                       .columns = a->out,
                                       .scale = a->scaling,
                                       .l = z,
                                       .x = {dy, a->out},
                                       .transpose = Transpose::yes,
                                       .g = a->db});
  net.gemm.packed().add_lora_gradient(
      {.m = n, .rank = a->rank, .columns = a->in, .l = dz, .x = activations(from, a->in), .g = a->da});
}

void update_row_norms(Device& device, const Weight& w, const Adapter& a) {
  for_each_row(device, w, a, [&](std::int64_t row, double squares) { a.norm[row] = norm_of(squares); });
}

void write_row_squares(Device& device, const Weight& w, const Adapter& a) {
  for_each_row(device, w, a, [&](std::int64_t row, double squares) { a.norm[row] = static_cast<float>(squares); });
}

void take_square_roots(const Adapter& a) {
  for (std::int64_t row = 0; row < a.out; ++row) a.norm[row] = norm_of(a.norm[row]);
}

float initial_magnitude(std::span<const float> row) {
  return norm_of(vector_kernels().dot(static_cast<std::int64_t>(row.size()), row.data(), row.data()));
}

void scale_outputs(const Adapter& a, const OutputRows& rows, ColumnRange columns) {
  for (std::int64_t i = 0; i < rows.rows; ++i) {
    const float* const x = rows.x + i * a.out;
    float* const y = rows.y + i * a.out;
    for (std::int64_t j = columns.begin; j < columns.end; ++j) y[j] = x[j] * (a.m[j] / a.norm[j]);
  }
}

void scale_outputs(Device& device, const Adapter& a, const OutputRows& rows) {
  device.pool.parallel_for(rows.rows, 8, [&](std::int64_t begin, std::int64_t end) {
    scale_outputs(a, {end - begin, rows.x + begin * a.out, rows.y + begin * a.out}, {0, a.out});
  });
}

void add_magnitude_gradient(Device& device, const Adapter& a, std::int64_t rows, const float* dy, const float* y) {
  constexpr std::int64_t kStripe = 64;  // columns whose sums a thread keeps at once
  device.pool.parallel_for(a.out, kStripe, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin; first < end; first += kStripe) {
      const std::int64_t count = std::min(kStripe, end - first);
      double sums[kStripe] = {};
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < count; ++j) {
          const std::int64_t at = i * a.out + first + j;
          sums[j] += static_cast<double>(dy[at]) * static_cast<double>(y[at]);
        }
      for (std::int64_t j = 0; j < count; ++j)
        a.dm[first + j] += static_cast<float>(sums[j] / static_cast<double>(a.norm[first + j]));
    }
  });
}

}  // namespace mw::engine
