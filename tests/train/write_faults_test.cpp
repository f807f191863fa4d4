// SPDX-License-Identifier: GPL-3.0-or-later
// Writes checkpoints and merged models with every file system fault at every change on disk.
#include <gtest/gtest.h>

#include "core/engine/distributed/cluster.h"
#include "core/formats/orbax/tunix_adapter.h"
#include "core/train/checkpoint.h"
#include "core/train/merge.h"
#include "tests/base/file_faults.h"
#include "tests/engine/tiny_model.h"
#include "tests/train/merge_folder.h"

namespace mw::train {
namespace {
namespace fs = std::filesystem;

struct Trained {
  Trained() {
    engine::test::fill(cluster.network(0), 3);
    settings.lora = {.rank = 2, .alpha = 4, .targets = {"q_proj", "down_proj"}};
    cluster.add_lora(settings.lora, 5);
    cluster.train(model::TrainMethod::lora, {});
  }
  Settings settings;
  std::unique_ptr<engine::Cluster> created = engine::Cluster::create(engine::test::tiny_config(), {});
  engine::Cluster& cluster = *created;
};

void write_step(const fs::path& folder, long step) {
  Trained trained;
  write_checkpoint(folder, {.step = step}, trained.settings, trained.cluster);
  write_best_checkpoint(folder, {.step = step, .metric = "eval/loss", .value = 0.1 * static_cast<double>(step)});
  prune_checkpoints(folder, 1);
}

void expect_latest(const fs::path& folder, const std::set<long>& steps) {
  const auto latest = latest_checkpoint(folder);
  ASSERT_TRUE(latest);
  Trained trained;
  EXPECT_TRUE(steps.contains(restore_checkpoint(*latest, trained.cluster).step)) << *latest;
  const auto best = chosen_checkpoint(folder, CheckpointChoice::best);
  ASSERT_TRUE(best);
  EXPECT_TRUE(steps.contains(read_counters(*best).step)) << *best;
}

TEST(WriteFaults, AlwaysLeaveLoadableCheckpoint) {
  mw::test::try_every_fault({.prepare = [](const fs::path& f) { write_step(f, 1); },
                             .write = [](const fs::path& f) { write_step(f, 2); },
                             .check_written = [](const fs::path& f) { expect_latest(f, {2}); },
                             .check_unwritten =
                                 [](const fs::path& f) {
                                   expect_latest(f, {1, 2});
                                 }});
}

void write_merged(const fs::path& folder) {
  const fs::path base = fs::path(MW_FIXTURES) / "gemma3_tiny";
  const model::TensorInventory inventory(formats::read_config(base));
  const auto adapter =
      formats::read_tunix_adapter(fs::path(MW_FIXTURES) / "orbax" / "tunix_gemma3_tiny", inventory, 6.0f);
  if (fs::exists(folder / "merged")) fs::remove_all(folder / "merged");  // merge refuses a folder that is in use
  merge(base, adapter.adapter, folder / "merged", 1);
}

void expect_model(const fs::path& folder) {
  const model::TensorInventory inventory(formats::read_config(folder / "merged"));
  const formats::HfWeights weights(folder / "merged", inventory);
}

TEST(WriteFaults, LeaveWholeOrNoMergedModel) {
  mw::test::try_every_fault({.prepare = [](const fs::path&) {},
                             .write = write_merged,
                             .check_written = expect_model,
                             .check_unwritten =
                                 [](const fs::path& f) {
                                   if (fs::exists(f / "merged")) expect_model(f);
                                 }});
}

}  // namespace
}  // namespace mw::train
