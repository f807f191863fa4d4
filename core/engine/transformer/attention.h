// SPDX-License-Identifier: Apache-2.0
// The attention block of a layer, and causal attention over runs of tokens: blocks of kQueries queries against the keys
// that they can see. No [tokens, tokens] matrix exists, and keys outside the window or the run are not read.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/engine/layout/model_shape.h"
#include "core/engine/transformer/norms.h"
#include "core/engine/transformer/transformer.h"

namespace mw::engine {

// h = x + post_attention_norm(o_proj(attention(input_norm(x)))).
void attention_block(Transformer& net, const PassContext& pass, int layer, float* h);

// Computes attention_block() for the tokens pass.outputs only. `some` is their pass, for which their rows of x move to
// the front. Keys and values are computed for all tokens.
void attention_block_of_outputs(Transformer& net, const PassContext& pass, const PassContext& some, int layer,
                                float* h);

enum class InputGradient { unneeded, needed };
// Takes the gradient of h from scratch.dx and, if that of x is needed, writes it there.
void attention_block_backward(Transformer& net, const PassContext& pass, int layer, InputGradient input_gradient);

// Recomputes h from the kept output of o_proj, bit for bit.
void recompute_attention_residual(Transformer& net, const PassContext& pass, int layer, float* h);

// --- Rotary position embeddings (Su et al. 2021), with the scaled and partial variants of Gemma 3 and 4 ---

// Fills a table of cosines, then sines, [positions, head_dim / 2] each.
void fill_rope_table(const RopeSpec& spec, std::int64_t positions, float* table);

// Rotates the heads x [tokens, heads, head_dim] in place; sign -1 is the backward.
void rotate(Transformer& net, const Tokens& tokens, int layer, int heads, float sign, float* x);

// y = the rotated norm of heads n.x [tokens, heads, head_dim], token by token while they are in cache. The norm's
// statistics are computed, or reused for the same bits.
void rotate_normed(Transformer& net, const Tokens& tokens, int layer, const RmsNorm& n, NormStatistics statistics,
                   float* y);

// --- Shared with paged attention ---

constexpr int kQueries = sizes::kQueries;

struct TokenSpan {
  int begin, end;
  int size() const { return end - begin; }
};

struct AttentionTask {
  TokenRun run;
  int head;   // in the forward over runs a query head, otherwise a KV head
  int query;  // first query of the block, forward only
  double cost;
  int row = 0;  // of the KV cache
};

// A layer's attention on this device.
struct AttentionShape {
  std::int64_t q_stride, kv_stride, dim;
  int window, heads, kv_heads;
  int group;    // query heads of a KV head
  int skipped;  // query heads of the first KV head that are on other devices
  float scale, cap;
  int kv_of(int head) const { return (skipped + head) / group; }
  TokenSpan queries_of(int kv) const {
    return {std::max(0, kv * group - skipped), std::min(heads, (kv + 1) * group - skipped)};
  }
};
AttentionShape attention_shape(const Transformer& net, int layer);

struct AttentionValues {  // rows by token: q, o [heads * dim], k, v [kv_heads * dim], lse [heads]
  const float *q, *k, *v;
  float *o, *lse;
};

// Allocates score blocks of kQueries queries against `keys` keys for every thread.
void reserve_score_blocks(Transformer& net, std::int64_t keys);
struct ScoreBlocks {
  std::int64_t thread;
  float *s, *dp, *capped;  // scores and later probabilities, gradient of the probabilities, scores after the softcap
};
ScoreBlocks score_blocks_of(const Transformer& net, std::int64_t thread);

// A static partition by cost: the first task of each thread, then the number of tasks.
std::vector<size_t> partition_by_cost(const std::vector<AttentionTask>& tasks, int threads);

template <class F>
void run_tasks(Transformer& net, const std::vector<AttentionTask>& tasks, F fn) {
  if (tasks.size() == 1) return fn(tasks.front(), score_blocks_of(net, 0));
  const int threads = net.device.pool.threads();
  const std::vector<size_t> cuts = partition_by_cost(tasks, threads);
  net.device.pool.parallel_for(threads, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t thread = first; thread < last; ++thread)
      for (size_t i = cuts[static_cast<size_t>(thread)]; i < cuts[static_cast<size_t>(thread) + 1]; ++i)
        fn(tasks[i], score_blocks_of(net, thread));
  });
}

// Attention of runs whose keys and values are all in this pass.
void attend_within(Transformer& net, const AttentionShape& shape, std::span<const TokenRun> runs,
                   const AttentionValues& values);

}  // namespace mw::engine
