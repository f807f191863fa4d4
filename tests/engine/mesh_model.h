// SPDX-License-Identifier: GPL-3.0-or-later
// Small models whose sizes common meshes divide, and a training run of a few steps on a Cluster.
#pragma once
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/engine/distributed/cluster.h"
#include "core/mesh/collectives/engine_step.h"
#include "tests/engine/families.h"
#include "tests/engine/tiny_model.h"

namespace mw::engine::test {

// Every size but the single KV heads of gemma4 is a multiple of 4.
inline model::Config divisible(std::string_view family) {
  model::Config c = tiny_config();
  c.vocab = 64;
  for (model::Layer& l : c.layers) l.heads = 8, l.kv_heads = 4;
  c = as_family(c, family);
  if (c.experts > 0) c.experts = 4, c.expert_dim = 16;
  if (c.ple_dim > 0) c.ple_dim = 8;
  return c;
}

inline mesh::Mesh grid(int fsdp, int tp, int data = 1) {
  mesh::Mesh mesh{{{"fsdp", fsdp}, {"tp", tp}}};
  if (data > 1) mesh.axes.insert(mesh.axes.begin(), {"data", data});
  return mesh;
}

// Tunix's specs, but a single KV head stays whole where nothing else can.
inline mesh::ShardingRules tunix_rules(const model::Config& config) {
  mesh::ShardingRules rules;
  for (size_t i = 0; i < config.layers.size(); ++i)
    if (config.layers[i].kv_heads == 1)
      rules.overrides.push_back({"layers\\." + std::to_string(i) + "\\.[kv]_proj$", mesh::parse_spec("(-, fsdp, -)")});
  return rules;
}

// Legal, and nobody's choice. Matrices whole in use or over other axes than their block's; and heads and columns whose
// pieces lie on other devices than those that compute with them.
inline std::vector<std::vector<mesh::ShardingRule>> clumsy_specs() {
  return {{{"q_proj$", mesh::parse_spec("(-, fsdp, tp)")},
           {"o_proj$", mesh::parse_spec("((fsdp, tp), -, -)")},
           {"down_proj$", mesh::parse_spec("(-, (tp, fsdp))")},
           {"input_norm$", mesh::parse_spec("(fsdp)")}},
          {{"q_proj$", mesh::parse_spec("((fsdp, tp), -, -)")},
           {"gate_proj$", mesh::parse_spec("(-, (fsdp, tp))")},
           {"(k|v)_proj$", mesh::parse_spec("(-, -, -)")},
           {"embed$", mesh::parse_spec("((fsdp, tp), -)")}}};
}

// No padding, every token with a loss.
inline OwnedBatch full_batch(int rows, int len, int vocab, std::uint64_t seed) {
  OwnedBatch b{rows, len, {}, {}, {}, {}};
  Rng rng{seed};
  for (int i = 0; i < rows * len; ++i) {
    b.ids.push_back(static_cast<int>(rng.below(static_cast<std::uint64_t>(vocab))));
    b.targets.push_back(static_cast<int>(rng.below(static_cast<std::uint64_t>(vocab))));
    b.positions.push_back(i % len);
    b.segments.push_back(0);
  }
  return b;
}

inline WeightSource random_source(std::uint64_t seed, float scale = 0.2f) {
  return {.f32 =
              [seed, scale](size_t index, std::int64_t first, std::span<float> out) {
                const Rng rng{seed, index};
                for (size_t i = 0; i < out.size(); ++i)
                  out[i] = scale * rng.normal_at(static_cast<std::uint64_t>(first) + i);
              },
          .bf16 = {}};
}

struct Kind {  // of training
  model::TrainMethod method;
  bool dora;
  const char* name;
};
inline constexpr Kind kKinds[] = {{model::TrainMethod::lora, false, "LoRA"},
                                  {model::TrainMethod::full, false, "full"},
                                  {model::TrainMethod::lora, true, "DoRA"}};

struct Training {
  mesh::Mesh mesh{};
  mesh::ShardingRules rules{};
  model::TrainMethod method = model::TrainMethod::lora;
  bool dora = false;
  model::WeightType type = model::WeightType::f32;
  model::Remat remat = model::Remat::none;
  int steps = 10, accumulation = 1, rows = 8, len = 12;
  float dropout = 0;
  bool full_rows = true;  // else padded and packed
  float label_smoothing = 0;
  Bytes capacity{};
  // Small where every weight moves: AdamW's first steps go by the sign of gradients that are nothing but rounding.
  // Those of the magnitudes of a head are such, where its norm takes out what they have in common.
  float learning_rate() const { return method == model::TrainMethod::full || dora ? 5e-4f : 3e-3f; }
};

struct Course {
  std::vector<double> losses, norms;
  bool operator==(const Course&) const = default;
};

inline void randomise_adapters(Cluster& cluster, std::uint64_t seed) {  // as those of a Network
  std::uint64_t index = 0;
  for (size_t i = 0; i < cluster.trained().size(); ++i) {
    const Cluster::Trained& t = cluster.trained()[i];
    if (!t.name.ends_with(".lora_b")) continue;
    const Rng rng{seed, index++};
    std::vector<float> b(static_cast<size_t>(t.size));
    for (size_t j = 0; j < b.size(); ++j) b[j] = 0.3f * rng.normal_at(j);
    cluster.write(i, Cluster::Part::value, b);
  }
  cluster.values_written();
}

inline std::unique_ptr<Cluster> cluster_for(const model::Config& config, const Training& t) {
  auto cluster = Cluster::create(config, {.mesh = t.mesh, .rules = t.rules, .weights = t.type, .capacity = t.capacity});
  cluster->load(random_source(3));
  options::Lora lora = all_projections(4, t.dropout);
  lora.dora = t.dora;
  if (t.method == model::TrainMethod::lora) cluster->add_lora(lora, 5);
  cluster->train(t.method, {.weight_decay = 0.01});
  if (t.method == model::TrainMethod::lora) randomise_adapters(*cluster, 6);
  return cluster;
}

inline void step(Cluster& cluster, const Training& t, int number, Course& course, std::stop_token stop = {}) {
  double loss = 0;
  std::int64_t tokens = 0;
  std::vector<OwnedBatch> batches;
  for (int m = 0; m < t.accumulation; ++m) {
    const auto seed = static_cast<std::uint64_t>(number % 2 * 10 + m);
    batches.push_back(t.full_rows ? full_batch(t.rows, t.len, cluster.config().vocab, seed)
                                  : packed_batch(t.rows, t.len, cluster.config().vocab, seed));
    for (const int target : batches.back().targets) tokens += target >= 0;
  }
  StepOptions options{.remat = t.remat, .loss_chunk = 0, .gradient_scale = 1 / static_cast<float>(tokens)};
  options.label_smoothing = t.label_smoothing;
  options.dropout_seed = 9, options.step = static_cast<std::uint64_t>(number);
  cluster.zero_gradients();
  for (const OwnedBatch& batch : batches) {
    loss += cluster.forward_backward(batch, options, stop).sum;
    ++options.micro_batch;
  }
  course.losses.push_back(loss / static_cast<double>(tokens));
  course.norms.push_back(cluster.gradient_norm());
  cluster.update(number, t.learning_rate(), 1.0f, course.norms.back());
}

inline Course course_of(const model::Config& config, const Training& t) {
  const auto cluster = cluster_for(config, t);
  Course course;
  for (int i = 1; i <= t.steps; ++i) step(*cluster, t, i, course);
  return course;
}

inline void expect_close(const Course& found, const Course& expected, model::WeightType type = model::WeightType::f32) {
  ASSERT_EQ(found.losses.size(), expected.losses.size());
  const bool exact = type == model::WeightType::f32;
  for (size_t i = 0; i < found.losses.size(); ++i) {
    EXPECT_NEAR(found.losses[i], expected.losses[i], (exact ? 1e-5 : 3e-3) * expected.losses[i]) << "step " << i + 1;
    if (!exact) continue;
    EXPECT_NEAR(found.norms[i], expected.norms[i], 3e-4 * expected.norms[i]) << "step " << i + 1;
  }
}

// --- What moved ---

using Moves = std::map<std::string, std::int64_t>;  // what: calls

inline std::string text_of(const mesh::Collective& c) {
  return to_string(c.kind) + " over " + c.axis + " (" + std::to_string(c.group) + ") of " + c.tensor + " in the " +
         to_string(c.phase) + ", layer " + std::to_string(c.layer) + ", " + to_string(c.cause) + ", " +
         std::to_string(c.moved.value) + " bytes moved";
}

inline Moves counted(const Cluster& cluster, int device) {
  Moves moves;
  for (const CollectiveTraffic& t : cluster.traffic(device)) moves[text_of(t.what)] += t.what.calls;
  return moves;
}

inline mesh::EngineStep engine_step(const Training& t) {
  return {.work = t.method == model::TrainMethod::full ? mesh::StepKind::train_full : mesh::StepKind::train_lora,
          .weight_bytes = t.type == model::WeightType::bf16 ? 2 : 4,
          .recompute = t.remat == model::Remat::none ? mesh::Recompute::none : mesh::Recompute::layers};
}

// Full rows: every token has a loss.
inline Moves planned(const Cluster& cluster, const Training& t, int device, const mesh::Placement& placement) {
  const mesh::IndexInterval rows = mesh::batch_rows(mesh::batch_slice(t.mesh, device), t.rows);
  const std::int64_t tokens = (rows.end - rows.begin) * t.len;
  const std::vector<mesh::DeviceTokens> micro(static_cast<size_t>(t.accumulation),
                                              mesh::count_device_tokens(tokens, tokens, 0, 4));
  Moves moves;
  const mesh::DeviceCollectives plan(cluster.config(), t.mesh, placement, engine_step(t));
  for (const mesh::Collective& c : plan.of(device, micro)) moves[text_of(c)] += c.calls;
  return moves;
}
inline Moves planned(const Cluster& cluster, const Training& t, int device) {
  return planned(cluster, t, device, cluster.placement());
}

// What staged collectives would move: of pieces of equal size the same.
inline Moves staged(const Cluster& cluster, const Training& t) {
  mesh::StepShape shape = mesh::engine_step(engine_step(t));
  shape.rows = t.rows, shape.tokens = t.len, shape.accumulation = t.accumulation;
  Moves moves;
  for (const mesh::Collective& c : mesh::collectives(cluster.config(), t.mesh, cluster.placement(), shape))
    moves[text_of(c)] += c.calls;
  return moves;
}

}  // namespace mw::engine::test
