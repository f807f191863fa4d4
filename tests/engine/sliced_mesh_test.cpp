// SPDX-License-Identifier: GPL-3.0-or-later
// Devices that compute their parts of a model together make what one device makes.
#include "core/base/error.h"
#include "tests/engine/sliced_mesh_model.h"

namespace mw::engine::test {
namespace {

mesh::Mesh tp(int n) {
  return {{{"tp", n}}};
}
mesh::Mesh two(int fsdp, int n) {
  return {{{"fsdp", fsdp}, {"tp", n}}};
}

void expect_close(const MeshModel::Outcome& whole, const MeshModel::Outcome& parts, double loss, double gradient,
                  double worst) {
  ASSERT_GT(whole.loss, 0);
  EXPECT_EQ(whole.tokens, parts.tokens);
  EXPECT_NEAR(parts.loss, whole.loss, loss * whole.loss);
  const Distance apart = distance(whole, parts);
  EXPECT_LT(apart.all, gradient);
  EXPECT_LT(apart.worst, worst) << apart.where;
}

class MeshFamilies : public ::testing::TestWithParam<std::string> {
 protected:
  const model::Config config = cut_evenly(GetParam());
  const OwnedBatch batch = packed_batch(3, 20, 61);
};
INSTANTIATE_TEST_SUITE_P(Mesh, MeshFamilies, ::testing::ValuesIn(families()), family_name);

TEST_P(MeshFamilies, PartsOfHeadsColumnsAndVocabularyMakeTheLossAndGradientsOfTheWhole) {
  for (const model::TrainMethod method : {model::TrainMethod::lora, model::TrainMethod::full}) {
    const Trial trial{.method = method, .dropout = method == model::TrainMethod::lora ? 0.2f : 0.0f};
    const MeshModel::Outcome whole = WholeModel(config, trial).step(batch);
    for (const int n : {2, 4}) {
      SCOPED_TRACE((method == model::TrainMethod::lora ? "LoRA, tp " : "full, tp ") + std::to_string(n));
      MeshModel parts(config, tp(n), trial);
      const MeshModel::Outcome out = parts.step(batch);
      expect_close(whole, out, 1e-6, 1e-5, 1e-5);
      EXPECT_TRUE(MeshModel(config, tp(n), trial).step(batch) == out) << "the same bits again";
    }
  }
}

TEST_P(MeshFamilies, RowsSplitOverTheBatchKeepTheirDropoutAndTheirLoss) {
  const Trial trial{.dropout = 0.3f};
  const OwnedBatch rows = packed_batch(5, 12, 61);
  const MeshModel::Outcome whole = WholeModel(config, trial).step(rows);
  for (const mesh::Mesh& mesh : {two(2, 2), two(4, 1), two(4, 2)}) {  // of five rows the fourth device has none
    SCOPED_TRACE(mesh::to_text(mesh));
    expect_close(whole, MeshModel(config, mesh, trial).step(rows), 1e-6, 1e-5, 1e-5);
  }
}

TEST_P(MeshFamilies, RecomputingMakesTheSameBits) {
  for (const model::TrainMethod method : {model::TrainMethod::lora, model::TrainMethod::full}) {
    Trial trial{.method = method, .dropout = method == model::TrainMethod::lora ? 0.2f : 0.0f};
    const MeshModel::Outcome kept = MeshModel(config, tp(2), trial).step(batch);
    for (const model::Remat remat : {model::Remat::block, model::Remat::layer}) {
      trial.step.remat = remat;
      EXPECT_TRUE(MeshModel(config, tp(2), trial).step(batch) == kept) << static_cast<int>(remat);
    }
  }
}

TEST_P(MeshFamilies, LogitsOfSomeRowsAtATimeMakeTheSameLoss) {
  Trial trial;
  trial.step.loss_chunk = 0;
  const MeshModel::Outcome whole = WholeModel(config, trial).step(batch);
  for (const int chunk : {0, 1, 9}) {
    trial.step.loss_chunk = chunk;
    expect_close(whole, MeshModel(config, tp(4), trial).step(batch), 1e-6, 1e-5, 1e-5);
  }
}

TEST_P(MeshFamilies, EveryCollectiveMovesWhatThePlanSays) {
  for (const model::TrainMethod method : {model::TrainMethod::lora, model::TrainMethod::full})
    for (const model::Remat remat : {model::Remat::none, model::Remat::block, model::Remat::layer})
      for (const mesh::Mesh& mesh : {tp(4), two(2, 2)}) {
        SCOPED_TRACE(mesh::to_text(mesh) + ", remat " + std::to_string(static_cast<int>(remat)));
        Trial trial{.method = method};
        trial.step.remat = remat;
        MeshModel parts(config, mesh, trial);
        parts.step(batch);
        const mesh::StepShape step{
            .work = method == model::TrainMethod::lora ? mesh::StepKind::train_lora : mesh::StepKind::train_full,
            .recompute = remat == model::Remat::none ? mesh::Recompute::none : mesh::Recompute::layers};
        for (int d = 0; d < mesh.devices(); ++d) {
          const MeshModel::Bill planned = parts.planned(d, batch, step);
          EXPECT_FALSE(planned.empty());
          EXPECT_EQ(parts.counted(d), planned) << "device " << d;
        }
        parts.clear_traffic();
        parts.step(batch, StepGoal::loss);
        EXPECT_EQ(parts.counted(0), parts.planned(0, batch, {.work = mesh::StepKind::forward}));
      }
}

// The lowest layer that learns passes nothing on; layers below have no backward at all.
TEST_P(MeshFamilies, AdaptersOfSomeProjectionsMoveWhatThePlanSaysAndLearnTheSame) {
  for (const char* target : {"down_proj", "v_proj", "k_proj"}) {
    SCOPED_TRACE(target);
    Trial trial{.targets = {target}};
    if (config.family == model::Family::gemma4) trial.targets.push_back("o_proj");
    MeshModel parts(config, tp(2), trial);
    expect_close(WholeModel(config, trial).step(batch), parts.step(batch), 1e-6, 1e-5, 1e-5);
    EXPECT_EQ(parts.counted(1), parts.planned(1, batch, {.recompute = mesh::Recompute::none}));
  }
}

TEST_P(MeshFamilies, SamplesAreThoseOfOneDevice) {
  const std::vector<std::vector<int>> prompts{
      {2}, {2, 9, 33, 41, 7, 7, 12}, {2, 5, 5, 60}, {2, 1, 17, 29, 3, 44, 8, 8, 8, 21, 50, 0, 13}, {2, 58}};
  const Trial trial;
  WholeModel whole(config, trial);
  for (const float temperature : {0.0f, 1.1f}) {
    options::SampleOptions options{.max_new_tokens = 12, .temperature = temperature, .top_p = 0.95f, .seed = 11};
    const auto first = Sampler(whole.network()).generate_batch(prompts, options);
    options.stop_ids = {first[1][3], first[3][5]};  // rows end at different times
    const auto expected = Sampler(whole.network()).generate_batch(prompts, options);
    for (const mesh::Mesh& mesh : {tp(2), tp(4), two(2, 2), two(4, 2)}) {
      SCOPED_TRACE(mesh::to_text(mesh));
      EXPECT_EQ(MeshModel(config, mesh, trial).generate(prompts, options), expected);
    }
  }
}

TEST_P(MeshFamilies, SamplingMovesWhatThePlanSays) {
  const std::vector<std::vector<int>> prompts{{2, 9, 33, 41}, {2, 5, 5, 60}};
  MeshModel parts(config, tp(4), {});
  parts.generate(prompts, {.max_new_tokens = 1});
  EXPECT_EQ(parts.counted(3), parts.planned({.work = mesh::StepKind::decode, .device_tokens = 8, .device_logits = 2}));
  parts.clear_traffic();
  parts.generate(prompts, {.max_new_tokens = 2});
  MeshModel::Bill both = parts.planned({.work = mesh::StepKind::decode, .device_tokens = 8, .device_logits = 2});
  for (const auto& [what, bytes] : parts.planned({.work = mesh::StepKind::decode, .rows = 2})) both[what] += bytes;
  EXPECT_EQ(parts.counted(0), both);
}

TEST_P(MeshFamilies, LogitsAreThoseOfTheWholeVocabularyWithoutItsPadding) {
  const Trial trial;
  WholeModel whole(config, trial);
  std::vector<float> expected(batch.ids.size() * 61);
  whole.network().logits(batch, expected);
  const std::vector<float> out = MeshModel(config, tp(4), trial).logits(batch);
  for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], expected[i], 2e-5f) << i;
}

