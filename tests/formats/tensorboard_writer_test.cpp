// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/formats/logs/tensorboard.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/base/files.h"
#include "tests/formats/test_files.h"

namespace mw::formats {
namespace {
namespace fs = std::filesystem;

// scripts/fixtures/tensorboard_events.py writes the same events with tensorboard's own writer.
TEST(TensorboardWriter, WritesTheBytesOfTensorboard) {
  const Scratch folder;
  const fs::path file = folder / "events.out.tfevents.1.x";
  TensorboardWriter writer(file, 1000.5, 7);
  writer.add_scalar("train/loss", 0, 2.5, 1001.25);
  writer.add_scalar("train/loss", 300, 0.1, 1002.5);
  writer.add_scalar("eval/loss", 300, std::numeric_limits<double>::infinity(), 1002.5);
  EXPECT_EQ(read_file(file), read_file(fs::path(MW_FIXTURES) / "tensorboard_writer" / "expected.tfevents"));
}

TEST(TensorboardWriter, EveryValueIsThereAtOnceForAReader) {
  const Scratch folder;
  const fs::path file = new_event_file(folder.path(), 1000.5);
  TensorboardWriter writer(file, 1000.5, 0);
  EXPECT_NE(new_event_file(folder.path(), 1000.5), file);
  EXPECT_EQ(log_kind(folder.path()), LogKind::tensorboard);
  TensorboardFile events(file);
  EXPECT_TRUE(events.read_more().empty());
  for (long step = 1; step < 4; ++step) {
    writer.add_scalar("train/loss", step, 3.0 / static_cast<double>(step), 1001);
    const auto read = events.read_more();
    ASSERT_EQ(read.size(), 1u);
    EXPECT_EQ(read[0].name, "train/loss");
    EXPECT_EQ(read[0].step, step);
    EXPECT_FLOAT_EQ(static_cast<float>(read[0].value), 3.0f / static_cast<float>(step));
  }
  EXPECT_TRUE(events.notes().empty());
  EXPECT_THROW(TensorboardWriter(file, 1000.5, 0), Error) << "files are never overwritten";
}

}  // namespace
}  // namespace mw::formats
