// SPDX-License-Identifier: GPL-3.0-or-later
// Training on a mesh is training on one device: the same losses, the planned traffic, nothing left behind.
#include "core/engine/distributed/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/base/error.h"
#include "tests/engine/mesh_model.h"

namespace mw::engine::test {
namespace {

class OnMesh : public ::testing::TestWithParam<std::string> {
 protected:
  const model::Config config = divisible(GetParam());
};
INSTANTIATE_TEST_SUITE_P(Cluster, OnMesh, ::testing::ValuesIn(families()), family_name);

std::vector<mesh::Mesh> meshes() {
  return {grid(2, 1), grid(4, 1), grid(2, 1, 2), grid(1, 2), grid(2, 2), grid(1, 4), grid(4, 2), grid(2, 4)};
}
std::vector<mesh::Mesh> some_meshes() {
  return {grid(2, 1, 2), grid(2, 2), grid(1, 4)};
}

TEST_P(OnMesh, OneDeviceIsTheNetworkBitForBit) {
  for (const Kind& kind : kKinds) {
    const Training t{.method = kind.method, .dora = kind.dora, .steps = 3};
    const auto cluster = cluster_for(config, t);
    Course course;
    for (int i = 1; i <= t.steps; ++i) step(*cluster, t, i, course);
    Device device(Bytes(0), 1);
    Network network(config, device, model::WeightType::f32);
    network.load(random_source(3));
    options::Lora lora = all_projections(4);
    lora.dora = kind.dora;
    if (kind.method == model::TrainMethod::lora) network.add_lora(lora, 5), randomise_adapters(network, 6);
    network.parameters_changed();
    network.set_trainable(kind.method);
    AdamW optimizer(device, network.parameters(), {.weight_decay = 0.01});
    for (int i = 1; i <= t.steps; ++i) {
      const OwnedBatch batch = full_batch(t.rows, t.len, config.vocab, static_cast<std::uint64_t>(i % 2 * 10));
      network.zero_gradients();
      const double loss = network
                              .forward_backward(batch, {.loss_chunk = 0,
                                                        .gradient_scale = 1 / static_cast<float>(t.rows * t.len),
                                                        .dropout_seed = 9,
                                                        .step = static_cast<std::uint64_t>(i)})
                              .sum;
      EXPECT_EQ(course.losses[static_cast<size_t>(i - 1)], loss / (t.rows * t.len));
      const double norm = optimizer.gradient_norm();
      EXPECT_EQ(course.norms[static_cast<size_t>(i - 1)], norm);
      optimizer.step(i, t.learning_rate(), 1.0f, norm);
      network.parameters_changed();
    }
  }
}

TEST_P(OnMesh, LearnsAsOneDevice) {
  for (const Kind& kind : kKinds) {
    Training t{.rules = tunix_rules(config), .method = kind.method, .dora = kind.dora};
    const Course one = course_of(config, t);
    ASSERT_LT(one.losses[9], one.losses[1]) << "the same batch, later";
    for (const mesh::Mesh& mesh : meshes()) {
      SCOPED_TRACE(mesh::to_text(mesh) + ", " + kind.name);
      t.mesh = mesh;
      const Course many = course_of(config, t);
      expect_close(many, one);
      EXPECT_TRUE(course_of(config, t) == many) << "the same bits again";
    }
  }
}

// Tensor by tensor, before an optimizer makes much of little.
TEST_P(OnMesh, GradientsAreThoseOfOneDevice) {
  for (const Kind& kind : kKinds) {
    Training t{.rules = tunix_rules(config), .method = kind.method, .dora = kind.dora, .rows = 8, .full_rows = false};
    const auto gradients = [&] {
      const auto cluster = cluster_for(config, t);
      const OwnedBatch batch = packed_batch(t.rows, t.len, config.vocab);
      cluster->forward_backward(batch, {.gradient_scale = 0.1f});
      cluster->forward_backward(batch, {.gradient_scale = 0.2f, .micro_batch = 1});
      std::map<std::string, std::vector<float>> all;
      for (size_t i = 0; i < cluster->trained().size(); ++i) {
        std::vector<float>& one = all[cluster->trained()[i].name];
        one.resize(static_cast<size_t>(cluster->trained()[i].size));
        cluster->read(i, Cluster::Part::gradient, one);
      }
      return all;
    };
    const auto one = gradients();
    double total = 0;
    for (const auto& [name, values] : one)
      for (const float v : values) total += std::pow(static_cast<double>(v), 2);
    for (const mesh::Mesh& mesh : meshes()) {
      t.mesh = mesh;
      for (const auto& [name, values] : gradients()) {
        double difference = 0, size = 0;
        const std::vector<float>& expected = one.at(name);
        ASSERT_EQ(values.size(), expected.size());
        for (size_t i = 0; i < values.size(); ++i) {
          difference += std::pow(static_cast<double>(values[i]) - static_cast<double>(expected[i]), 2);
          size += std::pow(static_cast<double>(expected[i]), 2);
        }
        EXPECT_GT(size, 0) << name;
        // An expert's scale sums products over all its tokens that nearly cancel.
        const double relative = name.ends_with("per_expert_scale") ? 5e-5 : 2e-5;
        EXPECT_LT(std::sqrt(difference), relative * std::sqrt(size) + 1e-7 * std::sqrt(total))
            << name << " on " << mesh::to_text(mesh);
      }
    }
  }
}

TEST_P(OnMesh, Bf16StaysCloseToOneDevice) {
  model::Config all = config;
  all.experts_per_token = all.experts;  // a rounded score may choose another
  for (const Kind& kind : kKinds) {
    Training t{.rules = tunix_rules(config),
               .method = kind.method,
               .dora = kind.dora,
               .type = model::WeightType::bf16,
               .steps = 5};
    const Course one = course_of(all, t);
    for (const mesh::Mesh& mesh : some_meshes()) {
      t.mesh = mesh;
      expect_close(course_of(all, t), one, t.type);
    }
  }
}

TEST_P(OnMesh, RematAccumulationDropoutAndPaddingChangeNothing) {
  Training t{
      .rules = tunix_rules(config), .steps = 3, .accumulation = 3, .rows = 5, .dropout = 0.2f, .full_rows = false};
  const Course one = course_of(config, t);
  for (const mesh::Mesh& mesh : some_meshes()) {
    SCOPED_TRACE(mesh::to_text(mesh));
    t.mesh = mesh, t.remat = model::Remat::none;
    const Course kept = course_of(config, t);
    expect_close(kept, one);
    for (const model::Remat remat : {model::Remat::block, model::Remat::layer}) {
      t.remat = remat;
      EXPECT_TRUE(course_of(config, t) == kept) << "remat " << static_cast<int>(remat);
    }
  }
}

TEST_P(OnMesh, SmoothsLabelsOverAVocabularyThatIsSplit) {
  for (const model::WeightType type : {model::WeightType::f32, model::WeightType::bf16}) {
    Training t{.rules = tunix_rules(config), .type = type, .steps = 3, .full_rows = false, .label_smoothing = 0.2f};
    model::Config all = config;
    all.experts_per_token = all.experts;  // a rounded score may choose another
    const Course one = course_of(all, t);
    Training plain = t;
    plain.label_smoothing = 0;
    EXPECT_GT(std::abs(course_of(all, plain).losses[0] - one.losses[0]), 1e-4);
    for (const mesh::Mesh& mesh : some_meshes()) {
      SCOPED_TRACE(mesh::to_text(mesh));
      t.mesh = mesh;
      expect_close(course_of(all, t), one, type);
    }
  }
}

TEST_P(OnMesh, RowNormsAreComputedOncePerStep) {
  Training t{.rules = tunix_rules(config), .dora = true, .steps = 3, .accumulation = 3, .rows = 5, .full_rows = false};
  const Course one = course_of(config, t);
  for (const mesh::Mesh& mesh : some_meshes()) {
    SCOPED_TRACE(mesh::to_text(mesh));
    t.mesh = mesh, t.remat = model::Remat::none;
    const Course kept = course_of(config, t);
    expect_close(kept, one);
    for (const model::Remat remat : {model::Remat::block, model::Remat::layer}) {
      t.remat = remat;
      EXPECT_TRUE(course_of(config, t) == kept) << "remat " << static_cast<int>(remat);
    }
  }
}

// Evaluations after an update and after a cancelled step see the norms of the present values.
TEST_P(OnMesh, RowNormsFollowTheValues) {
  Training t{.rules = tunix_rules(config), .dora = true};
  const OwnedBatch batch = full_batch(4, 8, config.vocab, 1);
  const auto losses = [&] {
    const auto cluster = cluster_for(config, t);
    Course course;
    std::vector<double> all{cluster->evaluate(batch, {}).sum};
    for (int i = 1; i <= 3; ++i) {
      step(*cluster, t, i, course);
      all.push_back(cluster->evaluate(batch, {}).sum);
    }
    Rng rng{1};
    for (int i = 0; i < 20 && cluster->devices() > 1; ++i) {
      std::stop_source stop;
      std::jthread canceller([&, after = rng.below(1000)] {
        std::this_thread::sleep_for(std::chrono::microseconds(after));
        stop.request_stop();
      });
      try {
        cluster->zero_gradients();
        cluster->forward_backward(batch, {}, stop.get_token());
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), Error::Kind::cancelled) << error.what();
      }
      canceller.join();
      EXPECT_EQ(cluster->evaluate(batch, {}).sum, all.back());
    }
    return all;
  };
  const std::vector<double> one = losses();
  for (const mesh::Mesh& mesh : some_meshes()) {
    t.mesh = mesh;
    const std::vector<double> many = losses();
    for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(many[i], one[i], 1e-5 * one[i]) << mesh::to_text(mesh);
  }
}

