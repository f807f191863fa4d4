// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transformer/projections.h"

#include <algorithm>

#include "core/engine/transformer/mlp.h"
#include "core/engine/transformer/norms.h"
#include "core/engine/transformer/paged_attention.h"

namespace mw::engine {
namespace {

double flops(std::int64_t n, std::int64_t in, std::int64_t out) {
  return 2.0 * static_cast<double>(n) * static_cast<double>(in) * static_cast<double>(out);
}

enum class Mask { write, accumulate };

// The mask is a function of (seed, step, micro-batch, layer, module, element of the whole unpacked batch): it is the
// same when rematerialised and on every mesh.
void dropout(Transformer& net, const PassContext& pass, const Adapter& a, Mask how, const float* x, float* out) {
  const Tokens& tokens = *pass.tokens;
  const std::uint64_t key = Rng{pass.dropout_seed, pass.step, pass.micro_batch, static_cast<std::uint64_t>(a.layer),
                                static_cast<std::uint64_t>(a.projection)}
                                .at(0);
  net.device.pool.parallel_for(tokens.count, 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::uint64_t cell = pass.first_cell + static_cast<std::uint64_t>(tokens.origin[static_cast<size_t>(i)]);
      const std::uint64_t first =
          cell * static_cast<std::uint64_t>(a.whole_in) + static_cast<std::uint64_t>(a.first_in);
      net.kernels.dropout(a.in, key, first, pass.dropout, how == Mask::accumulate, x + i * a.in, out + i * a.in);
    }
  });
}

struct Output {
  float *y, *z;
};

Output output_of(LayerActivations& acts, Projection p) {
  float* const y[kProjections] = {acts.q, acts.k, acts.v, acts.a, acts.g, acts.u, acts.dense};
  return {y[static_cast<size_t>(p)], acts.z[static_cast<size_t>(p)]};
}

PackedProduct::Matrix factor(PackedProduct::Kind kind, const float* at) {
  return {kind, nullptr, at, {}};
}

// For weights that can_fuse() accepts.
PackedProduct::Matrix stored(const WeightRef& w) {
  using Kind = PackedProduct::Kind;
  return {w.packed ? Kind::panels : w.bf16x12 ? Kind::bf16x12 : Kind::int8, w.packed, nullptr, w.int8, w.bf16x12};
}

Activations activations(const ProjectionInput& in, std::int64_t k) {
  return {in.x, k, in.inv, in.norm ? in.norm->gain() : NormGain{}};
}

bool can_fuse(Transformer& net, const PassContext& pass, const Weight& w, const Adapter* a) {
  return (w.at.packed || w.at.bf16x12 || (w.at.int8.at && net.gemm.packs())) &&
         (!a || (pass.dropout == 0 && a->rank <= kMostFusedRank));
}

void apply_projection(Transformer& net, const PassContext& pass, int layer, Projection p, const float* x, float* y,
                      float* z) {
  const std::int64_t n = pass.tokens->count;
  const Weight& w = *net.weights.layers[static_cast<size_t>(layer)].projection[static_cast<size_t>(p)];
  LowRank low;
  if (const Adapter* a = net.weights.layers[static_cast<size_t>(layer)].adapter[static_cast<size_t>(p)]) {
    const auto timer = net.profile.time(Kernel::lora, flops(n, a->in, a->rank));
    const float* in = x;
    if (pass.dropout > 0) {
      dropout(net, pass, *a, Mask::write, x, net.buffers.step.scratch.drop);
      in = net.buffers.step.scratch.drop;
    }
    net.gemm.nt(n, a->rank, a->in, 1.0f, in, {.f32 = a->a}, 0.0f, z);
    low = {z, a->b, a->rank, a->scaling};
  }
  const auto timer = net.profile.time(Kernel::projections, flops(n, w.cols + low.rank, w.rows));
  net.gemm.nt(n, w.rows, w.cols, 1.0f, x, w.at, 0.0f, y, low);
}

