// SPDX-License-Identifier: Apache-2.0
#include "core/engine/layout/phases.h"

#include <algorithm>

#include "core/engine/layout/weights_layout.h"

namespace mw::engine {
namespace {

// The buffers of every pass: RoPE tables of `positions`, score blocks of `keys` keys, and the workspace of matrix
// products.
std::vector<Allocation> pass_workspace(const ModelShape& model, std::int64_t positions, std::int64_t keys,
                                       int threads) {
  std::vector<Allocation> list = rope_tables(model, rope_positions(positions));
  list.push_back(score_allocation(model, keys, threads));
  list.push_back(packed_blocks(threads));
  return list;
}

// As many rows as fit one pass, at least one.
std::int64_t pass_tokens(std::int64_t rows, std::int64_t len) {
  return std::min(rows, std::max<std::int64_t>(1, sizes::kPassTokens / len)) * len;
}

}  // namespace

std::vector<Allocation> allocations(const ModelShape& model, const PhaseBuffers& phase) {
  std::vector<Allocation> all = phase.own;
  const std::vector<Allocation> step = lay_out_step(model, phase.step).allocations;
  all.insert(all.end(), step.begin(), step.end());
  all.insert(all.end(), phase.kept.begin(), phase.kept.end());
  return all;
}

PhaseBuffers step_phase(const ModelShape& model, const StepWork& work, int threads) {
  PhaseBuffers phase{.own = {}, .step = work.shape, .kept = pass_workspace(model, work.longest, work.longest, threads)};
  const std::int64_t rows = loss_rows(model, work.loss_tokens, work.loss_chunk);
  if (!model.streams_loss()) {
    phase.kept.push_back(logit_allocation(model, rows));
    return phase;
  }
  for (const Allocation& logits : streamed_logits(model, rows)) phase.kept.push_back(logits);
  phase.kept.push_back(logit_tiles(threads));
  if (work.shape.backward) phase.kept.push_back(partial_gradients(rows, model.config.dim, threads));
  return phase;
}

PhaseBuffers generation_phase(const ModelShape& model, const GenerationWork& work, int threads) {
  const std::int64_t with_answer = work.prompt + work.new_tokens;
  PhaseBuffers phase;
  std::vector<BlockGroup> groups = sequence_groups(model);
  for (int g = 0; g < kSequenceGroups; ++g)
    groups[static_cast<size_t>(g)].blocks = work.rows * sequence_blocks(model, g, with_answer);
  phase.own = lay_out_cache(model, sizes::kSamplerBlock, groups).groups;
  phase.own.push_back(gathered_logits(model));
  phase.step = forward_shape(model, std::max(pass_tokens(work.rows, work.prompt), work.rows));  // decoding: one of each
  std::int64_t keys = work.prompt;
  for (size_t i = 0; i < model.config.layers.size(); ++i) keys = std::max(keys, decoded_keys(model, i, with_answer));
  phase.kept = pass_workspace(model, with_answer, keys, threads);
  phase.kept.push_back(logit_allocation(model, work.rows));
  return phase;
}

PhaseBuffers scoring_phase(const ModelShape& model, const ScoringWork& work, int threads) {
  const std::int64_t cells = work.rows * work.len;
  PhaseBuffers phase;
  for (const Allocation& result : score_results(cells, std::min<std::int64_t>(work.top_k, model.config.vocab)))
    phase.own.push_back(result);
  phase.step = forward_shape(model, pass_tokens(work.rows, work.len));
  phase.kept = pass_workspace(model, work.len, work.len, threads);
  phase.kept.push_back(logit_allocation(model, work.chunk > 0 ? std::min(work.chunk, cells) : cells));
  return phase;
}

PhaseBuffers serving_phase(const ModelShape& model, const ServingWork& work, int threads) {
  PhaseBuffers phase{.own = lay_out_cache(model, work.block_size, work.groups).groups,
                     .step = forward_shape(model, std::max(work.tokens, work.rows)),
                     .kept = {}};
  phase.own.push_back(key_tiles(model, threads));
  std::int64_t rank = 0;
  for (const std::vector<mesh::AdapterShape>& adapter : work.adapters) {
    const std::vector<LoraShape> shapes = lora_shapes(model.inventory, adapter);
    phase.own.push_back(lay_out_adapters(adapter_tensors(shapes)).allocation);
    for (const LoraShape& lora : shapes) rank = std::max(rank, lora.rank);
  }
  phase.own.push_back(adapter_products(phase.step.tokens, rank));
  phase.kept = pass_workspace(model, work.context, work.context, threads);
  phase.kept.push_back(logit_allocation(model, work.rows));
  return phase;
}

}  // namespace mw::engine