TEST_P(OnMesh, DevicesWithoutRowsOrLossTokensTakePart) {
  for (const Kind& kind : kKinds) {
    Training t{.rules = tunix_rules(config), .method = kind.method, .dora = kind.dora, .steps = 3, .rows = 1};
    const Course one = course_of(config, t);
    for (const mesh::Mesh& mesh : {grid(2, 2), grid(4, 1)}) {
      t.mesh = mesh;
      expect_close(course_of(config, t), one);
    }
    const auto cluster = cluster_for(config, t);
    OwnedBatch silent = full_batch(4, 8, config.vocab, 1);
    std::fill(silent.targets.begin() + 8, silent.targets.end(), -1);  // only the first device's row has a loss
    const LossSum many = cluster->forward_backward(silent, {});
    t.mesh = {};
    const auto alone = cluster_for(config, t);
    const LossSum expected = alone->forward_backward(silent, {});
    EXPECT_EQ(many.tokens, 8);
    EXPECT_NEAR(many.sum, expected.sum, 1e-5 * expected.sum);
    EXPECT_NEAR(cluster->gradient_norm(), alone->gradient_norm(), 1e-4 * alone->gradient_norm());
  }
}

// PyTorch's FSDP2: rows as they come, the last pieces smaller or empty.
TEST_P(OnMesh, UnevenPiecesAreWholeInUse) {
  const model::Config uneven = as_family(tiny_config(), GetParam());
  for (const Kind& kind : kKinds) {
    Training t{
        .rules = {.preset = mesh::Preset::fsdp}, .method = kind.method, .dora = kind.dora, .steps = 4, .rows = 7};
    const Course one = course_of(uneven, t);
    for (const int fsdp : {3, 5}) {
      t.mesh = grid(fsdp, 1);
      SCOPED_TRACE(fsdp);
      expect_close(course_of(uneven, t), one);
    }
  }
}

