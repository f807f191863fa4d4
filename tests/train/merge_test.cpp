// SPDX-License-Identifier: GPL-3.0-or-later
// Adapters of Tunix runs (tests/fixtures/orbax/tunix_*) on small Gemma models: reading, conversion, merging, and
// rejected inputs.
#include "core/train/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/files.h"
#include "core/formats/orbax/tunix_adapter.h"
#include "core/train/parity.h"
#include "tests/formats/test_files.h"
#include "tests/train/merge_folder.h"

namespace mw::train {
namespace {
namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path kFixtures = MW_FIXTURES;

class TunixLora : public testing::TestWithParam<const char*> {
 protected:
  fs::path base() const { return kFixtures / GetParam(); }
  fs::path checkpoint() const { return kFixtures / "orbax" / (std::string("tunix_") + GetParam()); }
  model::TensorInventory inventory() const { return model::TensorInventory(formats::read_config(base())); }
  formats::PeftAdapter adapter() const { return formats::read_tunix_adapter(checkpoint(), inventory(), 6.0f).adapter; }
  formats::Scratch folder_;
};

// The weight change delta[out, in] of each projection, by the einsum of Tunix on the stored arrays.
TEST_P(TunixLora, ProductsEqualTunixEinsum) {
  const formats::OrbaxFolder opened = formats::open_orbax(checkpoint());
  const formats::OrbaxTree tree(opened.steps.back().items.front().folder);
  const auto inventory_ = inventory();
  const formats::PeftAdapter read = adapter();
  EXPECT_EQ(read.modules.size(), inventory_.lora_targets().size());
  for (const formats::AdapterModule& m : read.modules) {
    const model::Tensor& w = *inventory_.find(m.target.role, m.target.layer);
    const formats::ZarrArray* a = tree.find(w.tunix_path + "_lora_a.value");
    const formats::ZarrArray* b = tree.find(w.tunix_path + "_lora_b.value");
    ASSERT_TRUE(a && b) << w.tunix_path;
    const std::vector<float> av = tree.read_floats(*a), bv = tree.read_floats(*b);
    const std::int64_t rank = a->shape.back(), slots = w.tunix_slot < 0 ? 1 : b->shape[1];
    ASSERT_EQ(rank, m.rank);
    const auto at = [](std::int64_t i) { return static_cast<size_t>(i); };
    for (const std::int64_t o : {std::int64_t{0}, m.target.out / 2, m.target.out - 1})
      for (const std::int64_t i : {std::int64_t{0}, m.target.in - 1}) {
        double stored = 0, kept = 0;
        for (std::int64_t r = 0; r < rank; ++r) {
          const std::int64_t column = (r * slots + std::max(0, w.tunix_slot)) * m.target.out + o;
          stored += double{av[at(i * rank + r)]} * bv[at(column)];
          kept += double{m.a[at(r * m.target.in + i)]} * m.b[at(o * rank + r)];
        }
        EXPECT_EQ(stored, kept) << m.target.module;
      }
  }
}

TEST_P(TunixLora, MergedModelEqualsBaseWithAdapter) {
  const formats::PeftAdapter lora = adapter();
  const MergedFiles merged = merge(base(), lora, folder_ / "merged", 2);
  EXPECT_EQ(merged.merged, static_cast<long>(lora.modules.size()));
  const Parity parity = check_parity(base(), lora, folder_ / "merged", {});
  EXPECT_EQ(parity.verdict, Parity::Verdict::passed) << parity.reason;
  EXPECT_LT(parity.largest, 1e-4);
  EXPECT_GT(parity.effect, 1e-2) << "the adapter must change something, or the gate could not fail";
  // The check fails for the base model, so it detects a missing merge.
  EXPECT_EQ(check_parity(base(), lora, base(), {}).verdict, Parity::Verdict::failed);
}

const FormParity& form_of(const Parity& parity, ParityForm form) {
  for (const FormParity& f : parity.forms)
    if (f.form == form) return f;
  throw std::runtime_error("no such form");
}

TEST_P(TunixLora, ParityNamesPositionsAndLayers) {
  formats::PeftAdapter lora = adapter();
  merge(base(), lora, folder_ / "merged", 2);
  const Parity good = check_parity(base(), lora, folder_ / "merged", {}, {}, {.prompts = {{"own", {2, 5, 7}}}});
  ASSERT_EQ(good.prompts.size(), 3u);
  EXPECT_EQ(good.positions, 2 * 24 + 3);
  EXPECT_EQ(good.weights, "f32");
  const FormParity& folded = form_of(good, ParityForm::folded);
  EXPECT_EQ(folded.verdict, ParityVerdict::passed) << folded.reason;
  EXPECT_EQ(folded.positions.size(), 51u);
  EXPECT_EQ(folded.positions.back().prompt, 2);
  EXPECT_EQ(folded.positions.back().position, 2);
  const size_t layers = formats::read_config(base()).layers.size();
  EXPECT_EQ(folded.layers.size(), layers);
  for (const LayerDivergence& l : folded.layers) EXPECT_LT(l.relative, 1e-4) << l.layer;
  // Merged with twice the scale in the last layer only: earlier layers agree, and the message names the layer.
  const int last = static_cast<int>(layers) - 1;
  for (formats::AdapterModule& m : lora.modules)
    if (m.target.layer == last) m.alpha *= 2;
  merge(base(), lora, folder_ / "wrong", 2);
  const Parity bad = check_parity(base(), adapter(), folder_ / "wrong", {});
  EXPECT_EQ(bad.verdict, ParityVerdict::failed);
  EXPECT_EQ(form_of(bad, ParityForm::folded).verdict, ParityVerdict::passed);
  const FormParity& reread = form_of(bad, ParityForm::reread);
  EXPECT_GT(reread.layers.back().relative, 100 * reread.layers.front().relative);
  EXPECT_GT(reread.largest, reread.mean);
  EXPECT_THAT(bad.reason, HasSubstr("folder read again"));
  EXPECT_THAT(parity_text(bad), HasSubstr("merged weights: passed"));
  const Json json = to_json(bad);
  EXPECT_EQ(json["forms"].size(), 2u);
  EXPECT_EQ(json["forms"][1]["positions"].size(), 48u);
}

TEST_P(TunixLora, ConvertsToSamePeftAdapter) {
  const formats::PeftAdapter lora = adapter();
  fs::create_directories(folder_ / "peft");
  formats::write_peft(folder_ / "peft", lora, inventory());
  const formats::PeftAdapter back = formats::read_peft(folder_ / "peft", inventory());
  ASSERT_EQ(back.modules.size(), lora.modules.size());
  for (size_t i = 0; i < lora.modules.size(); ++i) {
    EXPECT_EQ(back.modules[i].target.module, lora.modules[i].target.module);
    EXPECT_EQ(back.modules[i].a, lora.modules[i].a);
    EXPECT_EQ(back.modules[i].b, lora.modules[i].b);
    EXPECT_EQ(back.modules[i].alpha, 6.0f);
  }
}

TEST_P(TunixLora, RequiresAlpha) {
  try {
    formats::read_tunix_adapter(checkpoint(), inventory(), std::nullopt);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("--alpha"));
  }
}

TEST_P(TunixLora, OverwritesNothing) {
  fs::create_directories(folder_ / "mine");
  formats::put(folder_ / "mine" / "notes.txt", "precious");
  EXPECT_THROW(merge(base(), adapter(), folder_ / "mine", 1), Error);
  EXPECT_EQ(read_file(folder_ / "mine" / "notes.txt"), "precious");
  EXPECT_THROW(merge(base(), adapter(), base(), 1), Error);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(merge(base(), adapter(), folder_ / "stopped", 1, {}, stop.get_token()), Error);
  EXPECT_FALSE(fs::exists(folder_ / "stopped"));
}

INSTANTIATE_TEST_SUITE_P(Merge, TunixLora, testing::Values("gemma3_tiny", "gemma4_tiny"),
                         [](const auto& p) { return std::string(p.param); });

// A checkpoint of a google-tunix 0.1.7 run (scripts/fixtures/tunix_run.sh), compared with the PEFT adapter that the
// same process wrote; alpha is in its metadata.
TEST(TunixAdapter, MatchesAdapterOfRealRun) {
  const fs::path run = kFixtures / "orbax" / "tunix_run";
  const model::TensorInventory inventory(formats::read_config(kFixtures / "gemma4_tiny"));
  const formats::TunixAdapter read = formats::read_tunix_adapter(run, inventory, std::nullopt);
  const formats::PeftAdapter own = formats::read_peft(run / "adapter", inventory);
  EXPECT_EQ(read.step, 2);
  EXPECT_EQ(read.adapter.alpha, 6.0f);
  EXPECT_EQ(read.adapter.rank, 2);
  ASSERT_EQ(read.adapter.modules.size(), own.modules.size());
  bool trained = false;
  for (size_t i = 0; i < own.modules.size(); ++i) {
    EXPECT_EQ(read.adapter.modules[i].target.module, own.modules[i].target.module);
    EXPECT_EQ(read.adapter.modules[i].a, own.modules[i].a) << own.modules[i].target.module;
    EXPECT_EQ(read.adapter.modules[i].b, own.modules[i].b) << own.modules[i].target.module;
    for (const float b : own.modules[i].b) trained |= b != 0;
  }
  EXPECT_TRUE(trained);
}

TEST(TunixAdapter, RejectsOtherModel) {
  const model::TensorInventory other(formats::read_config(kFixtures / "gemma4_tiny"));
  EXPECT_THROW(formats::read_tunix_adapter(kFixtures / "orbax" / "tunix_gemma3_tiny", other, 6.0f), Error);
  EXPECT_THROW(formats::read_tunix_adapter(kFixtures / "orbax" / "ocdbt", other, 6.0f), Error);
}

// Writes a pair of arrays that adapt `weight` to a checkpoint of zarr files.
void put_pair(const formats::Scratch& folder, const std::string& weight, std::int64_t in, std::int64_t out) {
  const std::int64_t kRank = 2;
  const auto put_array = [&](const std::string& name, std::int64_t rows, std::int64_t cols) {
    const std::string shape = "[" + std::to_string(rows) + "," + std::to_string(cols) + "]";
    const std::string array = "default/" + weight + name;
    folder.put(array + "/.zarray",
               R"({"compressor":null,"dtype":"<f4","fill_value":null,"filters":null,"order":"C","zarr_format":2,)"
               R"("chunks":)" +
                   shape + ",\"shape\":" + shape + "}");
    folder.put(array + "/0.0", std::string(static_cast<size_t>(rows * cols) * sizeof(float), '\0'));
  };
  put_array("_lora_a", in, kRank);
  put_array("_lora_b", kRank, out);
}

// Adapters that cannot be merged are errors. (Found by fuzzing.)
TEST(TunixAdapter, RejectsWeightThatIsNotProjection) {
  const model::TensorInventory inventory(formats::read_config(kFixtures / "gemma3_tiny"));
  const formats::Scratch folder;
  folder.put("_CHECKPOINT_METADATA", R"({"custom_metadata":{"alpha":6}})");
  folder.put("default/_METADATA", R"({"tree_metadata":{}})");
  const model::LoraTarget& target = inventory.lora_targets().front();
  put_pair(folder, inventory.find(target.role, target.layer)->tunix_path, target.in, target.out);
  EXPECT_EQ(formats::read_tunix_adapter(folder.path(), inventory, std::nullopt).adapter.modules.size(), 1u);
  const model::Tensor& norm = *inventory.find(model::Role::q_norm, 0);
  put_pair(folder, norm.tunix_path, norm.hf_shape[0], norm.hf_shape[0]);
  try {
    formats::read_tunix_adapter(folder.path(), inventory, std::nullopt);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr(norm.tunix_path), HasSubstr("not a linear projection")));
  }
}

TEST(Merge, RoundsOnceToBf16) {
  formats::Scratch folder;
  const fs::path base = kFixtures / "gemma3_tiny", narrow = folder / "bf16";
  fs::create_directories(narrow);
  const model::Config config = formats::read_config(base);
  const model::TensorInventory inventory(config);
  const formats::HfWeights weights(base, inventory);
  formats::write_hf_weights(
      narrow, config, inventory, [&](size_t i, std::span<float> out) { weights.read_f32(i, 0, out); },
      formats::TensorDType::bf16);
  const formats::PeftAdapter lora =
      formats::read_tunix_adapter(kFixtures / "orbax" / "tunix_gemma3_tiny", inventory, 6.0f).adapter;
  merge(narrow, lora, folder / "merged", 1);
  const Parity parity = check_parity(narrow, lora, folder / "merged", {});
  EXPECT_EQ(parity.verdict, Parity::Verdict::passed) << parity.reason;
  EXPECT_LT(parity.rms, 0.05 * parity.effect);
}

}  // namespace
}  // namespace mw::train
