// SPDX-License-Identifier: Apache-2.0
// The seven projections with their LoRA branches, PEFT's arithmetic: y = x W^T + scaling * (dropout(x) A^T) B^T.
#include <algorithm>

#include "core/engine/transformer/paged_batch.h"

namespace mw::engine {
namespace {

double flops(std::int64_t n, std::int64_t in, std::int64_t out) {
  return 2.0 * static_cast<double>(n) * static_cast<double>(in) * static_cast<double>(out);
}

enum class Mask { write, accumulate };

// The mask depends on (seed, step, micro-batch, layer, module, element of the whole unpacked batch) only: the same
// again when rematerialised, and on every mesh.
void dropout(Core& core, const Pass& pass, const Adapter& a, Mask how, const float* x, float* out) {
  const Tokens& tokens = *pass.tokens;
  const std::uint64_t key = Rng{pass.dropout_seed, pass.step, pass.micro_batch, static_cast<std::uint64_t>(a.layer),
                                static_cast<std::uint64_t>(a.projection)}
                                .at(0);
  core.device.pool.parallel_for(tokens.count, 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::uint64_t cell = pass.first_cell + static_cast<std::uint64_t>(tokens.origin[static_cast<size_t>(i)]);
      const std::uint64_t first =
          cell * static_cast<std::uint64_t>(a.whole_in) + static_cast<std::uint64_t>(a.first_in);
      core.kernels.dropout(a.in, key, first, pass.dropout, how == Mask::accumulate, x + i * a.in, out + i * a.in);
    }
  });
}

struct Output {
  float *y, *z;
};

Output output_of(LayerState& s, Projection p) {
  float* const y[kProjections] = {s.q, s.k, s.v, s.a, s.g, s.u, s.dense};
  return {y[static_cast<size_t>(p)], s.z[static_cast<size_t>(p)]};
}

PackedProduct::Matrix factor(PackedProduct::Kind kind, const float* at) {
  return {kind, nullptr, at, {}};
}

// Of weights that fuse.
PackedProduct::Matrix stored(const WeightRef& w) {
  using Kind = PackedProduct::Kind;
  return {w.packed ? Kind::panels : w.slim ? Kind::slim : Kind::int8, w.packed, nullptr, w.int8, w.slim};
}

Activations activations(const Input& in, std::int64_t k) {
  return {in.x, k, in.inv, in.norm ? in.norm->gain() : NormGain{}};
}

}  // namespace

bool Core::fuses(const Pass& pass, const Weight& w, const Adapter* a) const {
  return (w.at.packed || w.at.slim || (w.at.int8.at && gemm.packs())) &&
         (!a || (pass.dropout == 0 && a->rank <= kMostFusedRank));
}