// --- bf16: panels where they fit, and the loss that streams its logits ---

model::Config wide(const std::string& family, int vocab) {
  model::Config c = tiny_config();
  c.dim = 64, c.vocab = vocab;
  for (model::Layer& l : c.layers) l.head_dim = 32, l.mlp_dim = 128;
  c = as_family(c, family);
  if (c.experts > 0) c.expert_dim = 64;
  if (c.ple_dim > 0) c.ple_dim = 64;
  return c;
}

TEST_P(MeshFamilies, PackedWeightsInPartsAreCloseToTheWhole) {
  // Panels whole and in parts; of 2047 rows in two parts the last has a row of padding, in its second stripe.
  for (const auto& [vocab, n] : {std::pair{2048, 2}, std::pair{2048, 4}, std::pair{2047, 2}})
    for (const model::TrainMethod method : {model::TrainMethod::lora, model::TrainMethod::full}) {
      SCOPED_TRACE(std::to_string(vocab) + " rows, tp " + std::to_string(n));
      model::Config wider = wide(GetParam(), vocab);
      if (wider.experts > 0) wider.experts_per_token = wider.experts;  // a rounded score may choose another
      const Trial trial{.type = model::WeightType::bf16, .method = method, .scale = 0.06f};
      const OwnedBatch rows = packed_batch(2, 24, vocab);
      const MeshModel::Outcome whole = WholeModel(wider, trial).step(rows);
      const MeshModel::Outcome out = MeshModel(wider, tp(n), trial).step(rows);
      expect_close(whole, out, 1e-3, 6e-2, 1e-1);
      EXPECT_TRUE(MeshModel(wider, tp(n), trial).step(rows) == out) << "the same bits again";
    }
}

