// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/step_buffers.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "core/base/error.h"

namespace mw::plan {
namespace {

using model::Role;

constexpr Role kRoles[kProjections] = {Role::q_proj,    Role::k_proj,  Role::v_proj,   Role::o_proj,
                                       Role::gate_proj, Role::up_proj, Role::down_proj};

}  // namespace

void check(const TrainShape& shape) {
  const TrainShape::Forward& e = shape.evaluation;
  if (shape.tokens < 0 || shape.tokens > kMostTokens || shape.loss_tokens < 0 || shape.longest < 0 ||
      shape.threads < 1 || shape.generate_tokens < 0 || shape.prompt_tokens < 0 || e.tokens < 0 ||
      e.tokens > kMostTokens || e.loss_tokens < 0 || e.longest < 0)
    throw Error({.id = "PLAN-SIZE",
                 .message = "the size of the micro-batch is out of range",
                 .found = std::to_string(shape.tokens) + " tokens, " + std::to_string(shape.threads) + " threads",
                 .expected = "0 to " + std::to_string(kMostTokens) + " tokens, at least 1 thread"});
}

StepPlan::StepPlan(model::Config c, model::TensorInventory tensors, TrainShape s)
    : config(std::move(c)),
      shape(std::move(s)),
      inventory(std::move(tensors)),
      rank(config.layers.size()),
      ple_columns(config.ple_dim) {
  if (shape.method == model::TrainMethod::full) return;
  lowest = config.layers.size();
  for (const mesh::AdapterShape& lora : shape.lora)
    for (const model::LoraTarget& t : inventory.lora_targets()) {
      if (t.role != lora.role || t.layer != lora.layer) continue;
      const auto p = std::find(std::begin(kRoles), std::end(kRoles), t.role) - std::begin(kRoles);
      rank[static_cast<size_t>(t.layer)][static_cast<size_t>(p)] = lora.rank;
      most_in = std::max(most_in, t.in);
      most_rank = std::max(most_rank, std::int64_t{lora.rank});
      adapter_floats += aligned(lora.rank * t.in) + aligned(t.out * lora.rank);
      adapter_parameters += lora.rank * (t.in + t.out);
      lowest = std::min(lowest, static_cast<size_t>(t.layer));
    }
}

std::int64_t StepPlan::q(size_t layer) const {
  return std::int64_t{config.layers[layer].heads} * config.layers[layer].head_dim;
}
std::int64_t StepPlan::kv(size_t layer) const {
  return std::int64_t{config.layers[layer].kv_heads} * config.layers[layer].head_dim;
}
std::int64_t StepPlan::ple() const {
  return static_cast<std::int64_t>(config.layers.size()) * config.ple_dim;
}
bool StepPlan::lends(size_t layer) const {
  return std::any_of(config.layers.begin(), config.layers.end(),
                     [&](const model::Layer& l) { return l.kv_donor == static_cast<int>(layer); });
}

namespace {

// The statistics and the input of the norm after attention or MLP.
std::int64_t post_norm_floats(const StepPlan& plan) {
  return plan.config.post_norms ? aligned(plan.shape.tokens) + aligned(plan.shape.tokens * plan.config.dim) : 0;
}

// Floats that the backward of one attention (MLP) block needs: statistics of its norms, projections, z = A x.
std::int64_t attention_floats(const StepPlan& plan, size_t layer) {
  const std::int64_t n = plan.shape.tokens;
  const model::Layer& l = plan.config.layers[layer];
  std::int64_t sum = aligned(n) + aligned(n * l.heads) + 2 * aligned(n * plan.q(layer)) + post_norm_floats(plan);
  if (plan.config.qk_norm) sum += aligned(n * l.heads);
  if (plan.config.qk_norm && l.has_k) sum += aligned(n * l.kv_heads);
  if (plan.config.v_norm && l.has_k) sum += aligned(n * l.kv_heads);
  if (l.has_k) sum += aligned(n * plan.kv(layer));
  if (l.has_v) sum += aligned(n * plan.kv(layer));
  for (size_t i = 0; i < 4; ++i) sum += aligned(n * plan.rank[layer][i]);
  return sum;
}
std::int64_t mlp_floats(const StepPlan& plan, size_t layer) {
  const std::int64_t n = plan.shape.tokens;
  std::int64_t sum = aligned(n) + 2 * aligned(n * plan.config.layers[layer].mlp_dim) + post_norm_floats(plan);
  if (plan.config.ple_dim > 0) sum += aligned(n) + aligned(n * plan.ple_columns) + aligned(n * plan.config.dim);
  if (plan.config.experts > 0) {
    const std::int64_t chosen = n * plan.config.experts_per_token;
    sum += 3 * aligned(chosen) + aligned(plan.config.experts + 1) + 4 * aligned(n) +
           2 * aligned(chosen * plan.config.expert_dim) + 2 * aligned(n * plan.config.dim);
  }
  for (size_t i = 4; i < kProjections; ++i) sum += aligned(n * plan.rank[layer][i]);
  return sum;
}

// Scratch memory of the current layer, sized for the widest layer.
Bytes scratch(const StepPlan& plan) {
  std::int64_t q = 0, kv = 0, mlp = 0;
  for (size_t l = 0; l < plan.config.layers.size(); ++l) {
    q = std::max(q, plan.q(l));
    kv = std::max(kv, plan.kv(l));
    mlp = std::max(mlp, std::int64_t{plan.config.layers[l].mlp_dim});
  }
  const std::int64_t n = plan.shape.tokens, d = aligned(n * plan.config.dim);
  std::int64_t floats = aligned(n) + 4 * d + aligned(n * plan.most_rank);
  if (plan.shape.dropout) floats += aligned(n * plan.most_in);
  const std::int64_t attention = 2 * aligned(n * q) + (plan.config.v_norm ? 4 : 3) * aligned(n * kv);
  std::int64_t rest = aligned(n * mlp);
  if (plan.config.ple_dim > 0) rest = std::max(rest + aligned(n * plan.ple_columns), aligned(n * plan.ple()));
  if (plan.config.experts > 0)
    rest = std::max(rest, 4 * d + 2 * aligned(n * plan.config.expert_dim) + aligned(n * plan.config.experts) +
                              aligned(n * plan.config.experts_per_token));
  return buffer_bytes(floats + std::max(attention, rest));  // they take turns
}

// Per-layer inputs of all layers; keys, values and their gradients of layers that lend them.
Bytes across_layers(const StepPlan& plan) {
  const std::int64_t n = plan.shape.tokens;
  std::int64_t inputs = 0, lent = 0;
  if (plan.config.ple_dim > 0)
    inputs = aligned(n * plan.ple()) + aligned(n * static_cast<std::int64_t>(plan.config.layers.size()));
  for (size_t l = 0; l < plan.config.layers.size(); ++l)
    if (plan.lends(l)) lent += (l < plan.lowest ? 2 : 4) * aligned(n * plan.kv(l));
  return buffer_bytes(inputs) + buffer_bytes(lent);
}

}  // namespace

Bytes activations(const StepPlan& plan) {
  const size_t count = plan.config.layers.size();
  const std::int64_t d = aligned(plan.shape.tokens * plan.config.dim);
  const auto trained = static_cast<std::int64_t>(count - plan.lowest);
  // Layer inputs and the last output; layers below the lowest trained one share a buffer.
  std::int64_t inputs = (trained + 1) * d;
  if (plan.shape.remat == model::Remat::block) inputs += trained * d;
  Bytes sum = scratch(plan) + buffer_bytes(inputs) + across_layers(plan);
  const size_t first_kept = plan.shape.remat == model::Remat::none ? plan.lowest : count;
  std::int64_t shared = 0;
  for (size_t l = 0; l < first_kept; ++l) {
    const std::int64_t attention = attention_floats(plan, l), mlp = mlp_floats(plan, l);
    // A whole layer is recomputed at once; otherwise its two blocks take turns.
    shared = std::max(shared, plan.shape.remat == model::Remat::layer ? attention + mlp : std::max(attention, mlp));
  }
  sum += buffer_bytes(shared);
  for (size_t l = first_kept; l < count; ++l) sum += buffer_bytes(attention_floats(plan, l) + mlp_floats(plan, l));
  return sum;
}

namespace {

bool packs(const StepPlan& plan) {
  return plan.shape.weights != model::WeightType::f32 && plan.shape.bf16 == Bf16Math::packed;
}

}  // namespace

// With a packed, frozen output matrix the loss computes 16-bit logits tile by tile.
bool streams_loss(const StepPlan& plan) {
  const model::Tensor* head = plan.inventory.find(plan.config.tied_embeddings ? Role::embed : Role::lm_head);
  return packs(plan) && plan.shape.weights == model::WeightType::bf16 &&
         plan.shape.method == model::TrainMethod::lora && packable(*head);
}

namespace {

std::int64_t loss_rows(const StepPlan& plan) {
  const std::int64_t size = streams_loss(plan) ? 2 : 4;
  return sizes::loss_rows(plan.shape.loss_tokens, plan.shape.loss_chunk, plan.config.vocab * size);
}

}  // namespace

// A streaming loss keeps 16-bit exponentials and the maximum of each stripe.
Bytes logits(const StepPlan& plan) {
  const std::int64_t rows = loss_rows(plan);
  if (!streams_loss(plan)) return buffer_bytes(rows * plan.config.vocab);
  return buffer_bytes(rows * plan.config.vocab, 2) + buffer_bytes(rows * sizes::logit_stripes(plan.config.vocab));
}

// A tile of logits per thread, and a share of the gradients for each thread but the first.
Bytes loss_workspace(const StepPlan& plan) {
  if (!streams_loss(plan)) return Bytes(0);
  return buffer_bytes(plan.shape.threads * sizes::kLogitTile) +
         buffer_bytes((plan.shape.threads - 1) * loss_rows(plan) * plan.config.dim);
}

namespace {

// Keys that a decoded token of a row of `tokens` sees at most.
std::int64_t visible_keys(const model::Config& config, size_t layer, std::int64_t tokens) {
  const bool sliding = config.layers[layer].attention == model::Attention::sliding && config.sliding_window > 0;
  return sliding ? std::min<std::int64_t>(tokens, config.sliding_window) : tokens;
}

// Keys of the longest block of scores.
std::int64_t block_keys(const StepPlan& plan) {
  std::int64_t keys = plan.shape.longest;
  for (size_t i = 0; i < plan.config.layers.size() && plan.shape.generate_tokens > 0; ++i) {
    const model::Layer& l = plan.config.layers[i];  // one token's scores, of the heads that share a kv head
    keys = std::max(keys,
                    sizes::cached_keys(l.heads / l.kv_heads, visible_keys(plan.config, i, plan.shape.generate_tokens)));
  }
  return keys;
}

}  // namespace

// RoPE tables of each kind of layer, blocks of attention scores per thread, and scratch for products of bf16 weights.
Bytes workspace(const StepPlan& plan) {
  std::set<std::tuple<float, model::Rope, float, int>> ropes;
  for (const model::Layer& l : plan.config.layers)
    ropes.insert({l.rope_theta, l.rope, l.rope == model::Rope::plain ? 1.0f : l.rope_factor, l.head_dim});
  const std::int64_t positions = sizes::rope_positions(std::max(plan.shape.longest, plan.shape.generate_tokens));
  Bytes sum;
  for (const auto& rope : ropes) sum += buffer_bytes(2 * positions * (std::get<3>(rope) / 2));
  sum += buffer_bytes(sizes::score_blocks(plan.config.attention_softcap) * sizes::kQueries *
                      sizes::round_up(block_keys(plan), sizes::kQueries) * plan.shape.threads);
  const std::span<const model::Tensor> tensors = plan.inventory.tensors();
  const auto widened = [](const model::Tensor& t) { return !is_vector(t) && !packable(t); };
  if (packs(plan)) sum += buffer_bytes(plan.shape.threads * sizes::kPackedBlocks, 2);
  const bool many_rows = plan.lowest < plan.config.layers.size() || plan.shape.tokens > sizes::kSkinnyRows ||
                         plan.shape.weights == model::WeightType::int8;
  if (plan.shape.weights != model::WeightType::f32 && many_rows &&
      (!packs(plan) || std::any_of(tensors.begin(), tensors.end(), widened)))
    sum += buffer_bytes(plan.shape.threads * sizes::kWidenedFloats);
  return sum;
}

// Two groups of blocks: of layers with full attention and of sliding ones.
Bytes kv_cache(const StepPlan& plan, std::int64_t rows) {
  std::int64_t floats[2] = {};
  for (size_t l = 0; l < plan.config.layers.size(); ++l) {
    const model::Layer& layer = plan.config.layers[l];
    if (!layer.has_k) continue;  // it reads the keys of its donor
    const bool sliding = layer.attention == model::Attention::sliding && plan.config.sliding_window > 0;
    const std::int64_t blocks =
        sizes::sampler_blocks(plan.shape.generate_tokens, sliding ? plan.config.sliding_window : 0);
    floats[sliding] += 2 * rows * blocks * sizes::kSamplerBlock * plan.kv(l);
  }
  return buffer_bytes(floats[0]) + buffer_bytes(floats[1]);
}

Bytes forward_activations(const StepPlan& plan) {
  const std::int64_t n = plan.shape.tokens, d = aligned(n * plan.config.dim);
  std::int64_t q = 0, kv = 0, mlp = 0, layer = 0;
  for (size_t l = 0; l < plan.config.layers.size(); ++l) {
    q = std::max(q, plan.q(l));
    kv = std::max(kv, plan.kv(l));
    mlp = std::max(mlp, std::int64_t{plan.config.layers[l].mlp_dim});
    layer = std::max({layer, attention_floats(plan, l), mlp_floats(plan, l)});
  }
  const std::int64_t attention = aligned(n * q) + (plan.config.v_norm ? 2 : 1) * aligned(n * kv);
  std::int64_t rest = aligned(n * mlp);
  if (plan.config.ple_dim > 0) rest = std::max(rest + aligned(n * plan.ple_columns), aligned(n * plan.ple()));
  if (plan.config.experts > 0)
    rest = std::max(rest, 2 * d + aligned(n * plan.config.expert_dim) + aligned(n * plan.config.experts));
  return buffer_bytes(aligned(n) + 2 * d + std::max(attention, rest)) + buffer_bytes(d) + buffer_bytes(layer) +
         across_layers(plan);
}

// Training steps, evaluation and sampling share one step memory, which the engine keeps if the next of them fits and
// allocates anew if not. Logits, workspace and tables only grow.
MemoryPlan run_memory(StepPlan p, const Ledger& kept, Bytes sampled_logits) {
  const TrainShape::Forward evaluation = p.shape.evaluation;
  const std::int64_t prompt = p.shape.prompt_tokens;
  const bool trains = p.shape.loss_tokens > 0, evaluates = evaluation.loss_tokens > 0,
             samples = p.shape.generate_tokens > 0;
  p.shape.loss_tokens = std::max(p.shape.loss_tokens, evaluation.loss_tokens);
  p.shape.longest = std::max({p.shape.longest, evaluation.longest, samples ? p.shape.prompt_tokens : 0});

  Ledger working = kept;  // but for activations
  if (trains || evaluates || samples) {
    working[MemoryCategory::workspace] = workspace(p) + loss_workspace(p);
    working[MemoryCategory::logits] = logits(p);
  }
  const std::int64_t room = trains ? p.shape.tokens : 0;
  const Bytes of_step = trains ? activations(p) : Bytes(0);
  p.lowest = p.config.layers.size();  // from here on nothing has a backward
  const auto forward = [&](std::int64_t tokens) {
    p.shape.tokens = tokens;
    return forward_activations(p);
  };
  // An evaluation that does not fit into the step's memory replaces it, and is replaced by the next step's.
  const bool replaces = evaluates && evaluation.tokens > room;
  const Bytes of_evaluation = replaces ? forward(evaluation.tokens) : Bytes(0);

  MemoryPlan plan{.at_peak = kept, .category_peaks = kept, .peak_instant = "weights and what is learned"};
  const auto instant = [&](Ledger ledger, Bytes activations_there, const char* name) {
    ledger[MemoryCategory::activations] = activations_there;
    for (size_t c = 0; c < kMemoryCategories; ++c)
      plan.category_peaks.bytes[c] = std::max(plan.category_peaks.bytes[c], ledger.bytes[c]);
    if (ledger.total() > plan.at_peak.total()) plan.at_peak = ledger, plan.peak_instant = name;
  };
  if (trains) instant(working, of_step, "logits of a training step");
  if (replaces) instant(working, of_evaluation, "evaluation of held-out rows");
  if (!samples) return plan;
  // The KV cache is allocated while the step memory of the last step or evaluation still exists, if the prompt fits
  // into it.
  Bytes there = prompt > room ? forward(prompt) : of_step;
  if (replaces && prompt <= evaluation.tokens) there = std::max(there, of_evaluation);
  working[MemoryCategory::kv_cache] = kv_cache(p, 1);
  working[MemoryCategory::logits] += sampled_logits;
  instant(working, there, "start of sampling");
  return plan;
}

}  // namespace mw::plan
