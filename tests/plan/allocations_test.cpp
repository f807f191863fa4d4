// SPDX-License-Identifier: GPL-3.0-or-later
// Every buffer that the engine's arena holds is in the lists of core/engine/layout with its size, and the other way
// round. Blocks of 12-bit weights that do not fit are excluded: their number depends on the values.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "core/engine/distributed/cluster.h"
#include "core/engine/generate/sampler.h"
#include "core/engine/generate/scorer.h"
#include "core/engine/generate/serving_engine.h"
#include "core/engine/layout/phases.h"
#include "core/engine/layout/weights_layout.h"
#include "core/engine/transformer/optimizer.h"
#include "core/engine/transformer/transformer.h"
#include "tests/engine/families.h"
#include "tests/plan/engine_runs.h"

namespace mw::plan {
namespace {

using engine::Allocation;
using engine::Network;
using model::WeightType;

// Bytes and buffers by category and label.
using Buffers = std::map<std::string, std::pair<std::int64_t, int>>;

std::string name_of(MemoryCategory category, std::string_view label) {
  return std::string(to_string(category)) + ": " + std::string(label);
}

Buffers listed(std::vector<std::vector<Allocation>> lists) {
  Buffers all;
  for (const std::vector<Allocation>& list : lists)
    for (const Allocation& a : list) {
      if (a.bytes.value == 0) continue;
      auto& [bytes, buffers] = all[name_of(a.category, a.label)];
      bytes += a.pages().value, ++buffers;
    }
  return all;
}

// A refused allocation says what is held.
Buffers held(engine::Arena& arena) {
  Buffers all;
  try {
    arena.allocate({MemoryCategory::runtime, "more than any machine has", Bytes(std::int64_t{1} << 60)});
  } catch (const engine::OutOfMemory& refused) {
    for (const engine::OutOfMemory::Held& h : refused.moment.largest)
      if (h.label != engine::kOverflowBlocks) all[name_of(h.category, h.label)] = {h.bytes.value, h.buffers};
  }
  return all;
}

model::Config small_model(const std::string& family, bool odd = false) {
  constexpr local::Sizes kWholePanels{.vocab = 1024, .dim = 128, .mlp = 256, .head_dim = 32, .window = 24};
  constexpr local::Sizes kOddSizes{.layers = 5, .vocab = 1027, .dim = 122, .mlp = 250, .head_dim = 30, .window = 20};
  return local::small_config(odd ? kOddSizes : kWholePanels, family);
}

struct Rows {
  std::vector<int> ids, targets, positions, segments;
  int rows, len;
  Rows(int r, int l) : rows(r), len(l) {
    for (int i = 0; i < rows * len; ++i) {
      ids.push_back(i * 7 % 1000), targets.push_back(i * 13 % 1000);
      positions.push_back(i % len), segments.push_back(0);
    }
  }
  engine::TokenBatch batch() const {
    return {.rows = rows, .len = len, .ids = ids, .targets = targets, .positions = positions, .segments = segments};
  }
};

class AllocationLists : public testing::TestWithParam<std::string> {};

TEST_P(AllocationLists, HaveEveryBufferOfTraining) {
  int variant = 0;
  for (const bool odd : {false, true})
    for (const WeightType type : {WeightType::f32, WeightType::bf16})
      for (const model::TrainMethod method : {model::TrainMethod::lora, model::TrainMethod::full}) {
        const auto remat = static_cast<model::Remat>(variant++ % 3);
        SCOPED_TRACE(variant);
        engine::Device device(Bytes(0), 2);
        Network network(small_model(GetParam(), odd), device, type);
        network.init_random(1);
        if (method == model::TrainMethod::lora)
          network.add_lora({.rank = 4, .dropout = odd ? 0.1f : 0.0f, .targets = {"q_proj", "v_proj", "down_proj"}}, 1);
        network.set_trainable(method);
        const engine::AdamW optimizer(device, network.parameters(), {});
        const Rows rows(3, 40);
        network.forward_backward(rows.batch(), {.remat = remat, .loss_chunk = 50});
        const engine::ModelWeights& model = network.transformer().weights;
        const engine::ActivationShape shape{.tokens = 120,
                                            .lowest = model.lowest_trained_layer(),
                                            .backward = true,
                                            .full = model.full,
                                            .dropout = model.lora_dropout > 0,
                                            .remat = remat};
        EXPECT_EQ(held(device.arena),
                  listed({engine::model_allocations(model, engine::whole_tensors(model)),
                          engine::allocations(model, engine::step_phase(model, {shape, 120, 50, 40}, 2))}));
      }
}

TEST_P(AllocationLists, HaveEveryBufferOfSamplingAndScoring) {
  for (const bool odd : {false, true})
    for (const WeightType type : {WeightType::f32, WeightType::bf16, WeightType::int8}) {
      SCOPED_TRACE(std::string(model::to_string(type)) + (odd ? ", odd sizes" : ""));
      engine::Device device(Bytes(0), 2);
      Network network(small_model(GetParam(), odd), device, type, engine::NetworkUse::inference);
      network.init_random(1);
      const engine::ModelWeights& model = network.transformer().weights;
      const std::vector<std::vector<int>> prompts(3, std::vector<int>(30, 5));
      Buffers at_end;
      engine::Sampler(network).generate_batch(prompts, {.max_new_tokens = 9}, {}, [&](int row, int) {
        if (row == 2) at_end = held(device.arena);
        return true;
      });
      EXPECT_EQ(at_end, listed({engine::model_allocations(model, engine::whole_tensors(model)),
                                engine::allocations(model, engine::generation_phase(model, {3, 30, 9}, 2))}));
      network.release_step_memory();
      const Rows rows(2, 50);
      const auto scores = engine::Scorer(network).score(rows.batch(), {.chunk = 30, .top_k = 4});
      // Blocks of matrix products stay from sampling; scoring needs the same.
      EXPECT_EQ(held(device.arena),
                listed({engine::model_allocations(model, engine::whole_tensors(model)),
                        engine::allocations(model, engine::scoring_phase(model, {2, 50, 30, 4}, 2))}));
    }
}

TEST_P(AllocationLists, HaveEveryBufferOfAServer) {
  engine::Device device(Bytes(0), 2);
  Network network(small_model(GetParam()), device, WeightType::bf16, engine::NetworkUse::inference);
  network.init_random(1);
  const engine::ModelWeights& model = network.transformer().weights;
  engine::ServingWork work{
      .tokens = 60, .rows = 4, .context = 100, .groups = engine::sequence_groups(model), .adapters = {}};
  for (engine::BlockGroup& group : work.groups) group.blocks = 12;
  engine::ServingEngine server(network, {.groups = work.groups, .tokens = 60, .rows = 4, .context = 100});
  const model::LoraTarget target = network.inventory().lora_targets().front();
  const std::vector<float> a(static_cast<size_t>(8 * target.in)), b(static_cast<size_t>(8 * target.out));
  server.add_adapter(std::vector<engine::AdapterValues>{{target, 8, 1.0f, a, b}});
  work.adapters = {{{target.role, target.layer, 8}}};
  const std::vector<int> prompt(30, 5), blocks{0, 1};
  const std::span<const int> tables[]{blocks, blocks};
  server.step(std::vector<engine::TokenChunk>{{.ids = prompt, .blocks = tables, .adapter = 0}});
  EXPECT_EQ(held(device.arena), listed({engine::model_allocations(model, engine::whole_tensors(model)),
                                        engine::allocations(model, engine::serving_phase(model, work, 2))}));
}

INSTANTIATE_TEST_SUITE_P(Families, AllocationLists, testing::ValuesIn(engine::test::families()));

// Their sizes on a mesh are compared by MeshTruth.
TEST(AllocationListsOfAMesh, HaveEveryLabel) {
  const model::Config config = small_model("gemma3");
  for (const model::TrainMethod method : {model::TrainMethod::lora, model::TrainMethod::full}) {
    const auto created =
        engine::Cluster::create(config, {.mesh = {{{"fsdp", 2}, {"tp", 2}}}, .weights = WeightType::bf16});
    engine::Cluster& cluster = *created;
    cluster.init_random(1);
    if (method == model::TrainMethod::lora) cluster.add_lora({.rank = 4, .targets = {"q_proj", "down_proj"}}, 1);
    cluster.train(method, {});
    const Rows rows(4, 40);
    cluster.forward_backward(rows.batch(), {});
    engine::ModelShape model(config, {.type = WeightType::bf16});
    model.full = method == model::TrainMethod::full;
    const std::vector<engine::ShardShape> none(model.inventory.tensors().size());
    std::set<std::string> labels;
    for (const auto& list : {engine::model_allocations(model, none),
                             {engine::logit_allocation(model, 1)},
                             engine::allocations(model, engine::step_phase(model, {{.backward = true}}, 1))})
      for (const Allocation& a : list) labels.insert(name_of(a.category, a.label));
    for (int d = 0; d < cluster.devices(); ++d)
      for (const auto& [label, size] : held(cluster.device(d).arena))
        EXPECT_TRUE(labels.contains(label)) << "device " << d << ", " << label;
  }
}

}  // namespace
}  // namespace mw::plan