// --- Query heads that share KV heads in every way ---

struct HeadsCase {
  int heads, kv_heads, devices;
  bool whole_keys;  // k and v on every device; else as vLLM lays them
};

TEST(MeshHeads, QueryHeadsReadTheirKvHeadWhereverTheMeshCuts) {
  const HeadsCase cases[]{{6, 3, 2, true},  {6, 2, 3, true},  {8, 2, 4, false}, {8, 1, 4, false},
                          {8, 2, 8, false}, {4, 4, 2, false}, {12, 4, 6, true}};
  for (const HeadsCase& c : cases) {
    SCOPED_TRACE(std::to_string(c.heads) + " heads, " + std::to_string(c.kv_heads) + " KV heads, tp " +
                 std::to_string(c.devices));
    model::Config config = tiny_config();
    config.dim = 24;
    for (model::Layer& l : config.layers) l.heads = c.heads, l.kv_heads = c.kv_heads, l.mlp_dim = 48;
    mesh::ShardingRules rules{.preset = mesh::Preset::megatron};
    if (c.whole_keys) rules.overrides = {{"k_proj|v_proj", mesh::parse_spec("(-, -, -)")}};
    for (const model::TrainMethod method : {model::TrainMethod::lora, model::TrainMethod::full}) {
      const Trial trial{.method = method};
      const OwnedBatch batch = packed_batch(2, 16, 61);
      expect_close(WholeModel(config, trial).step(batch), MeshModel(config, tp(c.devices), trial, rules).step(batch),
                   1e-6, 1e-5, 1e-5);
    }
    const Trial trial;
    WholeModel whole(config, trial);
    const std::vector<std::vector<int>> prompts{{2, 9, 33}, {2, 5, 5, 60, 7, 8, 9}};
    EXPECT_EQ(MeshModel(config, tp(c.devices), trial, rules).generate(prompts, {.max_new_tokens = 10}),
              Sampler(whole.network()).generate_batch(prompts, {.max_new_tokens = 10}));
  }
}