// vLLM's: nothing over fsdp, KV heads repeat where tp is larger, the vocabulary is padded.
TEST_P(OnMesh, RepeatedHeadsAndAPaddedVocabularyAreWholeInUse) {
  model::Config c = tiny_config();
  for (model::Layer& l : c.layers) l.heads = 8;
  c = as_family(c, GetParam());
  if (c.experts > 0) c.expert_dim = 20;
  for (const Kind& kind : kKinds)
    for (const model::WeightType type : {model::WeightType::f32, model::WeightType::bf16}) {
      c.experts_per_token = type == model::WeightType::bf16 ? c.experts : std::min(2, c.experts);
      Training t{.rules = {.preset = mesh::Preset::megatron},
                 .method = kind.method,
                 .dora = kind.dora,
                 .type = type,
                 .steps = 4};
      const Course one = course_of(c, t);
      for (const mesh::Mesh& mesh : {grid(1, 2), grid(1, 4), grid(2, 4)}) {
        t.mesh = mesh;
        SCOPED_TRACE(mesh::to_text(mesh));
        expect_close(course_of(c, t), one, type);
      }
    }
}

TEST_P(OnMesh, ClumsySpecsAreRight) {
  for (const Kind& kind : kKinds) {
    Training t{.rules = tunix_rules(config), .method = kind.method, .dora = kind.dora, .steps = 3};
    const Course one = course_of(config, t);
    const std::vector<mesh::ShardingRule> presets = t.rules.overrides;
    t.mesh = grid(2, 2);
    for (const std::vector<mesh::ShardingRule>& clumsy : clumsy_specs()) {
      t.rules.overrides = clumsy;
      t.rules.overrides.insert(t.rules.overrides.end(), presets.begin(), presets.end());
      expect_close(course_of(config, t), one);
    }
  }
}