void Core::project(const Pass& pass, int layer, std::span<const Projection> which, const Input& in, LayerState& s,
                   float* gated) {
  const std::int64_t n = pass.tokens->count;
  const LayerParts& parts = layers[static_cast<size_t>(layer)];
  if (pass.served && !pass.served->adapted.empty()) {  // their input is needed as such; the base's product once for all
    const float* x = in.x;
    if (in.norm) norm(n, in.norm->cols, in.x, *in.norm, memory.scratch.norm, in.inv), x = memory.scratch.norm;
    project({.tokens = pass.tokens}, layer, which, {x}, s);
    add_served_adapters(pass, layer, which, x, s);
    if (gated) gate(n * parts.projection[static_cast<size_t>(which[0])]->rows, s, gated);
    return;
  }
  Branch branches[kProjections];
  std::int64_t k = 0;
  double work = 0;
  bool together = true;
  for (size_t i = 0; i < which.size(); ++i) {
    const auto p = static_cast<size_t>(which[i]);
    const Weight& w = *parts.projection[p];
    const Adapter* const a = parts.adapter[p];
    const Output out = output_of(s, which[i]);
    k = w.cols;
    together = together && fuses(pass, w, a);
    Branch& b = branches[i];
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
  const PackedGemm::RowNorm row_norm{in.norm ? in.inv : nullptr, config.norm_eps};
  if (together && gemm.packed().takes_few(n, k)) {
    const auto timer = profile.time(Kernel::projections, work);
    return gemm.packed().few(n, k, activations(in, k), {branches, which.size()}, row_norm, gated);
  }
  if (together && gemm.packed().fuses(n, k)) {
    const auto timer = profile.time(Kernel::projections, work);
    gemm.packed().fused(n, k, activations(in, k), {branches, which.size()}, row_norm);
  } else {
    const float* x = in.x;
    if (in.norm) norm(n, k, in.x, *in.norm, memory.scratch.norm, in.inv), x = memory.scratch.norm;
    for (const Projection p : which) {
      const Output out = output_of(s, p);
      linear(pass, layer, p, x, out.y, out.z);
    }
  }
  if (gated) gate(n * branches[0].n, s, gated);
}

// Of an adapter with few rows in two dispatches for all of them, of one with many by matrix products.
void Core::add_served_adapters(const Pass& pass, int layer, std::span<const Projection> which, const float* x,
                               LayerState& s) {
  struct Product {
    const Adapter* adapter;
    std::int64_t rows;
    const float* x;
    float *z, *y;
  };
  std::vector<Product> few;
  double work = 0;
  const ServedPass& served = *pass.served;
  for (size_t i = 0; i < which.size(); ++i)
    for (const AdapterRows& r : served.adapted) {
      const Adapter* const a = r.adapter->at(layer, which[i]);
      if (!a) continue;
      const std::int64_t rows = r.end - r.begin;
      float* const z =
          served.low_rank + (static_cast<std::int64_t>(i) * pass.tokens->count + r.begin) * served.most_rank;
      const Product p{a, rows, x + r.begin * a->in, z, output_of(s, which[i]).y + r.begin * a->out};
      if (rows <= kDecodedRows) {
        few.push_back(p);
        work += flops(rows, a->in + a->out, a->rank);
        continue;
      }
      const auto timer = profile.time(Kernel::lora, flops(rows, a->in + a->out, a->rank));
      gemm.nt(rows, a->rank, a->in, 1.0f, p.x, {.f32 = a->a}, 0.0f, p.z);
      gemm.nt(rows, a->out, a->rank, a->scaling, p.z, {.f32 = a->b}, 1.0f, p.y);
    }
  if (few.empty()) return;
  const auto timer = profile.time(Kernel::lora, work);
  constexpr double kInlineFlops = 200e3;  // waking a worker twice costs about as much
  const std::int64_t threads = work < kInlineFlops ? 1 : device.pool.threads();
  const auto shared = [&](auto fn) {  // of each product the columns [begin, end) of thread t's
    device.pool.parallel_for(threads, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t t = first; t < last; ++t)
        for (const Product& p : few) fn(p, t);
    });
  };
  const auto edge = [&](std::int64_t total, std::int64_t unit, std::int64_t t) {
    return std::min(total, (total + unit - 1) / unit * t / threads * unit);
  };
  shared([&](const Product& p, std::int64_t t) {
    const Adapter& a = *p.adapter;
    kernels.dot_rows(p.rows, a.rank, a.in, 1.0f, p.x, a.a, 0.0f, p.z, edge(a.rank, 4, t), edge(a.rank, 4, t + 1));
  });
  shared([&](const Product& p, std::int64_t t) {
    const Adapter& a = *p.adapter;
    kernels.dot_rows(p.rows, a.out, a.rank, a.scaling, p.z, a.b, 1.0f, p.y, edge(a.out, 32, t), edge(a.out, 32, t + 1));
  });
}

void Core::linear(const Pass& pass, int layer, Projection p, const float* x, float* y, float* z) {
  const std::int64_t n = pass.tokens->count;
  const Weight& w = *layers[static_cast<size_t>(layer)].projection[static_cast<size_t>(p)];
  LowRank low;
  if (const Adapter* a = layers[static_cast<size_t>(layer)].adapter[static_cast<size_t>(p)]) {
    const auto timer = profile.time(Kernel::lora, flops(n, a->in, a->rank));
    const float* in = x;
    if (pass.dropout > 0) {
      dropout(*this, pass, *a, Mask::write, x, memory.scratch.drop);
      in = memory.scratch.drop;
    }
    gemm.nt(n, a->rank, a->in, 1.0f, in, {.f32 = a->a}, 0.0f, z);
    low = {z, a->b, a->rank, a->scaling};
  }
  const auto timer = profile.time(Kernel::projections, flops(n, w.cols + low.rank, w.rows));
  gemm.nt(n, w.rows, w.cols, 1.0f, x, w.at, 0.0f, y, low);
}

