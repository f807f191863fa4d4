// SPDX-License-Identifier: GPL-3.0-or-later
// Checks of model folders and adapters that need no weights.
#include "core/train/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/rng.h"
#include "core/engine/distributed/cluster.h"
#include "core/mesh/collectives/engine_step.h"
#include "tests/formats/test_files.h"
#include "tests/train/random_model.h"

namespace mw::train {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
const fs::path kModels = MW_FIXTURES;

Problem problem_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& e) {
    return e.problem();
  }
  ADD_FAILURE() << "accepted";
  return {};
}

TEST(LoadModel, RejectsRowsLongerThanContext) {
  const Problem p = problem_of([] {
    load_model({.path = kModels / "gemma3_tiny",
                .tokenizer = {},
                .init = options::Init::random,
                .weights = model::WeightType::f32,
                .capacity = {},
                .threads = 1,
                .seed = 1,
                .context = 65});
  });
  EXPECT_EQ(p.id, "CONTEXT");
  EXPECT_THAT(p.found, HasSubstr("65"));
  EXPECT_THAT(p.expected, HasSubstr("64"));
}

TEST(ReadAdapter, AcceptsOwnModel) {
  for (const char* name : {"gemma2_tiny", "gemma3_tiny", "gemma4_tiny", "gemma4_e_tiny", "gemma4_moe_tiny"})
    EXPECT_FALSE(read_adapter(kModels / name / "lora", kModels / name).modules.empty()) << name;
}

TEST(ReadAdapter, RejectsOtherBaseModel) {
  for (const char* other : {"gemma2_tiny", "gemma3_tiny_gqa", "gemma4_tiny", "gemma4_e_tiny", "gemma4_moe_tiny"}) {
    const Problem p = problem_of([&] { read_adapter(kModels / "gemma3_tiny" / "lora", kModels / other); });
    EXPECT_EQ(p.id, "ADAPTER") << other;
    EXPECT_THAT(p.fix, HasSubstr("base model of this adapter")) << other;
    EXPECT_FALSE(p.place.empty()) << other;
  }
}

TEST(ReadAdapter, RejectsModelWithMoreLayers) {
  Json config = read_json(kModels / "gemma3_tiny" / "config.json");
  config["num_hidden_layers"] = 7;
  config["layer_types"].push_back("full_attention");
  const formats::Scratch folder;
  write_file_atomically(folder / "config.json", config.dump());
  const Problem p = problem_of([&] { read_adapter(kModels / "gemma3_tiny" / "lora", folder.path()); });
  EXPECT_EQ(p.id, "ADAPTER");
  EXPECT_THAT(p.place, HasSubstr("layers.6"));
  EXPECT_THAT(p.fix, HasSubstr("base model of this adapter"));
}

// --- Answers on a mesh ---

class Answers : public testing::TestWithParam<std::string> {
 protected:
  Answers() { test::random_model(GetParam(), folder_.path()); }

  LoadedModel load(const mesh::Mesh& mesh, Bytes capacity = {}) const {
    return load_model({.path = folder_.path(),
                       .tokenizer = fs::path(MW_RESOURCES) / "base-model",
                       .init = options::Init::random,
                       .use = engine::NetworkUse::inference,
                       .capacity = capacity,
                       .threads = 1,
                       .seed = 3,
                       .mesh = mesh,
                       .rules = mesh::engine_rules({})});
  }
  // All projections, with large B, so that the answers differ from those of the base model.
  formats::PeftAdapter adapter() const {
    const options::Lora options{
        .rank = 4,
        .alpha = 8,
        .targets = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}};
    LoadedModel model = load({});
    model.cluster->add_lora(options, 1);
    formats::PeftAdapter adapter = adapter_of(*model.cluster, options, "random");
    std::uint64_t stream = 0;
    for (formats::AdapterModule& module : adapter.modules) {
      const Rng rng{5, stream++};
      for (size_t i = 0; i < module.b.size(); ++i) module.b[i] = 0.3f * rng.normal_at(i);
    }
    return adapter;
  }
  static std::vector<std::vector<int>> ask(LoadedModel& model) {
    const std::vector<std::string> prompts{"Which colour has the ball?", "Who", "Tell me where the kettle is, please."};
    std::vector<std::vector<int>> ids;
    for (const Answer& a : answers(model, prompts, options::ChatFormat::none, {.max_new_tokens = 12}))
      ids.push_back(a.ids);
    return ids;
  }

 private:
  formats::Scratch folder_;
};
INSTANTIATE_TEST_SUITE_P(Families, Answers, testing::ValuesIn(engine::test::families()), engine::test::family_name);