TEST_P(OnMesh, StartsWithTheSameValues) {
  options::Lora dora = all_projections(4);
  dora.dora = true;
  for (const model::WeightType type : {model::WeightType::f32, model::WeightType::bf16}) {
    const mesh::ShardingRules rules = tunix_rules(config);
    const auto single = Cluster::create(config, {.weights = type}),
               sharded = Cluster::create(config, {.mesh = grid(2, 2), .rules = rules, .weights = type});
    Cluster &one = *single, &many = *sharded;
    for (Cluster* c : {&one, &many}) {
      c->init_random(7);
      c->add_lora(dora, 8);
      c->train(model::TrainMethod::lora, {});
    }
    for (size_t i = 0; i < one.inventory().tensors().size(); ++i) {
      const auto count = static_cast<size_t>(one.inventory().tensors()[i].elements());
      std::vector<float> a(count), b(count);
      one.read_weight(i, a), many.read_weight(i, b);
      EXPECT_EQ(a, b) << one.inventory().tensors()[i].name;
    }
    ASSERT_EQ(one.trained().size(), many.trained().size());
    for (size_t i = 0; i < one.trained().size(); ++i) {
      EXPECT_EQ(one.trained()[i].name, many.trained()[i].name);
      EXPECT_EQ(one.trained()[i].size, many.trained()[i].size);
      const auto count = static_cast<size_t>(one.trained()[i].size);
      std::vector<float> a(count), b(count);
      one.read(i, Cluster::Part::value, a), many.read(i, Cluster::Part::value, b);
      EXPECT_EQ(a, b) << one.trained()[i].name;
    }
  }
}

