// SPDX-License-Identifier: GPL-3.0-or-later
// Mesh truth: for training steps on meshes of virtual devices, of every architecture, the predicted ledger of every
// device is within 2 % of the measured one in every category, and most are equal to the byte.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <string>

#include "core/engine/distributed/cluster.h"
#include "core/engine/kernels/packed.h"
#include "core/mesh/collectives/engine_step.h"
#include "tests/engine/families.h"
#include "tests/plan/engine_runs.h"

namespace mw::plan {
namespace {

// Heads, columns, experts and the vocabulary divide by every mesh below.
model::Config config_of(const std::string& family) {
  constexpr local::Sizes kSizes{.layers = 4, .vocab = 1024, .dim = 128, .mlp = 256, .head_dim = 32, .window = 24};
  model::Config c = local::small_config(kSizes, family);
  for (model::Layer& l : c.layers) l.heads = 8, l.kv_heads = 4;
  if (c.experts > 0) c.experts = 8;
  return c;
}

struct Trained {
  std::string family;
  mesh::Mesh mesh;
  model::TrainMethod method = model::TrainMethod::lora;
  model::WeightType weights = model::WeightType::f32;
  model::Remat remat = model::Remat::none;
  int rows = 4, len = 40, loss_per_row = 24, chunk = 64;
  mesh::ShardingRules rules{};
  float dropout = 0;
  bool dora = false;
  std::string name() const {
    return family + " on " + mesh::to_text(mesh) +
           (method == model::TrainMethod::full ? ", full"
            : dora                             ? ", DoRA"
                                               : ", LoRA") +
           (weights == model::WeightType::bf16 ? ", bf16" : ", f32") + ", remat " +
           std::to_string(static_cast<int>(remat)) + ", " + std::to_string(rows) + " rows";
  }
};

mesh::Mesh two(int fsdp, int tp) {
  return {{{"fsdp", fsdp}, {"tp", tp}}};
}

std::vector<Trained> mesh_runs() {
  std::vector<Trained> cases;
  for (const char* family : {"gemma3", "gemma4", "gemma4_e", "gemma4_moe"})
    for (const mesh::Mesh& mesh : {two(2, 1), two(1, 2), two(2, 2), two(1, 4), two(4, 2), two(2, 4)}) {
      cases.push_back({.family = family, .mesh = mesh});
      cases.push_back({.family = family,
                       .mesh = mesh,
                       .weights = model::WeightType::bf16,
                       .remat = model::Remat::layer,
                       .chunk = 0,
                       .dropout = 0.1f});
      cases.push_back(
          {.family = family, .mesh = mesh, .method = model::TrainMethod::full, .remat = model::Remat::block});
      cases.push_back({.family = family, .mesh = mesh, .remat = model::Remat::block, .dora = true});
    }
  cases.push_back({.family = "gemma3", .mesh = two(4, 1), .rows = 5});  // two, two, one, none
  cases.push_back({.family = "gemma3", .mesh = {{{"data", 2}, {"fsdp", 2}}}, .rows = 8});
  cases.push_back({.family = "gemma3", .mesh = two(2, 2), .rules = {.preset = mesh::Preset::fsdp}});
  cases.push_back({.family = "gemma3", .mesh = two(1, 4), .rules = {.preset = mesh::Preset::megatron}});
  cases.push_back({.family = "gemma3", .mesh = two(1, 8), .rules = {.preset = mesh::Preset::megatron}});  // KV twice
  cases.push_back({.family = "gemma3", .mesh = two(2, 2), .rules = {.preset = mesh::Preset::replicated}});
  cases.push_back({.family = "gemma2",
                   .mesh = two(2, 2),
                   .weights = model::WeightType::bf16,
                   .rules = {.overrides = {{"down_proj", mesh::parse_spec("(fsdp, tp)")}}}});  // clumsy
  for (const mesh::Preset preset : {mesh::Preset::fsdp, mesh::Preset::megatron})
    cases.push_back({.family = "gemma3",
                     .mesh = two(2, 2),
                     .weights = model::WeightType::bf16,
                     .rules = {.preset = preset},
                     .dora = true});
  cases.push_back({.family = "gemma3",
                   .mesh = two(2, 2),
                   .method = model::TrainMethod::full,
                   .weights = model::WeightType::bf16,
                   .remat = model::Remat::layer});
  return cases;
}

struct Batch {
  std::vector<int> ids, targets, positions, segments;
  Batch(const Trained& c) {
    for (int r = 0; r < c.rows; ++r)
      for (int i = 0; i < c.len; ++i) {
        ids.push_back((r * 31 + i * 7) % 1000);
        targets.push_back(i >= c.len - c.loss_per_row ? (i * 13) % 1000 : -1);
        positions.push_back(i);
        segments.push_back(0);
      }
  }
  engine::TokenBatch of(const Trained& c) const {
    return {.rows = c.rows, .len = c.len, .ids = ids, .targets = targets, .positions = positions, .segments = segments};
  }
};

struct Measured {
  mesh::Placement placement;
  std::vector<mesh::AdapterShape> lora;
  std::vector<MemoryUse> memory;                                // by device
  std::vector<std::vector<engine::CollectiveTraffic>> traffic;  // of the last step
};

Measured run(const model::Config& config, const Trained& c) {
  Measured out;
  const auto created = engine::Cluster::create(config, {.mesh = c.mesh, .rules = c.rules, .weights = c.weights});
  engine::Cluster& cluster = *created;
  cluster.init_random(1);
  if (c.method == model::TrainMethod::lora) {
    const options::Lora options{.rank = 8,
                                .dropout = c.dropout,
                                .targets = {"q_proj", "k_proj", "o_proj", "gate_proj", "down_proj"},
                                .dora = c.dora};
    cluster.add_lora(options, 1);
    for (const engine::ResolvedLora& r : engine::resolve_lora(cluster.inventory(), options))
      out.lora.push_back({r.target.role, r.target.layer, r.rank, c.dora});
  }
  cluster.train(c.method, {});
  const Batch batch(c);
  for (int step = 1; step <= 2; ++step) {
    cluster.clear_traffic();
    cluster.zero_gradients();
    cluster.forward_backward(batch.of(c), {.remat = c.remat, .loss_chunk = c.chunk});
    cluster.update(step, 1e-3f, 1.0f, cluster.gradient_norm());
  }
  out.placement = cluster.placement();
  for (int d = 0; d < cluster.devices(); ++d) {
    out.memory.push_back(cluster.device(d).arena.use());
    out.traffic.push_back(cluster.traffic(d));
  }
  return out;
}

const std::vector<Measured>& runs() {
  static const std::vector<Measured> kRuns = [] {
    std::vector<Measured> all;
    for (const Trained& c : mesh_runs()) all.push_back(run(config_of(c.family), c));
    return all;
  }();
  return kRuns;
}

std::int64_t rows_of(const Trained& c, int device) {
  const mesh::IndexInterval rows = mesh::batch_rows(mesh::batch_slice(c.mesh, device), c.rows);
  return rows.end - rows.begin;
}

TEST(MeshTruth, EveryCategoryOnEveryDeviceIsPredictedWithinTwoPercent) {
  int equal = 0, compared = 0;
  double worst = 0;
  const std::vector<Trained> cases = mesh_runs();
  for (size_t i = 0; i < cases.size(); ++i) {
    const Trained& c = cases[i];
    const Measured& was = runs()[i];
    SCOPED_TRACE(c.name());
    const model::Config config = config_of(c.family);
    const mesh::ReshardPlans plans(config, was.placement, c.mesh);
    for (int d = 0; d < static_cast<int>(was.memory.size()); ++d) {
      const std::int64_t n = rows_of(c, d);
      const TrainShape shape{.method = c.method,
                             .weights = c.weights,
                             .lora = was.lora,
                             .dropout = c.dropout > 0,
                             .remat = c.remat,
                             .tokens = n * c.len,
                             .loss_tokens = n * c.loss_per_row,
                             .longest = n > 0 ? c.len : 0,
                             .loss_chunk = c.chunk};
      const MemoryPlan plan = predict_train_memory(config, shape, plans, d);
      const MemoryUse& use = was.memory[static_cast<size_t>(d)];
      for (size_t k = 0; k < kMemoryCategories; ++k) {
        const Bytes said = plan.category_peaks.bytes[k], held = use.category_peaks.bytes[k];
        ++compared;
        if (said == held) {
          ++equal;
          continue;
        }
        const double error = held.value > 0 ? std::abs(said / held - 1) : 1;
        worst = std::max(worst, error);
        EXPECT_LE(error, 0.02) << "device " << d << ", " << to_string(static_cast<MemoryCategory>(k)) << ": predicted "
                               << said.value << ", measured " << held.value;
      }
      EXPECT_LE(std::abs(plan.at_peak.total() / use.at_peak.total() - 1), 0.02) << "device " << d;
    }
  }
  std::printf("%zu runs, %d of %d categories equal to the byte, worst %.2f %%\n", cases.size(), equal, compared,
              100 * worst);
  EXPECT_EQ(equal, compared);
}

// Bytes and calls by everything that names them.
using Sent = std::map<std::string, std::pair<std::int64_t, std::int64_t>>;

void add(Sent& sent, const mesh::Collective& c) {
  auto& [bytes, calls] = sent[mesh::to_string(c.kind) + " over " + c.axis + " of " + std::to_string(c.group) + ", " +
                              mesh::to_string(c.phase) + ", " + mesh::to_string(c.cause) + ": " + c.tensor];
  bytes += c.moved.value * c.calls;
  calls += c.calls;
}

TEST(MeshTruth, EveryDeviceSendsThePlannedBytes) {
  const std::vector<Trained> cases = mesh_runs();
  std::int64_t all = 0;
  size_t entries = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Trained& c = cases[i];
    const Measured& was = runs()[i];
    SCOPED_TRACE(c.name());
    const model::Config config = config_of(c.family);
    const bool bf16 = c.weights == model::WeightType::bf16;
    const mesh::EngineStep step{
        .work = c.method == model::TrainMethod::full ? mesh::StepKind::train_full : mesh::StepKind::train_lora,
        .weight_bytes = bf16 ? 2 : 4,
        .recompute = c.remat == model::Remat::none ? mesh::Recompute::none : mesh::Recompute::layers};
    const mesh::DeviceCollectives plan(config, c.mesh, was.placement, step);
    for (int d = 0; d < static_cast<int>(was.traffic.size()); ++d) {
      const std::int64_t n = rows_of(c, d);
      const mesh::DeviceTokens own =
          mesh::count_device_tokens(n * c.len, n * c.loss_per_row, c.chunk, 1);  // far below 64 MiB
      Sent planned, counted;
      for (const mesh::Collective& x : plan.of(d, std::vector{own})) add(planned, x);
      for (const engine::CollectiveTraffic& x : was.traffic[static_cast<size_t>(d)]) add(counted, x.what);
      for (const auto& [what, size] : planned) {
        EXPECT_EQ(counted[what], size) << "device " << d << ", " << what;
        all += size.first;
      }
      for (const auto& [what, size] : counted)
        EXPECT_TRUE(planned.contains(what)) << "device " << d << ", " << what << ": not planned, " << size.first;
      entries += planned.size();
    }
  }
  std::printf("%zu entries, %lld bytes\n", entries, static_cast<long long>(all));
}

}  // namespace
}  // namespace mw::plan
