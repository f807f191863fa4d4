// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/jobs/merge_adapter.h"

#include <gtest/gtest.h>

#include "core/base/atomic_file.h"
#include "core/base/files.h"
#include "core/engine/distributed/cluster.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/jobs/job.h"
#include "core/plan/calibration/plan_context.h"
#include "core/train/checkpoint.h"
#include "core/train/merge.h"
#include "core/train/model.h"
#include "tests/formats/test_files.h"
#include "tests/jobs/quick_experiment.h"
#include "tests/store/store_fixture.h"
#include "tests/train/merge_folder.h"

namespace mw::jobs {
namespace {

namespace fs = std::filesystem;

MergeRequest request(const fs::path& out) {
  const fs::path fixtures = MW_FIXTURES;
  return {.base = fixtures / "gemma3_tiny",
          .adapter = fixtures / "orbax" / "tunix_gemma3_tiny",
          .out = out,
          .alpha = 6.0f,
          .logits = CompareLogits::yes};
}

TEST(MergeAdapter, ChecksByPartsAndWritesTheVerdict) {
  formats::Scratch folder;
  long last = -1, all = 0;
  const MergeResult result = merge_adapter(
      request(folder / "merged"), [](const std::string&) {}, [](long, long) {},
      [&](long done, long of) {
        EXPECT_GT(done, last);
        last = done, all = of;
      },
      {});
  EXPECT_GT(all, 6) << "three models, each by layers and pieces of the head";
  EXPECT_EQ(last, all);
  EXPECT_EQ(result.parity.verdict, train::Parity::Verdict::passed) << result.parity.reason;
  EXPECT_TRUE(result.is_released);
  ASSERT_EQ(result.parity.forms.size(), 3u);
  for (const train::FormParity& form : result.parity.forms)
    EXPECT_EQ(form.verdict, train::ParityVerdict::passed) << to_string(form.form) << ": " << form.reason;
  const train::FormParity& served = result.parity.forms.back();
  ASSERT_EQ(served.texts.size(), 2u);
  for (const train::GreedyText& text : served.texts) {
    EXPECT_EQ(text.merged.size(), static_cast<size_t>(kGreedyTokens));
    EXPECT_EQ(text.merged, text.with_adapter);  // f32 weights: rounding changes no token here
  }
  EXPECT_EQ(read_json(folder / "merged/merge.json"), result.answer);
}

TEST(MergeAdapter, ChecksTheWeightsOnlyUnlessAsked) {
  formats::Scratch folder;
  MergeRequest wanted = request(folder / "merged");
  wanted.logits = CompareLogits::no;
  long last = -1, all = 0;
  const MergeResult result = merge_adapter(
      wanted, [](const std::string&) {},
      [&](long done, long of) {
        EXPECT_GE(done, last);
        last = done, all = of;
      },
      [](long, long) { FAIL() << "logits were compared"; }, {});
  EXPECT_EQ(last, all);
  EXPECT_TRUE(result.is_released);
  EXPECT_EQ(result.check.verdict, train::ParityVerdict::passed) << result.check.reason;
  EXPECT_EQ(result.parity.verdict, train::ParityVerdict::not_run);
  EXPECT_EQ(result.answer["parity"]["reason"], "it was not asked for");
  EXPECT_EQ(result.answer["check"]["adapted"], result.merged.merged);
}

TEST(MergeAdapter, AStopDuringTheCheckIsRecorded) {
  formats::Scratch folder;
  std::stop_source stop;
  const MergeResult result = merge_adapter(
      request(folder / "merged"), [](const std::string&) {}, [](long, long) {},
      [&](long done, long) {
        if (done > 1) stop.request_stop();
      },
      stop.get_token());
  EXPECT_EQ(result.parity.verdict, train::Parity::Verdict::not_run);
  EXPECT_FALSE(result.is_released);
  EXPECT_FALSE(fs::exists(folder / "merged"));
  EXPECT_EQ(read_json(folder / "merged.unchecked/merge.json")["parity"]["reason"], "it was stopped");
  EXPECT_TRUE(fs::exists(folder / "merged.unchecked/config.json"));
}

// Changes bytes of the weights.
void damage(const fs::path& staged) {
  const fs::path file = staged / "model.safetensors";
  std::string bytes = read_file(file);
  const auto sixteenth = bytes.size() / 16;
  for (size_t i = 0; i < sixteenth; i += 4) std::swap(bytes[bytes.size() - 1 - i], bytes[bytes.size() - 1 - 3 * i]);
  write_file_atomically(file, bytes);
}

TEST(MergeAdapter, ADamagedMergeIsNotReleased) {
  formats::Scratch folder;
  const MergeRequest wanted = request(folder / "merged");
  for (const char* kept : {"merged.rejected", "merged.rejected-2"}) {  // an earlier one stays
    bool is_damaged = false;
    const MergeResult result = merge_adapter(
        wanted, [](const std::string&) {},
        [&](long done, long of) {  // some pieces are written and not checked yet
          if (!is_damaged && 0 < done && done < of) damage(part_path(wanted.out));
          is_damaged |= 0 < done && done < of;
        },
        [](long, long) {}, {});
    EXPECT_EQ(result.check.verdict, train::ParityVerdict::failed);
    EXPECT_EQ(result.parity.verdict, train::ParityVerdict::not_run);
    EXPECT_FALSE(result.is_released);
    EXPECT_FALSE(fs::exists(wanted.out));
    EXPECT_EQ(result.folder, folder / kept);
    EXPECT_EQ(read_json(folder / kept / "merge.json")["released"], false);
    EXPECT_NE(released_text(result).find("not released: the check failed"), std::string::npos);
    EXPECT_FALSE(fs::exists(part_path(wanted.out)));
  }
  const train::Parity again = check_merged(
      {wanted.base, wanted.adapter, folder / "merged.rejected", 6.0f}, [](const std::string&) {}, [](long, long) {},
      {});
  EXPECT_EQ(again.verdict, train::ParityVerdict::failed);
}

// Writes f32 weights, so that merging rounds them by little.
void write_random_weights(const fs::path& folder) {
  const model::Config config = formats::read_config(folder);
  train::ModelSettings settings;
  settings.path = folder;
  settings.init = options::Init::random;
  const train::LoadedModel random = train::load_weights(settings, config);
  engine::Network& network = random.cluster->network(0);
  formats::write_hf_weights(
      folder, config, network.inventory(),
      [&](size_t i, std::span<float> out) {
        const auto from = network.weight_f32(i);
        std::copy(from.begin(), from.end(), out.begin());
      },
      formats::TensorDType::f32);
}

// Of some tokens, on one device.
std::vector<float> logits_of(const fs::path& folder, const formats::PeftAdapter* adapter) {
  constexpr int kTokens = 24;
  const model::Config config = formats::read_config(folder);
  train::ModelSettings settings;
  settings.path = folder;
  settings.use = engine::NetworkUse::inference;
  const train::LoadedModel model = train::load_weights(settings, config);
  if (adapter) train::attach_adapter(*adapter, 0, *model.cluster);
  std::vector<int> ids, targets(kTokens, -1), positions, segments(kTokens, 0);
  for (int i = 0; i < kTokens; ++i) ids.push_back((i * 37 + 11) % config.vocab), positions.push_back(i);
  std::vector<float> out(static_cast<size_t>(kTokens) * static_cast<size_t>(config.vocab));
  model.cluster->network(0).logits({1, kTokens, ids, targets, positions, segments}, out);
  return out;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(double{a[i]} - b.at(i)));
  return largest;
}

// The mesh splits the columns whose norms DoRA divides by, and its magnitudes.
TEST(MergeAdapter, MergedDoraOfAMeshHasTheLogitsOfItsAdapterOnOneDevice) {
  const test::Scratch folder;
  const fs::path base = folder.path() / "base", runs = folder.path() / "runs", out = folder.path() / "merged";
  const experiment::Experiment e =
      test::quick_experiment(base, {"model.init=load", "train.steps=10", "lora.dora=true", "mesh.fsdp=2", "mesh.tp=2"});
  write_random_weights(base);
  const store::RunOutcome ran =
      run_blocking({.experiment = e, .runs_folder = runs, .resume = std::nullopt, .context = plan::load_once([] {
                                                                                    return plan::PlanContext::load(
                                                                                        MW_RESOURCES "/hardware");
                                                                                  })},
                   [](const Event&) {}, {});
  ASSERT_EQ(ran.finished.state, RunState::done) << ran.finished.error;
  const formats::PeftAdapter adapter = train::read_adapter(train::checkpoint_path(runs / "run-1", 10), base);
  ASSERT_TRUE(adapter.dora);
  EXPECT_EQ(train::merge(base, adapter, out, 2).merged, std::ssize(adapter.modules));
  const std::vector<float> beside = logits_of(base, &adapter), merged = logits_of(out, nullptr);
  const double effect = largest_difference(logits_of(base, nullptr), beside);
  EXPECT_GT(effect, 1e-2);
  EXPECT_LT(largest_difference(merged, beside), 1e-3 * effect);
  formats::PeftAdapter lora = adapter;
  lora.dora = false;
  for (formats::AdapterModule& module : lora.modules) module.m.clear();
  EXPECT_GT(largest_difference(logits_of(base, &lora), beside), 1e-2 * effect) << "the magnitudes change nothing";
}

}  // namespace
}  // namespace mw::jobs
