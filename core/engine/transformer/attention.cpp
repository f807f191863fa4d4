// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transformer/attention.h"

#include <cmath>
#include <cstring>

#include "core/engine/transformer/paged_attention.h"
#include "core/engine/transformer/projections.h"

namespace mw::engine {
namespace {

struct QueryBlock {  // queries of a run, and the keys that at least one of them sees
  TokenSpan queries, keys;
};

QueryBlock query_block(const TokenRun& run, int query, int window) {
  const int end = std::min(run.end, query + kQueries);
  return {{query, end}, {std::max(run.begin, query - window + 1), end}};
}

// The keys that a query sees, as indices in the keys of its block.
TokenSpan visible_keys(const TokenRun& run, int query, const TokenSpan& keys, int window) {
  return {std::max(run.begin, query - window + 1) - keys.begin, query + 1 - keys.begin};
}

double flops_of(const QueryBlock& block, std::int64_t dim) {
  return 4.0 * block.queries.size() * block.keys.size() * static_cast<double>(dim);
}

struct HeadColumns {  // of token 0
  const float *q, *k, *v;
};

HeadColumns columns_of(const AttentionShape& shape, const AttentionValues& values, int head) {
  const std::int64_t kv = shape.kv_of(head) * shape.dim;
  return {values.q + head * shape.dim, values.k + kv, values.v + kv};
}

// The keys and values of a run and KV head as panels, which a thread keeps from block to block. A product with *_rows
// sums over the columns of a head, the others sum over keys.
struct KeptKeys {
  int run = -1, kv = -1;  // the run's first token; -1: nothing is kept
  KeptPanels k_rows{}, k{}, v_rows{}, v{};
};

// Only blocks that see the run's first token use kept panels, whose pairs of keys begin there.
KeptKeys kept_for(const QueryBlock& block, const KeptKeys& kept) {
  return block.keys.begin == kept.run ? kept : KeptKeys{};
}

std::int64_t keys_to_keep(const TokenRun& run, int window) {
  return std::min(std::int64_t{run.end} - run.begin, std::int64_t{window} + kQueries - 1);
}

void compute_scores(Transformer& net, const AttentionShape& shape, const HeadColumns& head, const QueryBlock& block,
                    const KeptPanels& keys, const ScoreBlocks& w) {
  const std::int64_t queries = block.queries.size(), n = block.keys.size();
  net.gemm.block(w.thread, {queries, n, shape.dim}, {head.q + block.queries.begin * shape.q_stride, shape.q_stride},
                 {{head.k + block.keys.begin * shape.kv_stride, shape.kv_stride, Transpose::yes}, keys}, {w.s, n},
                 {.alpha = shape.scale});
  if (shape.cap > 0) net.kernels.softcap(queries * n, shape.cap, w.s);
}

constexpr std::int64_t kTokensPerTask = 32, kTokensAtOnce = 8;

RopeTable table_of(const Transformer& net, int layer) {
  const std::int64_t dim = net.config.layers[static_cast<size_t>(layer)].head_dim;
  const auto index = static_cast<size_t>(net.weights.layer_shapes[static_cast<size_t>(layer)].rope);
  const float* cos = net.buffers.rope_tables[index].data();
  return {cos, cos + net.buffers.rope_positions * (dim / 2)};
}

}  // namespace

std::vector<size_t> partition_by_cost(const std::vector<AttentionTask>& tasks, int threads) {
  double total = 0;
  for (const AttentionTask& t : tasks) total += t.cost;
  std::vector<size_t> cuts{0};
  double sum = 0;
  for (size_t i = 0; i < tasks.size(); ++i) {
    while (static_cast<int>(cuts.size()) < threads &&
           sum + tasks[i].cost / 2 > total * static_cast<double>(cuts.size()) / threads)
      cuts.push_back(i);
    sum += tasks[i].cost;
  }
  cuts.resize(static_cast<size_t>(threads) + 1, tasks.size());
  return cuts;
}

AttentionShape attention_shape(const Transformer& net, int layer) {
  const model::Layer& l = net.config.layers[static_cast<size_t>(layer)];
  const mesh::LocalLayer* part = net.hooks ? &net.hooks->local().layers[static_cast<size_t>(layer)] : nullptr;
  return {.q_stride = std::int64_t{l.heads} * l.head_dim,
          .kv_stride = std::int64_t{l.kv_heads} * l.head_dim,
          .dim = l.head_dim,
          .window = l.attention == model::Attention::sliding && net.config.sliding_window > 0
                        ? net.config.sliding_window
                        : 1 << 30,
          .heads = l.heads,
          .kv_heads = l.kv_heads,
          .group = part ? part->group : l.heads / l.kv_heads,
          .skipped = part ? static_cast<int>(part->heads.begin - part->kv_heads.begin * part->group) : 0,
          .scale = net.config.attention_scale,
          .cap = net.config.attention_softcap};
}

void reserve_score_blocks(Transformer& net, std::int64_t keys) {
  net.gemm.prepare_blocks();
  net.buffers.prepare_scores(keys);
}

ScoreBlocks score_blocks_of(const Transformer& net, std::int64_t thread) {
  const std::int64_t block = kQueries * net.buffers.attention_block_keys;
  float* base = net.buffers.attention_workspace.data() + score_blocks(net.weights) * block * thread;
  return {thread, base, base + block, base + 2 * block};
}

void attend_within(Transformer& net, const AttentionShape& shape, std::span<const TokenRun> runs,
                   const AttentionValues& values) {
  std::vector<AttentionTask> tasks;
  double flops = 0;
  for (const TokenRun& run : runs)
    for (int head = 0; head < shape.heads; ++head)
      for (int query = run.begin; query < run.end; query += kQueries) {
        tasks.push_back({run, head, query, flops_of(query_block(run, query, shape.window), shape.dim)});
        flops += tasks.back().cost;
      }
  const auto timer = net.profile.time(Kernel::attention, flops);
  std::vector<KeptKeys> kept_by_thread(static_cast<size_t>(net.device.pool.threads()));
  run_tasks(net, tasks, [&](const AttentionTask& task, const ScoreBlocks& w) {
    const QueryBlock block = query_block(task.run, task.query, shape.window);
    const std::int64_t n = block.keys.size();
    const HeadColumns head = columns_of(shape, values, task.head);
    KeptKeys& own = kept_by_thread[static_cast<size_t>(w.thread)];
    if (own.run != task.run.begin || own.kv != shape.kv_of(task.head)) {
      const std::int64_t first = task.run.begin * shape.kv_stride, keys = keys_to_keep(task.run, shape.window);
      own = {.run = task.run.begin, .kv = shape.kv_of(task.head)};
      own.k_rows = net.gemm.keep(w.thread, {head.k + first, shape.kv_stride, Transpose::yes}, shape.dim, keys, 0);
      own.v = net.gemm.keep(w.thread, {head.v + first, shape.kv_stride}, keys, shape.dim, own.k_rows.end);
    }
    const KeptKeys kept = kept_for(block, own);
    compute_scores(net, shape, head, block, kept.k_rows, w);
    for (int query = block.queries.begin; query < block.queries.end; ++query) {
      const TokenSpan seen = visible_keys(task.run, query, block.keys, shape.window);
      values.lse[std::int64_t{query} * shape.heads + task.head] =
          net.kernels.softmax(n, seen.begin, seen.end, w.s + (query - task.query) * n);
    }
    net.gemm.block(w.thread, {block.queries.size(), shape.dim, n}, {w.s, n},
                   {{head.v + block.keys.begin * shape.kv_stride, shape.kv_stride}, kept.v},
                   {values.o + task.query * shape.q_stride + task.head * shape.dim, shape.q_stride});
  });
}

namespace {

void attend_runs(Transformer& net, const PassContext& pass, int layer, const AttentionValues& values) {
  reserve_score_blocks(net, pass.tokens->longest_run);
  attend_within(net, attention_shape(net, layer), pass.tokens->runs, values);
}

struct AttentionGradients {
  float* q;            // in: the gradient of o, out: that of q
  float *k, *v;        // written or added to
  StoreMode store_kv;  // Store::accumulate if other layers share the keys and values
};

// One task for each run and KV head, with all query heads of it: dk and dv have one writer and a fixed order.
void attend_runs_backward(Transformer& net, const PassContext& pass, int layer, const AttentionValues& values,
                          const AttentionGradients& gradients) {
  const AttentionShape s = attention_shape(net, layer);
  std::vector<AttentionTask> tasks;
  double flops = 0;
  for (const TokenRun& run : pass.tokens->runs)
    for (int kv = 0; kv < s.kv_heads; ++kv) {
      const int group = std::max(0, s.queries_of(kv).size());
      double cost = 0;
      for (int query = run.begin; query < run.end; query += kQueries)
        cost += 2.5 * group * flops_of(query_block(run, query, s.window), s.dim);
      tasks.push_back({run, kv, 0, cost});
      flops += cost;
    }
  const auto timer = net.profile.time(Kernel::attention_back, flops);
  run_tasks(net, tasks, [&](const AttentionTask& task, const ScoreBlocks& w) {
    float* const dk_head = gradients.k + task.head * s.dim;
    float* const dv_head = gradients.v + task.head * s.dim;
    for (int i = task.run.begin; i < task.run.end && gradients.store_kv == StoreMode::write; ++i)
      for (float* d : {dk_head, dv_head}) std::fill_n(d + i * s.kv_stride, s.dim, 0.0f);
    const std::int64_t first = task.run.begin * s.kv_stride + task.head * s.dim,
                       keys = keys_to_keep(task.run, s.window);
    KeptKeys own{.run = task.run.begin, .kv = task.head};
    own.k_rows = net.gemm.keep(w.thread, {values.k + first, s.kv_stride, Transpose::yes}, s.dim, keys, 0);
    own.k = net.gemm.keep(w.thread, {values.k + first, s.kv_stride}, keys, s.dim, own.k_rows.end);
    own.v_rows = net.gemm.keep(w.thread, {values.v + first, s.kv_stride, Transpose::yes}, s.dim, keys, own.k.end);
    for (int head = s.queries_of(task.head).begin; head < s.queries_of(task.head).end; ++head) {
      const HeadColumns columns = columns_of(s, values, head);
      for (int query = task.run.begin; query < task.run.end; query += kQueries) {
        const QueryBlock block = query_block(task.run, query, s.window);
        const std::int64_t queries = block.queries.size(), n = block.keys.size();
        const std::int64_t at = query * s.q_stride + head * s.dim, at_keys = block.keys.begin * s.kv_stride;
        const MatrixOperand d_o{gradients.q + at, s.q_stride};
        const KeptKeys kept = kept_for(block, own);
        compute_scores(net, s, columns, block, kept.k_rows, w);
        if (s.cap > 0) std::copy_n(w.s, queries * n, w.capped);
        for (int i = 0; i < queries; ++i) {
          const TokenSpan seen = visible_keys(task.run, query + i, block.keys, s.window);
          net.kernels.recompute_softmax(n, seen.begin, seen.end, values.lse[std::int64_t{query + i} * s.heads + head],
                                        w.s + i * n);
        }
        net.gemm.block(w.thread, {n, s.dim, queries}, {w.s, n, Transpose::yes}, {d_o}, {dv_head + at_keys, s.kv_stride},
                       {.beta = 1});
        net.gemm.block(w.thread, {queries, n, s.dim}, d_o,
                       {{columns.v + at_keys, s.kv_stride, Transpose::yes}, kept.v_rows}, {w.dp, n});
        for (int i = 0; i < queries; ++i) {
          const std::int64_t row = at + i * s.q_stride;
          const auto delta = static_cast<float>(net.kernels.dot(s.dim, gradients.q + row, values.o + row));
          net.kernels.softmax_backward(n, w.s + i * n, w.dp + i * n, delta);
        }
        if (s.cap > 0) net.kernels.softcap_backward(queries * n, s.cap, w.capped, w.s);
        net.gemm.block(w.thread, {n, s.dim, queries}, {w.s, n, Transpose::yes},
                       {{columns.q + query * s.q_stride, s.q_stride}}, {dk_head + at_keys, s.kv_stride},
                       {.alpha = s.scale, .beta = 1});
        net.gemm.block(w.thread, {queries, s.dim, n}, {w.s, n}, {{columns.k + at_keys, s.kv_stride}, kept.k},
                       {gradients.q + at, s.q_stride}, {.alpha = s.scale});
      }
    }
  });
}

struct HeadNorms {
  RmsNorm q, k, v;
};

HeadNorms head_norms(Transformer& net, const PassContext& pass, int layer) {
  const model::Layer& l = net.config.layers[static_cast<size_t>(layer)];
  const LayerWeights& weights = net.weights.layers[static_cast<size_t>(layer)];
  const LayerActivations& acts = net.activations(layer);
  const std::int64_t n = pass.tokens->count, dim = l.head_dim;
  return {.q = {n * l.heads, dim, acts.q, weights.q_norm, acts.inv_q},
          .k = {n * l.kv_heads, dim, acts.k, weights.k_norm, acts.inv_k},
          .v = {n * l.kv_heads, dim, acts.v, weights.v_norm, acts.inv_v}};
}

// The keys and values that attention reads, from the raw projections. Without v_proj the values are the raw keys,
// before their norm and rotation.
void keys_and_values(Transformer& net, const PassContext& pass, int layer, NormStatistics statistics) {
  const LayerActivations& acts = net.activations(layer);
  const HeadNorms norms = head_norms(net, pass, layer);
  rotate_normed(net, *pass.tokens, layer, norms.k, statistics, acts.kh);
  if (acts.vh != acts.v) head_norm(net, norms.v, statistics, acts.vh);
}

// In place: the gradients of the keys and values that attention reads become those of the raw projections. Without
// v_proj the gradient of the values is added to that of the keys.
void keys_and_values_backward(Transformer& net, const PassContext& pass, int layer) {
  const model::Layer& l = net.config.layers[static_cast<size_t>(layer)];
  const LayerActivations& acts = net.activations(layer);
  const HeadNorms norms = head_norms(net, pass, layer);
  rotate(net, *pass.tokens, layer, l.kv_heads, -1.0f, acts.dkh);
  head_norm_backward(net, norms.k, acts.dkh);
  head_norm_backward(net, norms.v, acts.dvh);
  if (!l.has_v)
    net.device.pool.parallel_for(norms.v.rows * norms.v.dim, 4096, [&](std::int64_t begin, std::int64_t end) {
      net.kernels.add(end - begin, acts.dvh + begin, 1.0f, acts.dkh + begin);
    });
}

RmsNorm post_attention_norm(Transformer& net, const PassContext& pass, int layer) {
  const LayerActivations& acts = net.activations(layer);
  return {pass.tokens->count, net.config.dim, acts.a,
          net.weights.layers[static_cast<size_t>(layer)].post_attention_norm, acts.inv_post_attention};
}

}  // namespace

void attention_block(Transformer& net, const PassContext& pass, int layer, float* h) {
  const model::Layer& l = net.config.layers[static_cast<size_t>(layer)];
  const LayerActivations& acts = net.activations(layer);
  Scratch& scratch = net.buffers.step.scratch;
  static constexpr Projection kIn[] = {Projection::q, Projection::k, Projection::v}, kOut[] = {Projection::o};
  project(net, pass, layer,
          std::span(kIn).first(l.has_v   ? 3
                               : l.has_k ? 2
                                         : 1),
          {acts.x, net.weights.layers[static_cast<size_t>(layer)].input_norm, acts.inv_input});
  rotate_normed(net, *pass.tokens, layer, head_norms(net, pass, layer).q, NormStatistics::compute, scratch.qh);
  if (l.has_k) keys_and_values(net, pass, layer, NormStatistics::compute);
  const AttentionValues values{scratch.qh, acts.kh, acts.vh, acts.o, acts.lse};
  pass.paged ? attend_paged(net, pass, layer, values) : attend_runs(net, pass, layer, values);
  project(net, pass, layer, kOut, {acts.o});
  sum_block(net, mesh::Block::attention, layer, std::int64_t{pass.tokens->count} * net.config.dim, acts.a);
  norm_add(net, post_attention_norm(net, pass, layer), acts.x, h);
}

void attention_block_of_outputs(Transformer& net, const PassContext& pass, const PassContext& some, int layer,
                                float* h) {
  const model::Layer& l = net.config.layers[static_cast<size_t>(layer)];
  const LayerActivations& acts = net.activations(layer);
  const std::int64_t dim = net.config.dim;
  const ProjectionInput in{acts.x, net.weights.layers[static_cast<size_t>(layer)].input_norm, acts.inv_input};
  static constexpr Projection kQuery[] = {Projection::q}, kKeys[] = {Projection::k, Projection::v},
                              kOut[] = {Projection::o};
  if (l.has_k) {
    project(net, pass, layer, std::span(kKeys).first(l.has_v ? 2 : 1), in);
    keys_and_values(net, pass, layer, NormStatistics::compute);
  }
  for (size_t i = 0; i < pass.outputs->size(); ++i)
    std::memmove(acts.x + static_cast<std::int64_t>(i) * dim, acts.x + (*pass.outputs)[i] * dim,
                 static_cast<size_t>(dim) * sizeof(float));
  if (some.tokens->count > 0) {
    project(net, some, layer, kQuery, in);
    rotate_normed(net, *some.tokens, layer, head_norms(net, some, layer).q, NormStatistics::compute,
                  net.buffers.step.scratch.qh);
  }
  attend_outputs(net, pass, layer, {net.buffers.step.scratch.qh, acts.kh, acts.vh, acts.o, acts.lse});
  if (some.tokens->count == 0) return;
  project(net, some, layer, kOut, {acts.o});
  norm_add(net, post_attention_norm(net, some, layer), acts.x, h);
}

void attention_block_backward(Transformer& net, const PassContext& pass, int layer, InputGradient input_gradient) {
  const model::Layer& l = net.config.layers[static_cast<size_t>(layer)];
  const LayerWeights& weights = net.weights.layers[static_cast<size_t>(layer)];
  const LayerActivations& acts = net.activations(layer);
  const std::int64_t n = pass.tokens->count, dim = net.config.dim;
  const RmsNorm q_norm = head_norms(net, pass, layer).q;
  Scratch& scratch = net.buffers.step.scratch;
  norm_backward(net, post_attention_norm(net, pass, layer), scratch.dx, scratch.t, StoreMode::write);  // t = d a
  projection_backward_input(net, pass, {layer, Projection::o}, scratch.t, scratch.dq, StoreMode::write);
  projection_backward_weights(net, pass, {layer, Projection::o}, {acts.o}, scratch.t);
  rotate_normed(net, *pass.tokens, layer, q_norm, NormStatistics::reuse, scratch.qh);
  // Keys and values that later layers share are kept; the gradients of all these layers are added up.
  if (l.has_k && !net.weights.layer_shapes[static_cast<size_t>(layer)].shares_kv)
    keys_and_values(net, pass, layer, NormStatistics::reuse);
  attend_runs_backward(net, pass, layer, {scratch.qh, acts.kh, acts.vh, acts.o, acts.lse},
                       {.q = scratch.dq,
                        .k = acts.dkh,
                        .v = acts.dvh,
                        .store_kv = acts.dkh == scratch.dk ? StoreMode::write : StoreMode::accumulate});
  rotate(net, *pass.tokens, layer, l.heads, -1.0f, scratch.dq);
  head_norm_backward(net, q_norm, scratch.dq);
  if (l.has_k) keys_and_values_backward(net, pass, layer);
  const ProjectionInput in = recompute_input(net, pass, {acts.x, weights.input_norm, acts.inv_input});
  const bool needs_dx = input_gradient == InputGradient::needed;
  const auto project_back = [&](Projection p, const float* dy, StoreMode how) {
    if (needs_dx) projection_backward_input(net, pass, {layer, p}, dy, scratch.t, how);
    projection_backward_weights(net, pass, {layer, p}, in, dy);
  };
  project_back(Projection::q, scratch.dq, StoreMode::write);
  if (l.has_k) project_back(Projection::k, acts.dkh, StoreMode::accumulate);
  if (l.has_v) project_back(Projection::v, acts.dvh, StoreMode::accumulate);
  if (!needs_dx) return;
  sum_block(net, mesh::Block::attention, layer, n * dim, scratch.t);
  norm_backward(net, {n, dim, acts.x, weights.input_norm, acts.inv_input}, scratch.t, scratch.dx,
                StoreMode::accumulate);
}

void recompute_attention_residual(Transformer& net, const PassContext& pass, int layer, float* h) {
  recompute_norm_add(net, post_attention_norm(net, pass, layer), net.activations(layer).x, h);
}

void fill_rope_table(const RopeSpec& spec, std::int64_t positions, float* table) {
  const std::int64_t half = spec.head_dim / 2;
  for (std::int64_t i = 0; i < half; ++i) {
    // f32 frequencies and angles, as the reference computes them.
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(spec.head_dim);
    const float frequency = i < spec.pairs ? 1.0f / std::pow(spec.theta, exponent) / spec.divisor : 0.0f;
    for (std::int64_t p = 0; p < positions; ++p) {
      const float angle = static_cast<float>(p) * frequency;
      table[p * half + i] = std::cos(angle);
      table[(positions + p) * half + i] = std::sin(angle);
    }
  }
}

void rotate(Transformer& net, const Tokens& tokens, int layer, int heads, float sign, float* x) {
  const auto timer = net.profile.time(Kernel::rope);
  const std::int64_t dim = net.config.layers[static_cast<size_t>(layer)].head_dim;
  const RopeTable table = table_of(net, layer);
  net.device.pool.parallel_for(tokens.count, kTokensPerTask, [&](std::int64_t begin, std::int64_t end) {
    net.kernels.rope({end - begin, heads, dim, tokens.positions.data() + begin}, table, sign, x + begin * heads * dim);
  });
}

void rotate_normed(Transformer& net, const Tokens& tokens, int layer, const RmsNorm& n, NormStatistics statistics,
                   float* y) {
  const auto timer = net.profile.time(Kernel::rope);
  const RopeTable table = table_of(net, layer);
  const std::int64_t heads = tokens.count > 0 ? n.rows / tokens.count : 0;
  const auto normalise = [&](std::int64_t first, std::int64_t rows) {
    const float* const x = n.x + first * n.dim;
    float* const out = y + first * n.dim;
    if (!n.weight)
      std::copy_n(x, rows * n.dim, out);
    else if (statistics == NormStatistics::compute)
      net.kernels.rms_norm({rows, n.dim, x, n.weight->gain()}, net.config.norm_eps, out, n.inv + first);
    else
      net.kernels.recompute_rms_norm({rows, n.dim, x, n.weight->gain()}, n.inv + first, out);
  };
  net.device.pool.parallel_for(tokens.count, kTokensPerTask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; t += kTokensAtOnce) {
      const std::int64_t some = std::min(kTokensAtOnce, end - t);
      normalise(t * heads, some * heads);
      net.kernels.rope({some, heads, n.dim, tokens.positions.data() + t}, table, 1.0f, y + t * heads * n.dim);
    }
  });
}

}  // namespace mw::engine
