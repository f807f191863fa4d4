// SPDX-License-Identifier: Apache-2.0
#include "core/engine/transformer/transformer.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/engine/transformer/attention.h"
#include "core/engine/transformer/embedding.h"
#include "core/engine/transformer/loss.h"
#include "core/engine/transformer/mlp.h"
#include "core/engine/transformer/paged_attention.h"

namespace mw::engine {

void Transformer::add_lora(const options::Lora& options, std::uint64_t seed) {
  buffers.step = {};
  weights.add_lora(options, seed);
}

void Transformer::set_trainable(model::TrainMethod method) {
  weights.check_trainable(method);
  buffers.step = {};
  weights.set_trainable(method);
}

void sum_block(Transformer& net, mesh::Block block, int layer, std::int64_t n, float* values) {
  if (net.hooks) net.hooks->sum_block(block, layer, {values, static_cast<size_t>(n)});
}

void set_phase(Transformer& net, mesh::Phase phase) {
  if (net.hooks) net.hooks->set_phase(phase);
}

void gather_weights(Transformer& net, int layer, mesh::Phase phase) {
  if (net.hooks && net.hooks->storage()) net.hooks->storage()->gather_weights(layer, phase);
}

void reduce_gradients(Transformer& net, int layer) {
  if (net.hooks && net.hooks->storage() && net.weights.trainable) net.hooks->storage()->reduce_gradients(layer);
}

void scale_values(Transformer& net, std::int64_t n, float factor, float* x) {
  net.device.pool.parallel_for(
      n, 4096, [&](std::int64_t begin, std::int64_t end) { net.kernels.scale(end - begin, factor, x + begin); });
}

namespace {

// A pass over pass.outputs, whose rows are next to each other.
struct OutputPass {
  Tokens tokens;
  PagedBatch paged;
  PassContext context;
  explicit OutputPass(const PassContext& pass) : paged(*pass.paged), context(pass) {
    const std::vector<int>& outputs = *pass.outputs;
    for (const int token : outputs) {
      const int position = pass.tokens->positions[static_cast<size_t>(token)];
      tokens.positions.push_back(position);
      tokens.origin.push_back(position);
      tokens.ids.push_back(pass.tokens->ids[static_cast<size_t>(token)]);
      tokens.runs.push_back({tokens.count, tokens.count + 1});
      ++tokens.count;
    }
    tokens.longest_run = 1, tokens.last_position = pass.tokens->last_position;
    paged.adapted.clear();
    for (const AdapterSpan& span : pass.paged->adapted) {
      const auto index = [&](std::int64_t token) {
        return std::lower_bound(outputs.begin(), outputs.end(), token) - outputs.begin();
      };
      if (index(span.begin) < index(span.end))
        paged.adapted.push_back({index(span.begin), index(span.end), span.adapter});
    }
    context.tokens = &tokens, context.paged = &paged, context.outputs = nullptr;
  }
  OutputPass(const OutputPass&) = delete;
  OutputPass& operator=(const OutputPass&) = delete;
};

}  // namespace

bool can_select_outputs(const Transformer& net) {
  return !net.hooks && net.config.ple_dim == 0;  // inputs of each layer are by token
}

const float* forward(Transformer& net, const PassContext& pass) {
  net.buffers.prepare_rope(pass.tokens->last_position);
  set_phase(net, mesh::Phase::forward);
  gather_weights(net, ShardedStorage::kEmbeddings, mesh::Phase::forward);
  if (pass.from)
    std::copy_n(pass.from, std::int64_t{pass.tokens->count} * net.config.dim, net.buffers.step.layers[0].x);
  else
    embed(net, *pass.tokens, net.buffers.step.layers[0].x);
  if (net.config.ple_dim > 0) per_layer_inputs(net, *pass.tokens, net.buffers.step.layers[0].x);
  const int count = static_cast<int>(net.weights.layers.size());
  for (int layer = 0; layer < count; ++layer) {
    gather_weights(net, layer, mesh::Phase::forward);
    float* const kept = net.activations(layer).h;
    float* const h = kept ? kept : net.buffers.step.scratch.h;
    if (pass.outputs && layer + 1 == count) {
      const OutputPass some(pass);
      attention_block_of_outputs(net, pass, some.context, layer, h);
      if (some.tokens.count > 0) mlp_block(net, some.context, layer, h, net.activations(count).x);
      break;
    }
    attention_block(net, pass, layer, h);
    mlp_block(net, pass, layer, h, net.activations(layer + 1).x);
  }
  return net.buffers.step.layers.back().x;
}

void backward(Transformer& net, const PassContext& pass) {
  const std::int64_t n = pass.tokens->count;
  const model::Remat remat = net.buffers.step.shape.remat;
  float* const h = net.buffers.step.scratch.h;
  for (size_t layer = static_cast<size_t>(net.buffers.step.shape.lowest); layer < net.weights.layers.size(); ++layer) {
    if (!net.weights.layer_shapes[layer].shares_kv) continue;
    const model::Layer& l = net.config.layers[layer];
    const auto floats = static_cast<size_t>(n * l.kv_heads * l.head_dim);
    for (float* d : {net.buffers.step.layers[layer].dkh, net.buffers.step.layers[layer].dvh})
      std::memset(d, 0, floats * sizeof(float));
  }
  for (int layer = static_cast<int>(net.weights.layers.size()) - 1; layer >= net.buffers.step.shape.lowest; --layer) {
    const LayerActivations& acts = net.activations(layer);
    net.buffers.step.scratch.dz_of = nullptr;
    gather_weights(net, layer, mesh::Phase::backward);
    set_phase(net, mesh::Phase::recompute);
    switch (remat) {
      case model::Remat::none:
        recompute_attention_residual(net, pass, layer, h);
        break;
      case model::Remat::block:
        mlp_block(net, pass, layer, acts.h, net.buffers.step.scratch.t);
        break;
      case model::Remat::layer:
        attention_block(net, pass, layer, h);
        mlp_block(net, pass, layer, h, net.buffers.step.scratch.t);
        break;
    }
    set_phase(net, mesh::Phase::backward);
    mlp_block_backward(net, pass, layer, remat == model::Remat::block ? acts.h : h);
    if (remat == model::Remat::block) {
      set_phase(net, mesh::Phase::recompute);
      attention_block(net, pass, layer, h);
      set_phase(net, mesh::Phase::backward);
    }
    const bool needs_dx = net.weights.full || layer > net.buffers.step.shape.lowest;
    attention_block_backward(net, pass, layer, needs_dx ? InputGradient::needed : InputGradient::unneeded);
    reduce_gradients(net, layer);
  }
  if (!net.weights.full) return;
  gather_weights(net, ShardedStorage::kEmbeddings, mesh::Phase::backward);
  if (net.config.ple_dim > 0)
    per_layer_inputs_backward(net, *pass.tokens, net.buffers.step.layers[0].x, net.buffers.step.scratch.dx);
  add_embedding_gradient(net, *pass.tokens, net.buffers.step.scratch.dx, net.weights.embed_scale,
                         *net.weights.embedding, net.vocab_rows());
  reduce_gradients(net, ShardedStorage::kEmbeddings);
}

namespace {

// Makes the calls of a step in their order, for the other devices.
void step_without_tokens(Transformer& net, StepGoal goal) {
  const int count = static_cast<int>(net.weights.layers.size());
  for (int layer = ShardedStorage::kEmbeddings; layer < count; ++layer)
    gather_weights(net, layer, mesh::Phase::forward);
  gather_weights(net, ShardedStorage::kHead, mesh::Phase::forward);
  if (goal == StepGoal::loss) return;
  reduce_gradients(net, ShardedStorage::kHead);
  for (int layer = count - 1; layer >= net.weights.lowest_trained_layer(); --layer) {
    gather_weights(net, layer, mesh::Phase::backward);
    reduce_gradients(net, layer);
  }
  if (!net.weights.full) return;
  gather_weights(net, ShardedStorage::kEmbeddings, mesh::Phase::backward);
  reduce_gradients(net, ShardedStorage::kEmbeddings);
}

}  // namespace

LossSum run_step(Transformer& net, const TokenBatch& batch, const StepOptions& options, StepGoal goal) {
  const Tokens tokens = remove_padding(batch, net.vocab(), net.config.max_positions);
  const bool train = goal == StepGoal::gradients;
  if (tokens.loss_tokens.empty()) {
    step_without_tokens(net, goal);
    return {};
  }
  PassContext pass{.tokens = &tokens,
                   .dropout = train ? net.weights.lora_dropout : 0.0f,
                   .dropout_seed = options.dropout_seed,
                   .step = options.step,
                   .micro_batch = options.micro_batch,
                   .first_cell = static_cast<std::uint64_t>(options.first_row) * static_cast<std::uint64_t>(batch.len)};
  net.buffers.prepare(
      {.tokens = sizes::step_tokens(std::int64_t{batch.rows} * batch.len, tokens.count),
       .lowest = train ? net.weights.lowest_trained_layer() : static_cast<int>(net.weights.layers.size()),
       .backward = train,
       .full = train && net.weights.full,
       .dropout = pass.dropout > 0,
       .remat = options.remat});
  const float* x = forward(net, pass);
  const LossSum sum = compute_loss(net, tokens, x, options, goal);
  if (train) backward(net, pass);
  return sum;
}

void hidden_states(Transformer& net, const TokenBatch& batch, std::span<const float> from, std::span<float> out) {
  const Tokens tokens = remove_padding(batch, net.vocab(), net.config.max_positions);
  if (tokens.count != batch.rows * batch.len) throw Error("BATCH", "hidden states are of batches without padding");
  net.buffers.prepare(forward_shape(net.weights, tokens.count));
  const float* x = forward(net, {.tokens = &tokens, .from = from.empty() ? nullptr : from.data()});
  std::copy_n(x, out.size(), out.begin());
}

void all_logits(Transformer& net, const TokenBatch& batch, std::span<const float> from, std::span<float> out) {
  const Tokens tokens = remove_padding(batch, net.vocab(), net.config.max_positions);
  if (!from.empty() && tokens.count != batch.rows * batch.len)
    throw Error("BATCH", "hidden states are of batches without padding");
  std::fill(out.begin(), out.end(), 0.0f);
  if (tokens.count == 0) return;
  net.buffers.prepare(forward_shape(net.weights, std::int64_t{batch.rows} * batch.len));
  const PassContext pass{.tokens = &tokens, .from = from.empty() ? nullptr : from.data()};
  const float* x = forward(net, pass);
  gather_weights(net, ShardedStorage::kHead, mesh::Phase::forward);
  std::vector<float> whole(net.splits_vocab() ? static_cast<size_t>(net.weights.vocab_parts * net.config.vocab) : 0);
  constexpr int kChunk = 256;
  for (int first = 0; first < tokens.count; first += kChunk) {
    std::vector<int> rows;
    for (int i = first; i < std::min(tokens.count, first + kChunk); ++i) rows.push_back(i);
    float* at = net.buffers.logit_rows(static_cast<std::int64_t>(rows.size()));
    head_logits(net, x, rows, at);
    for (size_t i = 0; i < rows.size(); ++i) {
      const float* row = at + static_cast<std::int64_t>(i) * net.config.vocab;
      if (net.splits_vocab())
        net.hooks->gather_logits({row, static_cast<size_t>(net.config.vocab)}, whole), row = whole.data();
      std::copy_n(row, net.vocab(),
                  out.data() + std::int64_t{tokens.origin[static_cast<size_t>(rows[i])]} * net.vocab());
    }
  }
}

}  // namespace mw::engine
