// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/plan/engine_runs.h"

#include <deque>
#include <numeric>

#include "core/engine/generate/sampler.h"
#include "core/engine/generate/scorer.h"
#include "core/engine/generate/serving_engine.h"
#include "core/engine/kernels/packed.h"
#include "core/engine/transformer/network.h"
#include "core/engine/transformer/optimizer.h"
#include "tests/engine/families.h"

namespace mw::plan::local {
namespace {

using engine::Network;

std::vector<mesh::AdapterShape> adapters_of(const Network& network) {
  std::vector<mesh::AdapterShape> sizes;
  for (const engine::LoraTensors& m : network.lora()) sizes.push_back({m.target.role, m.target.layer, m.rank});
  return sizes;
}

// Ids, targets on the last `loss_per_row` positions of each row, positions and one segment per row.
struct Arrays {
  std::vector<int> ids, targets, positions, segments;
  Arrays(int rows, int len, int loss_per_row) {
    for (int r = 0; r < rows; ++r)
      for (int i = 0; i < len; ++i) {
        ids.push_back((r * 31 + i * 7) % 3000);
        targets.push_back(i >= len - loss_per_row ? (i * 13) % 3000 : -1);
        positions.push_back(i);
        segments.push_back(0);
      }
  }
  engine::TokenBatch batch(int rows, int len) const {
    return {.rows = rows, .len = len, .ids = ids, .targets = targets, .positions = positions, .segments = segments};
  }
};

std::vector<int> prompt_of(int tokens) {
  std::vector<int> prompt(static_cast<size_t>(tokens));
  std::iota(prompt.begin(), prompt.end(), 1);
  return prompt;
}

}  // namespace

model::Config small_config(const Sizes& s) {
  model::Config c;
  c.id = "small";
  c.hf_model_type = "gemma3_text";
  c.hf_architecture = "Gemma3ForCausalLM";
  c.vocab = s.vocab, c.dim = s.dim;
  c.sliding_window = s.window, c.max_positions = 4096;
  c.qk_norm = true;
  c.attention_scale = 0.125f;
  for (int i = 0; i < s.layers; ++i) {
    model::Layer l;
    l.attention = i % 3 == 2 ? model::Attention::full : model::Attention::sliding;
    l.heads = 4, l.kv_heads = 2, l.head_dim = s.head_dim, l.mlp_dim = s.mlp;
    l.rope_theta = i % 3 == 2 ? 1e6f : 1e4f;
    c.layers.push_back(l);
  }
  return c;
}

model::Config small_config(const Sizes& sizes, const std::string& family) {
  model::Config c = engine::test::as_family(small_config(sizes), family);
  if (c.ple_dim > 0) c.ple_dim = sizes.dim / 4;
  if (c.experts > 0) c.expert_dim = sizes.mlp / 2;
  return c;
}

Outcome run(const model::Config& config, const TrainRun& r) {
  engine::Device device(Bytes(0), r.threads);
  Network network(config, device, r.weights);
  network.init_random(1);
  if (r.method == model::TrainMethod::lora)
    network.add_lora({.rank = r.rank, .dropout = r.dropout, .targets = r.targets, .rank_pattern = r.rank_pattern}, 1);
  network.set_trainable(r.method);
  engine::AdamW optimizer(device, network.parameters(), {});
  const Arrays a(r.rows, r.len, r.loss_per_row), held_out(r.eval_rows, r.eval_len, r.eval_len);
  const auto evaluate = [&] {
    if (r.eval_rows > 0) network.evaluate(held_out.batch(r.eval_rows, r.eval_len), {.loss_chunk = r.chunk});
  };
  evaluate();
  for (int step = 1; step <= (r.generate > 0 ? 3 : 2); ++step) {
    network.zero_gradients();
    network.forward_backward(a.batch(r.rows, r.len), {.remat = r.remat, .loss_chunk = r.chunk});
    optimizer.step(step, 1e-3f, 1.0f, optimizer.gradient_norm());
    network.parameters_changed();
    evaluate();
    if (r.generate > 0)
      engine::Sampler(network).generate(prompt_of(r.prompt), {.max_new_tokens = r.generate - r.prompt});
  }
  const TrainShape shape{
      .method = r.method,
      .weights = r.weights,
      .lora = adapters_of(network),
      .dropout = r.dropout > 0,
      .remat = r.remat,
      .tokens = std::int64_t{r.rows} * r.len,
      .loss_tokens = std::int64_t{r.rows} * r.loss_per_row,
      .longest = r.len,
      .loss_chunk = r.chunk,
      .threads = r.threads,
      .evaluation = {std::int64_t{r.eval_rows} * r.eval_len, std::int64_t{r.eval_rows} * r.eval_len, r.eval_len},
      .prompt_tokens = r.generate > 0 ? r.prompt : 0,
      .generate_tokens = r.generate};
  return {device.arena.use(), predict_train_memory(config, shape)};
}

namespace {

// A server with room for `rows` requests of `len` and a step of `chunk` tokens, two adapters beside the model.
Outcome run_server(const model::Config& config, Network& network, const InferenceRun& r) {
  constexpr int kBlock = 16;
  const int blocks = r.rows * ((r.len + kBlock - 1) / kBlock);
  engine::ServingWork work{.tokens = r.chunk,
                           .rows = r.rows,
                           .context = r.len,
                           .block_size = kBlock,
                           .groups = {{{}, blocks}, {{}, blocks / 2}}};
  for (size_t i = 0; i < config.layers.size(); ++i)
    if (config.layers[i].has_k)
      work.groups[config.layers[i].attention == model::Attention::sliding ? 1 : 0].layers.push_back(
          static_cast<int>(i));
  engine::ServingEngine server(
      network, {.block_size = kBlock, .groups = work.groups, .tokens = r.chunk, .rows = r.rows, .context = r.len});
  for (const int rank : {r.rank, r.rank / 2}) {
    if (rank == 0) continue;
    std::deque<std::vector<float>> values;
    std::vector<engine::AdapterValues> adapter;
    work.adapters.emplace_back();
    for (const model::LoraTarget& t : network.inventory().lora_targets()) {
      if (t.role != model::Role::q_proj && t.role != model::Role::down_proj) continue;
      const std::vector<float>&a = values.emplace_back(rank * t.in, 0.1f), &b = values.emplace_back(rank * t.out, 0.1f);
      adapter.push_back({t, rank, 1.0f, a, b});
      work.adapters.back().push_back({t.role, t.layer, rank});
    }
    server.add_adapter(adapter);
  }
  std::vector<int> table(static_cast<size_t>(blocks / 2));
  std::iota(table.begin(), table.end(), 0);
  const std::span<const int> tables[]{table, table};
  const std::vector<int> prompt = prompt_of(std::min({r.chunk, r.len, blocks / 2 * kBlock}));
  const engine::TokenChunk chunk{prompt, 0, tables, r.rank > 0 ? 0 : -1};
  for (int twice = 0; twice < 2; ++twice) server.step({&chunk, 1});
  const InferenceModel model{.weights = r.weights, .lora = {}, .threads = r.threads};
  return {network.device().arena.use(), predict_memory(config, model, work)};
}

}  // namespace

Outcome run(const model::Config& config, const InferenceRun& r) {
  engine::Device device(Bytes(0), r.threads);
  Network network(config, device, r.weights, engine::NetworkUse::inference);
  network.init_random(1);
  if (r.work == InferenceRun::Work::serve) return run_server(config, network, r);
  if (r.rank > 0) network.add_lora({.rank = r.rank, .targets = {"q_proj", "down_proj"}}, 1);
  const InferenceModel model{.weights = r.weights, .lora = adapters_of(network), .threads = r.threads};
  for (int twice = 0; twice < 2; ++twice) {
    network.release_step_memory();
    device.arena.reset_peak();
    if (r.work == InferenceRun::Work::generate) {
      const std::vector<std::vector<int>> prompts(static_cast<size_t>(r.rows), prompt_of(r.len));
      engine::Sampler(network).generate_batch(prompts, {.max_new_tokens = r.new_tokens});
    } else {
      const Arrays a(r.rows, r.len, r.len);
      engine::Scorer(network).score(a.batch(r.rows, r.len), {.chunk = r.chunk, .top_k = r.top_k});
    }
  }
  const MemoryPlan plan = r.work == InferenceRun::Work::generate
                              ? predict_memory(config, model, engine::GenerationWork{r.rows, r.len, r.new_tokens})
                              : predict_memory(config, model, engine::ScoringWork{r.rows, r.len, r.chunk, r.top_k});
  return {device.arena.use(), plan};
}

}  // namespace mw::plan::local
