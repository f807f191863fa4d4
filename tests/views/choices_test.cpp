// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/views/choices.h"

#include <gmock/gmock.h>

#include "tests/shipped.h"

namespace mw::views {
namespace {

ModelChoice fit(const std::string& model, const std::string& target) {
  ModelChoice choice{.id = model, .family = {}};
  experiment::Experiment e;
  e.set_value("target.id", target);
  e.set_value("model.path", "/nowhere");
  predict_fit(choice, e, test::context());
  return choice;
}

TEST(TargetChoices, HaveChipsMemoryAndPrice) {
  const auto all = target_choices(test::context());
  const auto v5p = std::find_if(all.begin(), all.end(), [](const TargetChoice& t) { return t.id == "v5p-8"; });
  ASSERT_NE(v5p, all.end());
  EXPECT_EQ(v5p->chips, 4);
  EXPECT_EQ(v5p->memory.value, static_cast<std::int64_t>(test::context().catalogue.chip("v5p")->memory.value));
  EXPECT_DOUBLE_EQ(*v5p->usd_per_hour, 4 * test::context().catalogue.price("v5p")->usd_per_chip_hour);
  const auto cpu = std::find_if(all.begin(), all.end(), [](const TargetChoice& t) { return t.id == "cpu"; });
  ASSERT_NE(cpu, all.end());
  EXPECT_FALSE(cpu->usd_per_hour);
}

TEST(ModelChoices, FitOrDoNotFitOnTheTargetWithoutTheModelsFolder) {
  EXPECT_EQ(model_choices().front().family, "gemma2");
  EXPECT_GT(model_choices().front().parameters, 2'000'000'000);
  const ModelChoice small = fit("gemma3-1b", "v5p-8"), large = fit("gemma4-31b", "v5e-1");
  EXPECT_EQ(small.fits, true) << small.reason;
  EXPECT_EQ(large.fits, false) << large.reason;
  EXPECT_GT(large.memory.value, small.memory.value);
  EXPECT_TRUE(fit("gemma3-270m", "cpu").fits) << "this machine has a prediction, too";
}

TEST(ModelChoices, SayWhyThereIsNoPrediction) {
  const ModelChoice choice = fit("gemma3-1b", "v99-8");
  EXPECT_FALSE(choice.fits);
  EXPECT_FALSE(choice.reason.empty());
}

FoundChoice here(const char* fixture, const experiment::Experiment& experiment = {}) {
  return predict_here(importing::read_model_folder(std::filesystem::path(MW_FIXTURES) / fixture,
                                                   importing::ModelPlace::folder, fixture),
                      experiment, test::context());
}

TEST(FoundChoices, PredictServingOnThisMachine) {
  const FoundChoice tiny = here("gemma3_tiny");
  EXPECT_EQ(tiny.fits, true) << tiny.reason;
  EXPECT_EQ(tiny.model.dtype, "f32");
  EXPECT_EQ(to_json(tiny)["predicted"]["dtype"], "f32");
  EXPECT_GT(tiny.memory.value, static_cast<std::int64_t>(tiny.model.bytes));
  experiment::Experiment other;
  other.set("train.dtype", "bf16");
  const FoundChoice rounded = here("gemma3_tiny", other);
  EXPECT_EQ(rounded.weights, "bf16");
  EXPECT_LT(rounded.memory, tiny.memory);
  EXPECT_LT(tiny.memory.value, 64 << 20);
  ASSERT_TRUE(tiny.tokens_per_second);
  EXPECT_GT(tiny.tokens_per_second->value, 0);
  EXPECT_LT(tiny.tokens_per_second->low, tiny.tokens_per_second->high);
  EXPECT_EQ(to_json(tiny)["predicted"]["tokens_per_second"], tiny.tokens_per_second->value);
  EXPECT_EQ(to_json(tiny)["kind"], "model");
}

TEST(FoundChoices, DoNotFitIntoLessMemoryThanTheWeightsNeed) {
  experiment::Experiment small;
  small.set_value("target.memory_gib", 1e-5);
  const FoundChoice tiny = here("gemma3_tiny", small);
  EXPECT_EQ(tiny.fits, false) << tiny.reason;
  EXPECT_FALSE(tiny.tokens_per_second);
  EXPECT_EQ(to_json(tiny)["predicted"]["fits"], false);
}

TEST(FoundChoices, SayWhyThereIsNoPrediction) {
  const FoundChoice adapter = here("gemma3_tiny/lora");
  EXPECT_FALSE(adapter.fits);
  EXPECT_FALSE(adapter.reason.empty());
  EXPECT_TRUE(to_json(adapter)["predicted"].is_null());
}

}  // namespace
}  // namespace mw::views