// As a checkpoint does: whole tensors out of one mesh, into another.
TEST_P(OnMesh, GoesOnOnAnotherMesh) {
  for (const Kind& kind : kKinds)
    for (const model::WeightType type : {model::WeightType::f32, model::WeightType::bf16}) {
      Training t{.rules = tunix_rules(config), .method = kind.method, .dora = kind.dora, .type = type};
      const auto one = cluster_for(config, t);
      t.mesh = grid(2, 1);
      const auto two = cluster_for(config, t);
      t.mesh = grid(2, 2);
      const auto four = cluster_for(config, t);
      Course there, here;
      step(*two, t, 1, there);
      for (const auto* other : {&one, &four}) {
        for (size_t i = 0; i < two->trained().size(); ++i)
          for (const Cluster::Part part :
               {Cluster::Part::value, Cluster::Part::first_moment, Cluster::Part::second_moment}) {
            std::vector<float> whole(static_cast<size_t>(two->trained()[i].size)), back(whole.size());
            two->read(i, part, whole);
            (*other)->write(i, part, whole);
            (*other)->read(i, part, back);
            ASSERT_EQ(back, whole) << two->trained()[i].name;
          }
        (*other)->values_written();
        for (size_t i = 0; i < two->inventory().tensors().size(); ++i) {
          std::vector<float> a(static_cast<size_t>(two->inventory().tensors()[i].elements())), b(a.size());
          two->read_weight(i, a), (*other)->read_weight(i, b);
          ASSERT_EQ(a, b) << two->inventory().tensors()[i].name;
        }
      }
      step(*two, t, 2, there);
      for (const auto* other : {&one, &four}) {
        here = {{there.losses[0]}, {there.norms[0]}};
        step(**other, t, 2, here);
        expect_close(here, there, type);
      }
    }
}

TEST_P(OnMesh, AnswersAsOneDevice) {
  std::vector<std::vector<int>> prompts;
  for (int i = 0; i < 5; ++i) prompts.push_back({1 + i, 7, 3 * i + 2});
  for (const float temperature : {0.0f, 1.0f}) {
    const options::SampleOptions sample{.max_new_tokens = 6, .temperature = temperature, .seed = 4};
    Training t{.rules = tunix_rules(config)};
    const auto expected = cluster_for(config, t)->generate_batch(prompts, sample);
    for (const mesh::Mesh& mesh : some_meshes()) {
      t.mesh = mesh;
      EXPECT_EQ(cluster_for(config, t)->generate_batch(prompts, sample), expected) << mesh::to_text(mesh);
    }
  }
}

// --- What goes wrong ---

std::string text_of_error(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.problem().id + ": " + to_text(error.problem());
  }
  return "no error";
}

TEST(ClusterErrors, BadMeshesAndSpecsAreRefused) {
  const model::Config config = divisible("gemma3");
  const auto made = [&](const mesh::Mesh& mesh, const mesh::ShardingRules& rules = {},
                        model::WeightType type = model::WeightType::f32) {
    return text_of_error([&] { Cluster::create(config, {.mesh = mesh, .rules = rules, .weights = type}); });
  };
  EXPECT_THAT(made(grid(5, 1)), ::testing::HasSubstr("FSDP-1"));
  EXPECT_THAT(made(grid(1, 5)), ::testing::HasSubstr("TP-1"));
  EXPECT_THAT(made(grid(8, 16)), ::testing::HasSubstr("MESH-SIZE"));
  EXPECT_THAT(made(grid(2, 1), {}, model::WeightType::int8), ::testing::HasSubstr("DTYPE"));
  EXPECT_THAT(made(grid(2, 1), {.overrides = {{"q_proj", mesh::parse_spec("(expert, -, -)")}}}),
              ::testing::HasSubstr("SPEC-AXIS"));
}

TEST(ClusterErrors, DamagedWeightsAreNamed) {
  const model::Config config = divisible("gemma3");
  const auto created = Cluster::create(config, {.mesh = grid(2, 1)});
  Cluster& cluster = *created;
  WeightSource source = random_source(1);
  source.f32 = [&, good = source.f32](size_t index, std::int64_t first, std::span<float> out) {
    good(index, first, out);
    if (index == 3) out[17] = std::nanf("");
  };
  EXPECT_THAT(text_of_error([&] { cluster.load(source); }),
              ::testing::AllOf(::testing::HasSubstr("WEIGHTS"), ::testing::HasSubstr("element 17"),
                               ::testing::HasSubstr(cluster.inventory().tensors()[3].hf_name)));
}