// Adds the low-rank products of the rows' own adapters to projections of x: adapters with few rows in two dispatches
// for all of them, others by matrix products.
void add_row_adapters(Transformer& net, const PassContext& pass, int layer, std::span<const Projection> which,
                      const float* x, LayerActivations& acts) {
  struct Product {
    const Adapter* adapter;
    std::int64_t rows;
    const float* x;
    float *z, *y;
  };
  std::vector<Product> few;
  double work = 0;
  const PagedBatch& served = *pass.paged;
  for (size_t i = 0; i < which.size(); ++i)
    for (const AdapterSpan& r : served.adapted) {
      const Adapter* const a = r.adapter->at(layer, which[i]);
      if (!a) continue;
      const std::int64_t rows = r.end - r.begin;
      float* const z =
          served.low_rank + (static_cast<std::int64_t>(i) * pass.tokens->count + r.begin) * served.max_rank;
      const Product p{a, rows, x + r.begin * a->in, z, output_of(acts, which[i]).y + r.begin * a->out};
      if (rows <= kMaxSkinnyRows) {
        few.push_back(p);
        work += flops(rows, a->in + a->out, a->rank);
        continue;
      }
      const auto timer = net.profile.time(Kernel::lora, flops(rows, a->in + a->out, a->rank));
      net.gemm.nt(rows, a->rank, a->in, 1.0f, p.x, {.f32 = a->a}, 0.0f, p.z);
      net.gemm.nt(rows, a->out, a->rank, a->scaling, p.z, {.f32 = a->b}, 1.0f, p.y);
    }
  if (few.empty()) return;
  const auto timer = net.profile.time(Kernel::lora, work);
  constexpr double kInlineFlops = 200e3;  // waking a worker twice costs about as much
  const std::int64_t threads = work < kInlineFlops ? 1 : net.device.pool.threads();
  const auto shared = [&](auto fn) {  // of each product the columns [begin, end) of thread t's
    net.device.pool.parallel_for(threads, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t t = first; t < last; ++t)
        for (const Product& p : few) fn(p, t);
    });
  };
  const auto edge = [&](std::int64_t total, std::int64_t unit, std::int64_t t) {
    return std::min(total, (total + unit - 1) / unit * t / threads * unit);
  };
  shared([&](const Product& p, std::int64_t t) {
    const Adapter& a = *p.adapter;
    net.kernels.dot_rows(p.rows, a.rank, a.in, 1.0f, p.x, a.a, 0.0f, p.z, edge(a.rank, 4, t), edge(a.rank, 4, t + 1));
  });
  shared([&](const Product& p, std::int64_t t) {
    const Adapter& a = *p.adapter;
    net.kernels.dot_rows(p.rows, a.out, a.rank, a.scaling, p.z, a.b, 1.0f, p.y, edge(a.out, 32, t),
                         edge(a.out, 32, t + 1));
  });
}

// scaling * dy B; cached, as the gradients of a projection's input and weights need it one after the other.
float* adapter_dz(Transformer& net, std::int64_t n, const Adapter& a, const float* dy) {
  Scratch& scratch = net.buffers.step.scratch;
  if (scratch.dz_of != &a) net.gemm.nn(n, a.rank, a.out, a.scaling, dy, {.f32 = a.b}, 0.0f, scratch.dz);
  scratch.dz_of = &a;
  return scratch.dz;
}

}  // namespace

void project(Transformer& net, const PassContext& pass, int layer, std::span<const Projection> which,
             const ProjectionInput& in, LayerActivations& acts, float* gated) {
  const std::int64_t n = pass.tokens->count;
  const LayerWeights& weights = net.weights.layers[static_cast<size_t>(layer)];
  if (pass.paged &&
      !pass.paged->adapted.empty()) {  // the adapters read the normed input; one product of the base for all rows
    const float* x = in.x;
    if (in.norm)
      norm(net, n, in.norm->cols, in.x, *in.norm, net.buffers.step.scratch.norm, in.inv),
          x = net.buffers.step.scratch.norm;
    project(net, {.tokens = pass.tokens}, layer, which, {x}, acts);
    add_row_adapters(net, pass, layer, which, x, acts);
    if (gated) gate_activation(net, n * weights.projection[static_cast<size_t>(which[0])]->rows, acts, gated);
    return;
  }
  FusedProduct branches[kProjections];
  std::int64_t k = 0;
  double work = 0;
  bool together = true;
  for (size_t i = 0; i < which.size(); ++i) {
    const auto p = static_cast<size_t>(which[i]);
    const Weight& w = *weights.projection[p];
    const Adapter* const a = weights.adapter[p];
    const Output out = output_of(acts, which[i]);
    k = w.cols;
    together = together && can_fuse(net, pass, w, a);
    FusedProduct& b = branches[i];
    b.b = stored(w.at);
    b.n = w.rows, b.c = out.y;
    if (a)
      b.low = {factor(PackedProduct::Kind::rows, a->a),
               factor(PackedProduct::Kind::rows, a->b),
               a->rank,
               out.z,
               1.0f,
               a->scaling};
    work += flops(n, k, w.rows) + flops(n, k + w.rows, b.low.rank);
  }
  const PackedGemm::RowNorm row_norm{in.norm ? in.inv : nullptr, net.config.norm_eps};
  if (together && net.gemm.packed().fits_skinny(n, k)) {
    const auto timer = net.profile.time(Kernel::projections, work);
    return net.gemm.packed().multiply_skinny(n, k, activations(in, k), {branches, which.size()}, row_norm, gated);
  }
  if (together && net.gemm.packed().fuses(n, k)) {
    const auto timer = net.profile.time(Kernel::projections, work);
    net.gemm.packed().fused(n, k, activations(in, k), {branches, which.size()}, row_norm);
  } else {
    const float* x = in.x;
    if (in.norm)
      norm(net, n, k, in.x, *in.norm, net.buffers.step.scratch.norm, in.inv), x = net.buffers.step.scratch.norm;
    for (const Projection p : which) {
      const Output out = output_of(acts, p);
      apply_projection(net, pass, layer, p, x, out.y, out.z);
    }
  }
  if (gated) gate_activation(net, n * branches[0].n, acts, gated);
}

