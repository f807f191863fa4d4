// SPDX-License-Identifier: GPL-3.0-or-later
// Runs the writers of core/formats with every file system fault at every change on disk.
#include <gtest/gtest.h>

#include "core/base/files.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/formats/peft/peft_adapter.h"
#include "core/formats/safetensors/safetensors.h"
#include "tests/base/file_faults.h"
#include "tests/formats/tiny_models.h"

namespace mw::formats {
namespace {
namespace fs = std::filesystem;

void write_tensor(const fs::path& file, float value) {
  const std::vector<float> values(1000, value);
  const std::vector<TensorData> tensors{{"t", TensorDType::f32, {1000}, std::as_bytes(std::span(values))}};
  write_safetensors(file, tensors);
}

float tensor_in(const fs::path& file) {
  const SafetensorsFile read(file);
  std::vector<float> values(1000);
  read.read_f32(*read.find("t"), 0, values);
  for (const float v : values) EXPECT_EQ(v, values[0]);
  return values[0];
}

TEST(WriteFaults, LeaveOldOrNewSafetensors) {
  test::try_every_fault(
      {.prepare = [](const fs::path& f) { write_tensor(f / "t.safetensors", 1); },
       .write = [](const fs::path& f) { write_tensor(f / "t.safetensors", 2); },
       .check_written = [](const fs::path& f) { EXPECT_EQ(tensor_in(f / "t.safetensors"), 2); },
       .check_unwritten = [](const fs::path& f) { EXPECT_TRUE(tensor_in(f / "t.safetensors") >= 1); }});
}

void write_adapter(const fs::path& folder) {
  const model::TensorInventory inventory(tiny_gemma3());
  PeftAdapter adapter{.rank = 2, .alpha = 4, .base_model = "base"};
  for (const model::LoraTarget& t : inventory.lora_targets())
    adapter.modules.push_back({.target = t,
                               .rank = 2,
                               .alpha = 4,
                               .a = std::vector<float>(static_cast<size_t>(2 * t.in), 0.5f),
                               .b = std::vector<float>(static_cast<size_t>(2 * t.out), 0.25f)});
  StagedFolder staged(folder / "adapter");
  write_peft(staged.path(), adapter, inventory);
  staged.commit();
}

void expect_adapter(const fs::path& folder) {
  const model::TensorInventory inventory(tiny_gemma3());
  EXPECT_EQ(read_peft(folder / "adapter", inventory).modules.size(), inventory.lora_targets().size());
}

TEST(WriteFaults, LeaveWholeOrNoAdapter) {
  test::try_every_fault({.prepare = [](const fs::path&) {},
                         .write = write_adapter,
                         .check_written = expect_adapter,
                         .check_unwritten =
                             [](const fs::path& f) {
                               if (path_exists(f / "adapter")) expect_adapter(f);
                             }});
}

}  // namespace
}  // namespace mw::formats