TEST(MeshHeads, TwoModelAxesSplitHeadsAndVocabularyBetweenThem) {
  const model::Config config = cut_evenly("gemma3");
  mesh::ShardingRules rules{.preset = mesh::Preset::replicated};
  rules.overrides = {{"q_proj", mesh::parse_spec("((a, b), -, -)")}, {"k_proj|v_proj", mesh::parse_spec("(a, -, -)")},
                     {"o_proj", mesh::parse_spec("((a, b), -, -)")}, {"gate_proj|up_proj", mesh::parse_spec("(-, b)")},
                     {"down_proj", mesh::parse_spec("(b, -)")},      {"embed$", mesh::parse_spec("((b, a), -)")}};
  model::Config even = config;
  even.vocab = 64;
  const mesh::Mesh mesh{{{"a", 2}, {"b", 2}}};
  const OwnedBatch batch = packed_batch(2, 16, 61);
  for (const model::TrainMethod method : {model::TrainMethod::lora, model::TrainMethod::full}) {
    const Trial trial{.method = method};
    MeshModel parts(even, mesh, trial, rules);
    expect_close(WholeModel(even, trial).step(batch), parts.step(batch), 1e-6, 1e-5, 1e-5);
  }
  const Trial trial;
  WholeModel whole(even, trial);
  EXPECT_EQ(MeshModel(even, mesh, trial, rules).generate({{2, 9, 33}}, {.max_new_tokens = 10}),
            Sampler(whole.network()).generate_batch(std::vector<std::vector<int>>{{2, 9, 33}}, {.max_new_tokens = 10}));
}

TEST(MeshHeads, PartsThatDoNotMeetAreRefusedInOneSentence) {
  const auto refused = [](const model::Config& config, const mesh::Mesh& mesh, const mesh::ShardingRules& rules) {
    const model::TensorInventory whole(config);
    const mesh::Placement placement = mesh::place(whole, mesh, rules, {}, mesh::ShardingUse::training);
    const mesh::ComputeSharding form(mesh, placement, {});
    try {
      mesh::local_config(config, form, placement, mesh, 1);
    } catch (const Error& e) {
      return e.problem().message;
    }
    return std::string();
  };
  mesh::ShardingRules crossed{.preset = mesh::Preset::replicated};
  crossed.overrides = {{"q_proj", mesh::parse_spec("((a, b), -, -)")}, {"o_proj", mesh::parse_spec("((b, a), -, -)")}};
  EXPECT_EQ(refused(cut_evenly("gemma3"), {{{"a", 2}, {"b", 2}}}, crossed),
            "its parts lie on other devices than those of the block they are used with");
  mesh::ShardingRules lent{.preset = mesh::Preset::megatron};
  lent.overrides = {{"layers.3.q_proj", mesh::parse_spec("(-, -, -)")}};
  EXPECT_EQ(refused(cut_evenly("gemma4_e"), tp(2), lent),
            "a layer that borrows keys and values splits its heads differently from the layer that computes them");
  mesh::ShardingRules uneven{.preset = mesh::Preset::megatron};
  uneven.overrides = {{"layers.1.moe.gating_einsum", mesh::parse_spec("(-, -, -, -)")}};
  EXPECT_EQ(refused(cut_evenly("gemma4_moe"), tp(2), uneven), "layers split this tensor in different ways");
}

}  // namespace
}  // namespace mw::engine::test