// scaling * dy B. Input and weights of a projection are asked for one after the other; the second finds it done.
float* Core::adapter_dz(std::int64_t n, const Adapter& a, const float* dy) {
  Scratch& c = memory.scratch;
  if (c.dz_of != &a) gemm.nn(n, a.rank, a.out, a.scaling, dy, {.f32 = a.b}, 0.0f, c.dz);
  c.dz_of = &a;
  return c.dz;
}

void Core::linear_backward_input(const Pass& pass, int layer, Projection p, const float* dy, float keep, float* dx) {
  const std::int64_t n = pass.tokens->count;
  const Weight& w = *layers[static_cast<size_t>(layer)].projection[static_cast<size_t>(p)];
  const Adapter* a = layers[static_cast<size_t>(layer)].adapter[static_cast<size_t>(p)];
  if (w.at.packed && fuses(pass, w, a) && gemm.packed().fuses(n, w.rows)) {
    Branch b{.b = {PackedProduct::Kind::turned, w.at.packed, nullptr, {}}, .n = w.cols, .c = dx, .low = {}};
    b.store = keep == 0.0f ? Store::write : Store::accumulate;
    if (a) {
      b.low = {factor(PackedProduct::Kind::columns, a->b),
               factor(PackedProduct::Kind::columns, a->a),
               a->rank,
               memory.scratch.dz,
               a->scaling,
               1.0f};
      memory.scratch.dz_of = a;
    }
    const auto timer =
        profile.time(Kernel::projections_back, flops(n, w.cols, w.rows) + flops(n, w.cols + w.rows, b.low.rank));
    return gemm.packed().fused(n, w.rows, {dy, w.rows, nullptr, {}}, {&b, 1}, {});
  }
  const float* dz = nullptr;
  if (a) {
    const auto timer = profile.time(Kernel::lora, flops(n, a->out, a->rank));
    dz = adapter_dz(n, *a, dy);
  }
  const LowRank low = a && pass.dropout == 0 ? LowRank{dz, a->a, a->rank, 1.0f} : LowRank{};
  {
    const auto timer = profile.time(Kernel::projections_back, flops(n, w.cols, w.rows + low.rank));
    gemm.nn(n, w.cols, w.rows, 1.0f, dy, w.at, keep, dx, low);
  }
  if (!a || pass.dropout == 0) return;
  const auto timer = profile.time(Kernel::lora, flops(n, a->in, a->rank));
  gemm.nn(n, a->in, a->rank, 1.0f, dz, {.f32 = a->a}, 0.0f, memory.scratch.drop);
  dropout(*this, pass, *a, Mask::accumulate, memory.scratch.drop, dx);
}

Input Core::input_again(const Pass& pass, const Input& in) {
  if (gemm.packs() && pass.dropout == 0 && !full) return in;
  norm_again(pass.tokens->count, config.dim, in.x, *in.norm, in.inv, memory.scratch.norm);
  return {memory.scratch.norm};
}

void Core::linear_backward_weights(const Pass& pass, int layer, Projection p, const Input& in, const float* dy,
                                   const float* z) {
  const std::int64_t n = pass.tokens->count;
  const Weight& w = *layers[static_cast<size_t>(layer)].projection[static_cast<size_t>(p)];
  if (w.gradient) {
    const auto timer = profile.time(Kernel::weight_gradients, flops(n, w.cols, w.rows));
    gemm.tn(w.rows, w.cols, n, 1.0f, dy, in.x, 1.0f, w.gradient);
  }
  const Adapter* a = layers[static_cast<size_t>(layer)].adapter[static_cast<size_t>(p)];
  if (!a || !a->da) return;
  const auto timer = profile.time(Kernel::lora, flops(n, a->in + a->out, a->rank));
  const float* dz = adapter_dz(n, *a, dy);
  Input from = in;
  if (pass.dropout > 0) {
    dropout(*this, pass, *a, Mask::write, in.x, memory.scratch.drop);
    from = {memory.scratch.drop};
  }
  if (gemm.packs()) {
    gemm.packed().sums(n, a->rank, a->out, a->scaling, z, {dy, a->out, nullptr, {}}, Sum::transposed, a->db);
    gemm.packed().sums(n, a->rank, a->in, 1.0f, dz, activations(from, a->in), Sum::as_is, a->da);
    return;
  }
  gemm.tn(a->out, a->rank, n, a->scaling, dy, z, 1.0f, a->db);
  gemm.tn(a->rank, a->in, n, 1.0f, dz, from.x, 1.0f, a->da);
}

}  // namespace mw::engine
