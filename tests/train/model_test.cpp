// SPDX-License-Identifier: GPL-3.0-or-later
// What a model folder and an adapter are refused for, before any weight is read.
#include "core/train/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "tests/formats/test_files.h"

namespace mw::train {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
const fs::path kFixtures = MW_FIXTURES;

Problem problem_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& e) {
    return e.problem();
  }
  ADD_FAILURE() << "accepted";
  return {};
}

TEST(LoadModel, RefusesRowsLongerThanTheContext) {
  const Problem p = problem_of([] {
    load_model({.path = kFixtures / "gemma3_tiny",
                .tokenizer = {},
                .init = Init::random,
                .weights = engine::WeightType::f32,
                .capacity = {},
                .threads = 1,
                .seed = 1,
                .context = 65});
  });
  EXPECT_EQ(p.id, "CONTEXT");
  EXPECT_THAT(p.found, HasSubstr("65"));
  EXPECT_THAT(p.expected, HasSubstr("64"));
}

TEST(ReadAdapter, FitsItsOwnModel) {
  for (const char* name : {"gemma2_tiny", "gemma3_tiny", "gemma4_tiny", "gemma4_e_tiny", "gemma4_moe_tiny"})
    EXPECT_FALSE(read_adapter(kFixtures / name / "lora", kFixtures / name).modules.empty()) << name;
}

TEST(ReadAdapter, OfAnotherBaseModelIsOneClearError) {
  for (const char* other : {"gemma2_tiny", "gemma3_tiny_gqa", "gemma4_tiny", "gemma4_e_tiny", "gemma4_moe_tiny"}) {
    const Problem p = problem_of([&] { read_adapter(kFixtures / "gemma3_tiny" / "lora", kFixtures / other); });
    EXPECT_EQ(p.id, "ADAPTER") << other;
    EXPECT_THAT(p.fix, HasSubstr("another base model")) << other;
    EXPECT_FALSE(p.place.empty()) << other;
  }
}

TEST(ReadAdapter, OfAShorterModelOfTheSameWidthsIsOneClearError) {
  Json config = read_json(kFixtures / "gemma3_tiny" / "config.json");
  config["num_hidden_layers"] = 7;
  config["layer_types"].push_back("full_attention");
  const formats::TemporaryFolder folder;
  write_file_atomically(folder / "config.json", config.dump());
  const Problem p = problem_of([&] { read_adapter(kFixtures / "gemma3_tiny" / "lora", folder.path()); });
  EXPECT_EQ(p.id, "ADAPTER");
  EXPECT_THAT(p.place, HasSubstr("layers.6"));
  EXPECT_THAT(p.fix, HasSubstr("another base model"));
}

}  // namespace
}  // namespace mw::train