TEST_P(Answers, AreEqualOnEveryMeshWithAndWithoutAdapter) {
  const formats::PeftAdapter tuned = adapter();
  LoadedModel one = load({});
  const auto base = ask(one);
  attach_adapter(tuned, 1, *one.cluster);
  const auto after = ask(one);
  EXPECT_NE(base, after);
  for (const auto& [fsdp, tp] : {std::pair(2, 1), std::pair(1, 2), std::pair(2, 2), std::pair(1, 4), std::pair(4, 2)}) {
    const mesh::Mesh mesh{{{"fsdp", fsdp}, {"tp", tp}}};
    SCOPED_TRACE(mesh::to_text(mesh));
    LoadedModel many = load(mesh);
    ASSERT_EQ(many.cluster->devices(), fsdp * tp);
    EXPECT_EQ(ask(many), base);
    attach_adapter(tuned, 1, *many.cluster);
    EXPECT_EQ(ask(many), after);
    for (int d = 0; d < many.cluster->devices(); ++d) {
      const Ledger held = many.cluster->device(d).arena.use().now;
      EXPECT_GT(held[MemoryCategory::adapters].value, 0);
      for (const MemoryCategory none : {MemoryCategory::gradients, MemoryCategory::optimizer})
        EXPECT_EQ(held[none].value, 0) << "nothing is trained here";
    }
  }
}

TEST_P(Answers, StayWithinDeviceCapacity) {
  const mesh::Mesh mesh{{{"fsdp", 2}, {"tp", 2}}};
  LoadedModel one = load({}), roomy = load(mesh);
  const auto expected = ask(one);
  ask(roomy);
  Bytes most{};
  for (int d = 0; d < 4; ++d) most = std::max(most, roomy.cluster->device(d).arena.use().at_peak.total());
  ASSERT_LT(most, one.cluster->device(0).arena.use().at_peak.total());
  LoadedModel enough = load(mesh, most);
  EXPECT_EQ(ask(enough), expected);
  EXPECT_EQ(problem_of([&] {
              LoadedModel tight = load(mesh, most - Bytes(4096));
              ask(tight);
            }).id,
            "MEMORY");
}

TEST(Trainables, AllocateGradientsOnlyForTraining) {
  model::Config config = engine::test::tiny_config();
  config.vocab = 64;  // in equal parts
  for (const int tp : {1, 2}) {
    const auto created = engine::Cluster::create(config, {.mesh = {{{"tp", tp}}}});
    engine::Cluster& cluster = *created;
    cluster.init_random(1);
    cluster.add_lora({.rank = 2, .targets = {"q_proj"}}, 1);
    std::vector<float> values(static_cast<size_t>(cluster.trained()[0].size));
    cluster.read(0, engine::Cluster::Part::value, values);
    for (const auto part : {engine::Cluster::Part::gradient, engine::Cluster::Part::first_moment})
      EXPECT_EQ(problem_of([&] { cluster.read(0, part, values); }).id, "CLUSTER");
    cluster.train(model::TrainMethod::lora, {});
    EXPECT_NO_THROW(cluster.read(0, engine::Cluster::Part::gradient, values));
  }
}

}  // namespace
}  // namespace mw::train