void projection_backward_input(Transformer& net, const PassContext& pass, int layer, Projection p, const float* dy,
                               float keep, float* dx) {
  const std::int64_t n = pass.tokens->count;
  const Weight& w = *net.weights.layers[static_cast<size_t>(layer)].projection[static_cast<size_t>(p)];
  const Adapter* a = net.weights.layers[static_cast<size_t>(layer)].adapter[static_cast<size_t>(p)];
  if (w.at.packed && can_fuse(net, pass, w, a) && net.gemm.packed().fuses(n, w.rows)) {
    FusedProduct b{
        .b = {PackedProduct::Kind::transposed_panels, w.at.packed, nullptr, {}}, .n = w.cols, .c = dx, .low = {}};
    b.store = keep == 0.0f ? Store::write : Store::accumulate;
    if (a) {
      b.low = {factor(PackedProduct::Kind::columns, a->b),
               factor(PackedProduct::Kind::columns, a->a),
               a->rank,
               net.buffers.step.scratch.dz,
               a->scaling,
               1.0f};
      net.buffers.step.scratch.dz_of = a;
    }
    const auto timer =
        net.profile.time(Kernel::projections_back, flops(n, w.cols, w.rows) + flops(n, w.cols + w.rows, b.low.rank));
    return net.gemm.packed().fused(n, w.rows, {dy, w.rows, nullptr, {}}, {&b, 1}, {});
  }
  const float* dz = nullptr;
  if (a) {
    const auto timer = net.profile.time(Kernel::lora, flops(n, a->out, a->rank));
    dz = adapter_dz(net, n, *a, dy);
  }
  const LowRank low = a && pass.dropout == 0 ? LowRank{dz, a->a, a->rank, 1.0f} : LowRank{};
  {
    const auto timer = net.profile.time(Kernel::projections_back, flops(n, w.cols, w.rows + low.rank));
    net.gemm.nn(n, w.cols, w.rows, 1.0f, dy, w.at, keep, dx, low);
  }
  if (!a || pass.dropout == 0) return;
  const auto timer = net.profile.time(Kernel::lora, flops(n, a->in, a->rank));
  net.gemm.nn(n, a->in, a->rank, 1.0f, dz, {.f32 = a->a}, 0.0f, net.buffers.step.scratch.drop);
  dropout(net, pass, *a, Mask::accumulate, net.buffers.step.scratch.drop, dx);
}

ProjectionInput recompute_input(Transformer& net, const PassContext& pass, const ProjectionInput& in) {
  if (net.gemm.packs() && pass.dropout == 0 && !net.weights.full) return in;
  recompute_norm(net, pass.tokens->count, net.config.dim, in.x, *in.norm, in.inv, net.buffers.step.scratch.norm);
  return {net.buffers.step.scratch.norm};
}

void projection_backward_weights(Transformer& net, const PassContext& pass, int layer, Projection p,
                                 const ProjectionInput& in, const float* dy, const float* z) {
  const std::int64_t n = pass.tokens->count;
  const Weight& w = *net.weights.layers[static_cast<size_t>(layer)].projection[static_cast<size_t>(p)];
  if (w.gradient) {
    const auto timer = net.profile.time(Kernel::weight_gradients, flops(n, w.cols, w.rows));
    net.gemm.tn(w.rows, w.cols, n, 1.0f, dy, in.x, 1.0f, w.gradient);
  }
  const Adapter* a = net.weights.layers[static_cast<size_t>(layer)].adapter[static_cast<size_t>(p)];
  if (!a || !a->da) return;
  const auto timer = net.profile.time(Kernel::lora, flops(n, a->in + a->out, a->rank));
  const float* dz = adapter_dz(net, n, *a, dy);
  ProjectionInput from = in;
  if (pass.dropout > 0) {
    dropout(net, pass, *a, Mask::write, in.x, net.buffers.step.scratch.drop);
    from = {net.buffers.step.scratch.drop};
  }
  if (net.gemm.packs()) {
    net.gemm.packed().add_lora_gradient(n, a->rank, a->out, a->scaling, z, {dy, a->out, nullptr, {}},
                                        GradientLayout::transposed, a->db);
    net.gemm.packed().add_lora_gradient(n, a->rank, a->in, 1.0f, dz, activations(from, a->in), GradientLayout::plain,
                                        a->da);
    return;
  }
  net.gemm.tn(a->out, a->rank, n, a->scaling, dy, z, 1.0f, a->db);
  net.gemm.tn(a->rank, a->in, n, 1.0f, dz, from.x, 1.0f, a->da);
}

}  // namespace mw::engine
