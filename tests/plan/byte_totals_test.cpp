// SPDX-License-Identifier: GPL-3.0-or-later
// The predicted memory of many configurations, to the byte, against byte_totals.txt: a change of the engine's layout
// shows up as a difference of that file. MW_WRITE_BYTE_TOTALS=1 writes it anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "core/base/files.h"
#include "core/mesh/collectives/engine_step.h"
#include "core/model/catalogue.h"
#include "tests/engine/families.h"
#include "tests/plan/engine_runs.h"

namespace mw::plan {
namespace {

using model::Remat;
using model::TrainMethod;
using model::WeightType;

struct Totals {
  std::string name;
  MemoryPlan plan;
};

struct Arithmetic {
  const char* name;
  WeightType weights;
};
constexpr Arithmetic kTrained[] = {{"f32", WeightType::f32}, {"bf16", WeightType::bf16}};
constexpr Arithmetic kInferred[] = {{"f32", WeightType::f32}, {"bf16", WeightType::bf16}, {"int8", WeightType::int8}};

constexpr local::Sizes kWholePanels{.layers = 6, .vocab = 4096, .dim = 192, .mlp = 640, .head_dim = 48, .window = 64};
constexpr local::Sizes kOddSizes{.layers = 5, .vocab = 4099, .dim = 186, .mlp = 630, .head_dim = 46, .window = 50};

std::vector<mesh::AdapterShape> adapters(const model::Config& config, int rank, bool all) {
  std::vector<mesh::AdapterShape> lora;
  const model::TensorInventory inventory(config);
  for (const model::LoraTarget& t : inventory.lora_targets())
    if (all || (t.role == model::Role::q_proj && t.layer > 1) || t.role == model::Role::down_proj)
      lora.push_back({t.role, t.layer, t.layer % 2 == 0 ? rank : rank / 2});
  return lora;
}

// `variant` chooses among evaluation, sampling, lengths and chunks, so that neighbouring cases differ in them.
TrainShape train_shape(const model::Config& config, TrainMethod method, const Arithmetic& arithmetic, int variant) {
  TrainShape s{.method = method, .weights = arithmetic.weights};
  if (method == TrainMethod::lora) s.lora = adapters(config, 4 + variant % 3 * 8, variant % 2 == 0);
  s.dropout = method == TrainMethod::lora && variant % 4 == 1;
  s.remat = static_cast<Remat>(variant % 3);
  s.tokens = 40 + 113 * (variant % 7);
  s.loss_tokens = s.tokens - variant % 5 * 7;
  s.longest = static_cast<int>(s.tokens) / (1 + variant % 3);
  s.loss_chunk = variant % 5 == 0 ? 0 : 64 * (variant % 5);
  s.threads = 1 + variant % 4;
  if (variant % 3 == 1) s.evaluation = {s.tokens * (variant % 2 == 0 ? 2 : 1) - 20, s.loss_tokens + 30, s.longest + 9};
  if (variant % 4 >= 2)
    s.prompt_tokens = 30 + variant % 6 * 90, s.generate_tokens = s.prompt_tokens + 25 * (variant % 9);
  return s;
}

void add_training(std::vector<Totals>& all) {
  int variant = 0;
  for (const std::string& family : engine::test::families())
    for (const local::Sizes& sizes : {kWholePanels, kOddSizes})
      for (const TrainMethod method : {TrainMethod::lora, TrainMethod::full})
        for (const Arithmetic& arithmetic : kTrained)
          for (int i = 0; i < (method == TrainMethod::lora ? 2 : 1); ++i, ++variant) {
            const model::Config config = local::small_config(sizes, family);
            all.push_back({"train " + family + " " + std::to_string(variant) + " " + arithmetic.name,
                           predict_train_memory(config, train_shape(config, method, arithmetic, variant))});
          }
  for (const char* id : {"gemma2-9b", "gemma3-270m", "gemma3-27b", "gemma4-e4b", "gemma4-26b-a4b", "gemma4-31b",
                         "llama3.1-8b", "qwen3-32b"})
    for (const Arithmetic& arithmetic : kTrained) {
      const model::Config config = model::catalogue_config(id);
      const TrainMethod method = ++variant % 4 == 0 ? TrainMethod::full : TrainMethod::lora;
      TrainShape shape = train_shape(config, method, arithmetic, variant);
      shape.tokens *= 30, shape.loss_tokens *= 29;
      all.push_back({std::string("train ") + id + " " + std::to_string(variant) + " " + arithmetic.name,
                     predict_train_memory(config, shape)});
    }
}

engine::ServingWork server(const model::Config& config, int variant) {
  engine::ServingWork work{
      .tokens = 20 + 200 * (variant % 3), .rows = 8 + variant, .context = 100 + 70 * variant, .block_size = 16};
  work.groups = {{{}, 40 + variant}, {{}, 20}};
  for (size_t i = 0; i < config.layers.size(); ++i)
    if (config.layers[i].has_k)
      work.groups[config.layers[i].attention == model::Attention::sliding ? 1 : 0].layers.push_back(
          static_cast<int>(i));
  for (int a = 0; a < variant % 3; ++a) work.adapters.push_back(adapters(config, 8 << a, a == 0));
  return work;
}

void add_inference(std::vector<Totals>& all) {
  int variant = 0;
  const auto add = [&](const std::string& name, const model::Config& config, const Arithmetic& arithmetic) {
    InferenceModel model{.weights = arithmetic.weights, .threads = 1 + variant % 3};
    const std::string end = " " + name + " " + std::to_string(variant) + " " + arithmetic.name;
    all.push_back({"serve" + end, predict_memory(config, model, server(config, variant))});
    if (variant % 2 == 0) model.lora = adapters(config, 16, variant % 4 == 0);
    const engine::GenerationWork generation{1 + variant % 5 * 40, 1 + variant % 4 * 60, 1 + variant % 7 * 50};
    all.push_back({"generate" + end, predict_memory(config, model, generation)});
    const engine::ScoringWork scoring{1 + variant % 4, 3 + variant % 3 * 300, variant % 3 * 64, variant % 2 * 10};
    all.push_back({"score" + end, predict_memory(config, model, scoring)});
    ++variant;
  };
  for (const std::string& family : engine::test::families())
    for (const Arithmetic& arithmetic : kInferred)
      add(family, local::small_config(variant % 2 == 0 ? kWholePanels : kOddSizes, family), arithmetic);
  for (const char* id : {"gemma2-2b", "gemma3-1b", "gemma4-e2b", "gemma4-26b-a4b", "llama3.2-3b"})
    add(id, model::catalogue_config(id), kInferred[variant % std::size(kInferred)]);
}

void add_meshes(std::vector<Totals>& all) {
  constexpr local::Sizes kSizes{.layers = 4, .vocab = 1024, .dim = 128, .mlp = 256, .head_dim = 32, .window = 24};
  int variant = 0;
  for (const std::string& family : engine::test::families()) {
    model::Config config = local::small_config(kSizes, family);
    for (model::Layer& l : config.layers) l.heads = 8, l.kv_heads = 4;
    if (config.experts > 0) config.experts = 8;
    for (const mesh::Mesh& mesh : {mesh::Mesh{{{"fsdp", 2}, {"tp", 1}}}, mesh::Mesh{{{"fsdp", 1}, {"tp", 4}}},
                                   mesh::Mesh{{{"fsdp", 2}, {"tp", 2}}}, mesh::Mesh{{{"data", 2}, {"fsdp", 2}}}})
      for (const TrainMethod method : {TrainMethod::lora, TrainMethod::full}) {
        const Arithmetic& arithmetic = kTrained[variant % std::size(kTrained)];
        TrainShape shape = train_shape(config, method, arithmetic, variant);
        shape.threads = 1;
        mesh::ShardingRules rules;
        rules.preset = static_cast<mesh::Preset>(variant % 4);
        const mesh::Placement placement = mesh::place(model::TensorInventory(config), mesh, mesh::engine_rules(rules),
                                                      shape.lora, mesh::ShardingUse::training);
        const mesh::ReshardPlans plans(config, placement, mesh);
        for (const int device : {0, mesh.devices() - 1})
          all.push_back({"mesh " + family + " " + std::to_string(variant) + " " + arithmetic.name + " on " +
                             mesh::to_text(mesh) + ", device " + std::to_string(device),
                         predict_train_memory(config, shape, plans, device)});
        ++variant;
      }
  }
}

std::string text_of(const Ledger& ledger) {
  std::string text;
  for (const Bytes bytes : ledger.bytes) text += " " + std::to_string(bytes.value);
  return text;
}

std::string predicted_totals() {
  std::vector<Totals> all;
  add_training(all);
  add_inference(all);
  add_meshes(all);
  std::string text =
      "# Bytes by category at the peak, and the peak of each category where it is another; see byte_totals_test.cpp.\n";
  for (const auto& [name, plan] : all) {
    text += name + ", " + plan.peak_instant + ":" + text_of(plan.at_peak);
    if (plan.category_peaks != plan.at_peak) text += " |" + text_of(plan.category_peaks);
    text += "\n";
  }
  return text;
}

TEST(ByteTotals, ArePredictedAsRecorded) {
  const std::filesystem::path file = std::filesystem::path(MW_SOURCE_DIR) / "tests/plan/byte_totals.txt";
  const std::string predicted = predicted_totals();
  if (std::getenv("MW_WRITE_BYTE_TOTALS")) write_file_atomically(file, predicted);
  EXPECT_EQ(read_file(file), predicted)
      << "write it anew: MW_WRITE_BYTE_TOTALS=1 build/release/tests/mw_plan_tests --gtest_filter=ByteTotals.*";
}

}  // namespace
}  // namespace mw::plan
