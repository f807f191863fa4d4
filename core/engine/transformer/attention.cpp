// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transformer/attention.h"

#include <cstring>

#include "core/engine/transformer/norms.h"
#include "core/engine/transformer/paged_attention.h"
#include "core/engine/transformer/projections.h"
#include "core/engine/transformer/rope.h"

namespace mw::engine {
namespace {

constexpr std::int64_t kRowsPerTask = 8;

enum class Accumulate { overwrite, add };

// Keys that queries [begin, end) of the run see.
TokenSpan keys_of(const TokenRun& run, int begin, int end, int window) {
  return {std::max(run.begin, begin - window + 1), end};
}

// Within a block's keys, those of query i.
TokenSpan visible(const TokenRun& run, int i, const TokenSpan& keys, int window) {
  return {std::max(run.begin, i - window + 1) - keys.begin, i + 1 - keys.begin};
}

double block_flops(const TokenSpan& keys, int queries, std::int64_t dim) {
  return 4.0 * queries * (keys.end - keys.begin) * static_cast<double>(dim);
}

struct HeadColumns {  // of token 0
  const float *q, *k, *v;
};

HeadColumns head_at(const AttentionShape& shape, const float* q, const float* k, const float* v, int head) {
  const std::int64_t kv = shape.kv_of(head) * shape.dim;
  return {q + head * shape.dim, k + kv, v + kv};
}

void scores(Transformer& net, const AttentionShape& shape, const HeadColumns& h, int query, int queries,
            const TokenSpan& keys, const ScoreBlocks& w) {
  const std::int64_t n = keys.end - keys.begin;
  net.gemm.block(w.thread, Operand::plain, Operand::transposed, queries, n, shape.dim, shape.scale,
                 h.q + query * shape.q_stride, shape.q_stride, h.k + keys.begin * shape.kv_stride, shape.kv_stride,
                 0.0f, w.s, n);
  if (shape.cap > 0) net.kernels.softcap(queries * n, shape.cap, w.s);
}

}  // namespace

std::vector<size_t> cut_by_cost(const std::vector<AttentionTask>& tasks, int threads) {
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

void reserve_scores(Transformer& net, std::int64_t keys) {
  net.gemm.prepare_blocks();
  net.buffers.prepare_scores(keys);
}

ScoreBlocks scores_of(const Transformer& net, std::int64_t thread) {
  const std::int64_t block = kQueries * net.buffers.attention_block_keys;
  float* base = net.buffers.attention_workspace.data() + score_blocks(net.weights) * block * thread;
  return {thread, base, base + block, base + 2 * block};
}

void attend_within(Transformer& net, const AttentionShape& shape, std::span<const TokenRun> runs,
                   const AttentionValues& values) {
  const float *const q = values.q, *const k = values.k, *const v = values.v;
  float* const o = values.o;
  float* const lse = values.lse;
  std::vector<AttentionTask> tasks;
  double flops = 0;
  for (const TokenRun& run : runs)
    for (int head = 0; head < shape.heads; ++head)
      for (int query = run.begin; query < run.end; query += kQueries) {
        const int end = std::min(run.end, query + kQueries);
        tasks.push_back(
            {run, head, query, block_flops(keys_of(run, query, end, shape.window), end - query, shape.dim)});
        flops += tasks.back().cost;
      }
  const auto timer = net.profile.time(Kernel::attention, flops);
  run_tasks(net, tasks, [&](const AttentionTask& task, const ScoreBlocks& w) {
    const int end = std::min(task.run.end, task.query + kQueries), queries = end - task.query;
    const TokenSpan keys = keys_of(task.run, task.query, end, shape.window);
    const std::int64_t n = keys.end - keys.begin;
    const HeadColumns h = head_at(shape, q, k, v, task.head);
    scores(net, shape, h, task.query, queries, keys, w);
    for (int i = 0; i < queries; ++i) {
      const TokenSpan seen = visible(task.run, task.query + i, keys, shape.window);
      lse[std::int64_t{task.query + i} * shape.heads + task.head] =
          net.kernels.softmax(n, seen.begin, seen.end, w.s + i * n);
    }
    net.gemm.block(w.thread, Operand::plain, Operand::plain, queries, shape.dim, n, 1.0f, w.s, n,
                   h.v + keys.begin * shape.kv_stride, shape.kv_stride, 0.0f,
                   o + task.query * shape.q_stride + task.head * shape.dim, shape.q_stride);
  });
}

namespace {

void attend_runs(Transformer& net, const PassContext& pass, int layer, const AttentionValues& values) {
  reserve_scores(net, pass.tokens->longest_run);
  attend_within(net, attention_shape(net, layer), pass.tokens->runs, values);
}

// Per (run, kv head), so that dk and dv have one writer: all its query heads, block by block.
void attend_runs_backward(Transformer& net, const PassContext& pass, int layer, const float* q, const float* k,
                          const float* v, const float* o, const float* lse, float* d_o, Accumulate how, float* dk,
                          float* dv) {
  const AttentionShape s = attention_shape(net, layer);
  std::vector<AttentionTask> tasks;
  double flops = 0;
  for (const TokenRun& run : pass.tokens->runs)
    for (int kv = 0; kv < s.kv_heads; ++kv) {
      const TokenSpan heads = s.queries_of(kv);
      const int group = std::max(0, heads.end - heads.begin);
      double cost = 0;
      for (int query = run.begin; query < run.end; query += kQueries) {
        const int end = std::min(run.end, query + kQueries);
        cost += 2.5 * group * block_flops(keys_of(run, query, end, s.window), end - query, s.dim);
      }
      tasks.push_back({run, kv, 0, cost});
      flops += cost;
    }
  const auto timer = net.profile.time(Kernel::attention_back, flops);
  run_tasks(net, tasks, [&](const AttentionTask& task, const ScoreBlocks& w) {
    float* const dk_head = dk + task.head * s.dim;
    float* const dv_head = dv + task.head * s.dim;
    for (int i = task.run.begin; i < task.run.end && how == Accumulate::overwrite; ++i)
      for (float* d : {dk_head, dv_head}) std::fill_n(d + i * s.kv_stride, s.dim, 0.0f);
    for (int head = s.queries_of(task.head).begin; head < s.queries_of(task.head).end; ++head) {
      const HeadColumns h = head_at(s, q, k, v, head);
      for (int query = task.run.begin; query < task.run.end; query += kQueries) {
        const int end = std::min(task.run.end, query + kQueries), queries = end - query;
        const TokenSpan keys = keys_of(task.run, query, end, s.window);
        const std::int64_t n = keys.end - keys.begin, at = query * s.q_stride + head * s.dim;
        scores(net, s, h, query, queries, keys, w);
        if (s.cap > 0) std::copy_n(w.s, queries * n, w.capped);
        for (int i = 0; i < queries; ++i) {
          const TokenSpan seen = visible(task.run, query + i, keys, s.window);
          net.kernels.recompute_softmax(n, seen.begin, seen.end, lse[std::int64_t{query + i} * s.heads + head],
                                        w.s + i * n);
        }
        net.gemm.block(w.thread, Operand::transposed, Operand::plain, n, s.dim, queries, 1.0f, w.s, n, d_o + at,
                       s.q_stride, 1.0f, dv_head + keys.begin * s.kv_stride, s.kv_stride);
        net.gemm.block(w.thread, Operand::plain, Operand::transposed, queries, n, s.dim, 1.0f, d_o + at, s.q_stride,
                       h.v + keys.begin * s.kv_stride, s.kv_stride, 0.0f, w.dp, n);
        for (int i = 0; i < queries; ++i) {
          const std::int64_t row = at + i * s.q_stride;
          net.kernels.softmax_backward(n, w.s + i * n, w.dp + i * n,
                                       static_cast<float>(net.kernels.dot(s.dim, d_o + row, o + row)));
        }
        if (s.cap > 0) net.kernels.softcap_backward(queries * n, s.cap, w.capped, w.s);
        net.gemm.block(w.thread, Operand::transposed, Operand::plain, n, s.dim, queries, s.scale, w.s, n,
                       h.q + query * s.q_stride, s.q_stride, 1.0f, dk_head + keys.begin * s.kv_stride, s.kv_stride);
        net.gemm.block(w.thread, Operand::plain, Operand::plain, queries, s.dim, n, s.scale, w.s, n,
                       h.k + keys.begin * s.kv_stride, s.kv_stride, 0.0f, d_o + at, s.q_stride);
      }
    }
  });
}

// What attention reads, from the raw projections. Without v_proj the values are the raw keys, before their norm and
// rotation.
void keys_and_values(Transformer& net, const PassContext& pass, int layer, LayerActivations& acts) {
  const model::Layer& l = net.config.layers[static_cast<size_t>(layer)];
  const LayerWeights& weights = net.weights.layers[static_cast<size_t>(layer)];
  const std::int64_t heads = std::int64_t{pass.tokens->count} * l.kv_heads;
  head_norm(net, heads, l.head_dim, acts.k, weights.k_norm, acts.kh, acts.inv_k);
  rotate(net, *pass.tokens, layer, l.kv_heads, 1.0f, acts.kh);
  if (acts.vh != acts.v) head_norm(net, heads, l.head_dim, acts.v, weights.v_norm, acts.vh, acts.inv_v);
}

void recompute_keys_and_values(Transformer& net, const PassContext& pass, int layer, LayerActivations& acts) {
  const model::Layer& l = net.config.layers[static_cast<size_t>(layer)];
  const LayerWeights& weights = net.weights.layers[static_cast<size_t>(layer)];
  const std::int64_t heads = std::int64_t{pass.tokens->count} * l.kv_heads;
  recompute_head_norm(net, heads, l.head_dim, acts.k, weights.k_norm, acts.inv_k, acts.kh);
  rotate(net, *pass.tokens, layer, l.kv_heads, 1.0f, acts.kh);
  if (acts.vh != acts.v) recompute_head_norm(net, heads, l.head_dim, acts.v, weights.v_norm, acts.inv_v, acts.vh);
}

// In place: d of what attention reads to d of the raw projections. Without v_proj both come together in d k.
void keys_and_values_backward(Transformer& net, const PassContext& pass, int layer, LayerActivations& acts) {
  const model::Layer& l = net.config.layers[static_cast<size_t>(layer)];
  const LayerWeights& weights = net.weights.layers[static_cast<size_t>(layer)];
  const std::int64_t heads = std::int64_t{pass.tokens->count} * l.kv_heads;
  rotate(net, *pass.tokens, layer, l.kv_heads, -1.0f, acts.dkh);
  head_norm_backward(net, heads, l.head_dim, acts.k, weights.k_norm, acts.inv_k, acts.dkh);
  head_norm_backward(net, heads, l.head_dim, acts.v, weights.v_norm, acts.inv_v, acts.dvh);
  if (!l.has_v)
    net.device.pool.parallel_for(heads * l.head_dim, 4096, [&](std::int64_t begin, std::int64_t end) {
      net.kernels.add(end - begin, acts.dvh + begin, 1.0f, acts.dkh + begin);
    });
}

}  // namespace

// h = x + post_attention_norm(o_proj(attention(input_norm(x)))).
void attention_block(Transformer& net, const PassContext& pass, int layer, LayerActivations& acts, float* h) {
  const model::Layer& l = net.config.layers[static_cast<size_t>(layer)];
  const LayerWeights& weights = net.weights.layers[static_cast<size_t>(layer)];
  const Tokens& tokens = *pass.tokens;
  const std::int64_t n = tokens.count, dim = net.config.dim;
  Scratch& scratch = net.buffers.step.scratch;
  static constexpr Projection kRead[] = {Projection::q, Projection::k, Projection::v};
  project(net, pass, layer,
          std::span(kRead).first(l.has_v   ? 3
                                 : l.has_k ? 2
                                           : 1),
          {acts.x, weights.input_norm, acts.inv_input}, acts);
  head_norm(net, n * l.heads, l.head_dim, acts.q, weights.q_norm, scratch.qh, acts.inv_q);
  rotate(net, tokens, layer, l.heads, 1.0f, scratch.qh);
  if (l.has_k) keys_and_values(net, pass, layer, acts);
  const AttentionValues values{scratch.qh, acts.kh, acts.vh, acts.o, acts.lse};
  pass.paged ? attend_paged(net, pass, layer, values) : attend_runs(net, pass, layer, values);
  static constexpr Projection kWritten[] = {Projection::o};
  project(net, pass, layer, kWritten, {acts.o}, acts);
  sum_block(net, mesh::Block::attention, layer, n * dim, acts.a);
  norm_add(net, n, dim, acts.a, *weights.post_attention_norm, acts.x, h, acts.inv_post_attention);
}

// scratch.dx: in d h, out d x (when the layer below wants it).
void attention_block_backward(Transformer& net, const PassContext& pass, int layer, LayerActivations& acts,
                              bool needs_dx) {
  const model::Layer& l = net.config.layers[static_cast<size_t>(layer)];
  const LayerWeights& weights = net.weights.layers[static_cast<size_t>(layer)];
  const Tokens& tokens = *pass.tokens;
  const std::int64_t n = tokens.count, dim = net.config.dim;
  Scratch& scratch = net.buffers.step.scratch;
  norm_backward(net, n, dim, acts.a, *weights.post_attention_norm, acts.inv_post_attention, scratch.dx, 0.0f,
                scratch.t);  // t = d a
  projection_backward_input(net, pass, layer, Projection::o, scratch.t, 0.0f, scratch.dq);
  projection_backward_weights(net, pass, layer, Projection::o, {acts.o}, scratch.t, acts.z[3]);
  recompute_head_norm(net, n * l.heads, l.head_dim, acts.q, weights.q_norm, acts.inv_q, scratch.qh);
  rotate(net, tokens, layer, l.heads, 1.0f, scratch.qh);
  if (l.has_k && !net.weights.layer_shapes[static_cast<size_t>(layer)].shares_kv)  // lent ones are still there
    recompute_keys_and_values(net, pass, layer, acts);
  const Accumulate how =
      acts.dkh == scratch.dk ? Accumulate::overwrite : Accumulate::add;  // lent ones collect from every borrower
  attend_runs_backward(net, pass, layer, scratch.qh, acts.kh, acts.vh, acts.o, acts.lse, scratch.dq, how, acts.dkh,
                       acts.dvh);
  rotate(net, tokens, layer, l.heads, -1.0f, scratch.dq);
  head_norm_backward(net, n * l.heads, l.head_dim, acts.q, weights.q_norm, acts.inv_q, scratch.dq);
  if (l.has_k) keys_and_values_backward(net, pass, layer, acts);
  const ProjectionInput in = recompute_input(net, pass, {acts.x, weights.input_norm, acts.inv_input});
  const auto through = [&](Projection p, const float* dy, const float* z, float keep) {
    if (needs_dx) projection_backward_input(net, pass, layer, p, dy, keep, scratch.t);
    projection_backward_weights(net, pass, layer, p, in, dy, z);
  };
  through(Projection::q, scratch.dq, acts.z[0], 0.0f);
  if (l.has_k) through(Projection::k, acts.dkh, acts.z[1], 1.0f);
  if (l.has_v) through(Projection::v, acts.dvh, acts.z[2], 1.0f);
  if (!needs_dx) return;
  sum_block(net, mesh::Block::attention, layer, n * dim, scratch.t);
  norm_backward(net, n, dim, acts.x, *weights.input_norm, acts.inv_input, scratch.t, 1.0f, scratch.dx);
}

// h = x + post_attention_norm(a), bitwise as the forward wrote it.
void recompute_residual(Transformer& net, std::int64_t n, int layer, const LayerActivations& acts, float* h) {
  const auto timer = net.profile.time(Kernel::norms);
  const std::int64_t dim = net.config.dim;
  const NormGain w = net.weights.layers[static_cast<size_t>(layer)].post_attention_norm->gain();
  net.device.pool.parallel_for(n, kRowsPerTask, [&](std::int64_t begin, std::int64_t end) {
    net.kernels.recompute_rms_norm_add(end - begin, dim, acts.a + begin * dim, w, acts.inv_post_attention + begin,
                                       acts.x + begin * dim, h + begin * dim);
  });
}

}  // namespace mw::engine