void release_step_memory(Cluster& cluster) {
  for (int d = 0; d < cluster.devices(); ++d) cluster.network(d).release_step_memory();
}

std::int64_t held(Cluster& cluster) {
  std::int64_t bytes = 0;
  for (int d = 0; d < cluster.devices(); ++d) bytes += cluster.device(d).arena.use().now.total().value;
  return bytes;
}

long threads_of_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

// One row over four devices: only the first needs room for its activations.
TEST(ClusterErrors, OneDeviceOutOfMemoryEndsInOneError) {
  const model::Config config = divisible("gemma3");
  Training t{.mesh = grid(4, 1), .steps = 2, .rows = 1, .len = 100};
  const auto roomy = cluster_for(config, t);
  Course course;
  step(*roomy, t, 1, course);
  const auto peak = [&](int device) { return roomy->device(device).arena.use().at_peak.total().value; };
  ASSERT_GT(peak(0), peak(3));
  t.capacity = Bytes(peak(0) - (16 << 10));
  const auto tight = cluster_for(config, t);
  const std::int64_t idle = held(*tight);
  for (int i = 0; i < 3; ++i)
    EXPECT_THAT(text_of_error([&] { step(*tight, t, 1, course); }),
                ::testing::AllOf(::testing::HasSubstr("MEMORY"), ::testing::HasSubstr("device 0 (fsdp 0, tp 0)")));
  release_step_memory(*tight);
  EXPECT_EQ(held(*tight), idle);
  t.len = 10;
  Course small, expected;
  step(*tight, t, 1, small);
  t.capacity = {};
  step(*cluster_for(config, t), t, 1, expected);
  EXPECT_TRUE(small == expected);
}

TEST(ClusterErrors, TooSmallADeviceIsSaidAtTheStart) {
  const model::Config config = divisible("gemma3");
  EXPECT_THAT(text_of_error([&] { Cluster::create(config, {.mesh = grid(2, 1), .capacity = Bytes(8192)}); }),
              ::testing::AllOf(::testing::HasSubstr("MEMORY"), ::testing::HasSubstr("device 0")));
}

TEST(ClusterErrors, AThousandStartsAndCancelsLeaveNothing) {
  const model::Config config = divisible("gemma3");
  const Training t{.mesh = grid(2, 1, 2), .steps = 1};
  const Course expected = course_of(config, t);
  const long threads = threads_of_process();
  std::unique_ptr<Cluster> cluster;
  std::int64_t idle = 0;
  Rng rng{1};
  int cancelled = 0;
  for (int i = 0; i < 1000; ++i) {
    if (i % 50 == 0) {
      cluster = cluster_for(config, t);
      idle = held(*cluster);
    }
    std::stop_source stop;
    Course ignored;
    std::jthread canceller([&, after = rng.below(3000)] {
      std::this_thread::sleep_for(std::chrono::microseconds(after));
      stop.request_stop();
    });
    try {
      // As a step, but for the update: the weights stay as they are.
      const OwnedBatch batch = full_batch(t.rows, t.len, config.vocab, 1);
      cluster->zero_gradients();
      cluster->forward_backward(batch, {.remat = model::Remat::layer}, stop.get_token());
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), Error::Kind::cancelled) << error.what();
      ++cancelled;
    }
    canceller.join();
    if (i % 50 != 49) continue;
    release_step_memory(*cluster);
    EXPECT_EQ(held(*cluster), idle);
    Course course;
    step(*cluster, t, 1, course);
    EXPECT_TRUE(course == expected) << "round " << i;
  }
  EXPECT_GT(cancelled, 0);
  cluster.reset();
  EXPECT_EQ(threads_of_process(), threads);
}

}  // namespace
}  // namespace mw::engine::test
