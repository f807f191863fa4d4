// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/checkpoint.h"

#include <gtest/gtest.h>

#include "core/engine/distributed/cluster.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/train/settings.h"
#include "tests/engine/families.h"
#include "tests/engine/tiny_model.h"
#include "tests/formats/test_files.h"

namespace mw::train {
namespace {

class FullCheckpoint : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Families, FullCheckpoint, testing::ValuesIn(engine::test::families()),
                         engine::test::family_name);

TEST_P(FullCheckpoint, IsModelFolderWithSameLogits) {
  const model::Config config = engine::test::as_family(engine::test::tiny_config(), GetParam());
  const auto created = engine::Cluster::create(config, {});
  engine::Cluster& cluster = *created;
  engine::Network& network = cluster.network(0);
  engine::test::fill(network, 3);
  cluster.train(model::TrainMethod::full, {});
  const engine::test::OwnedBatch batch = engine::test::packed_batch(2, 12, config.vocab);
  cluster.forward_backward(batch, {});
  cluster.update(1, 1e-3f, 1.0f, cluster.gradient_norm());
  const formats::Scratch folder;
  Settings settings;
  settings.method = model::TrainMethod::full;
  settings.save_dtype = model::DType::f32;
  write_checkpoint(folder.path(), {.step = 1}, settings, cluster);

  const auto saved = checkpoint_path(folder.path(), 1);
  EXPECT_EQ(std::filesystem::file_size(saved / "model.safetensors"),
            static_cast<std::uintmax_t>(trainable_weights(cluster.inventory(), formats::TensorDType::f32).file.value));
  engine::Device device(Bytes(0), 1);
  engine::Network again(formats::read_config(saved), device, model::WeightType::f32);
  const formats::HfWeights weights(saved, again.inventory());
  again.load({.f32 = [&](size_t i, std::int64_t first, std::span<float> out) { weights.read_f32(i, first, out); },
              .bf16 = {}});
  std::vector<float> before(batch.ids.size() * static_cast<size_t>(config.vocab)), after(before.size());
  network.logits(batch, before);
  again.logits(batch, after);
  EXPECT_EQ(before, after);
}

class AdapterFile : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Families, AdapterFile, testing::ValuesIn(engine::test::families()), engine::test::family_name);

TEST_P(AdapterFile, IsPredictedToTheByte) {
  const model::Config config = engine::test::as_family(engine::test::tiny_config(), GetParam());
  for (const auto& [rank, dora] : {std::pair(1, false), {3, true}, {16, false}}) {
    const auto cluster = engine::Cluster::create(config, {});
    Settings settings;
    settings.lora.rank = rank;
    settings.lora.targets = {"q_proj", "v_proj", "down_proj"};
    settings.lora.rank_pattern = {{"down_proj", rank + 1}};
    settings.lora.dora = dora;
    cluster->add_lora(settings.lora, 1);
    cluster->train(model::TrainMethod::lora, {});
    const formats::Scratch folder;
    write_checkpoint(folder.path(), {.step = 1}, settings, *cluster);
    std::vector<mesh::AdapterShape> adapters;
    for (const engine::ResolvedLora& m : engine::resolve_lora(cluster->inventory(), settings.lora))
      adapters.push_back({.role = m.target.role, .layer = m.target.layer, .rank = m.rank, .dora = dora});
    const Trainable predicted = trainable_adapters(cluster->inventory(), adapters);
    EXPECT_EQ(std::filesystem::file_size(checkpoint_path(folder.path(), 1) / "adapter_model.safetensors"),
              static_cast<std::uintmax_t>(predicted.file.value))
        << "rank " << rank;
    std::int64_t trained = 0;
    for (const auto& t : cluster->trained()) trained += t.size;
    EXPECT_EQ(predicted.params, trained) << "rank " << rank;
    EXPECT_EQ(trainable_of({{"trainable", to_json(predicted)}}), predicted);
  }
}

}  // namespace
}  // namespace mw::train
