// SPDX-License-Identifier: GPL-3.0-or-later
// What is predicted for a run covers all that it does: training steps, evaluation of held-out rows and the answers it
// samples, on one device and on every device of a mesh.
#include <gmock/gmock.h>

#include <filesystem>

#include "core/jobs/job.h"
#include "core/views/run_view.h"
#include "tests/store/store_fixture.h"

namespace mw::jobs {
namespace {

struct Case {
  const char* name;
  std::vector<std::string> sets;
};

std::vector<Case> cases() {
  return {
      {"answers come on top of a step's memory", {"train.batch=8", "train.eval_every=0"}},
      {"one row at a time: a held-out row is longer than those of two steps",
       {"train.batch=1", "train.steps=2", "train.remat=layer", "lora.targets=down_proj", "sample.max_new_tokens=1"}},
      {"packed rows in steps, plain ones in evaluation", {"train.batch=2", "data.packing=true", "data.max_len=96"}},
      {"short logits in steps, many in evaluation", {"train.batch=2", "train.loss_chunk=0", "data.loss=all"}},
      {"prompts longer than the rows of a step", {"train.batch=1", "train.remat=layer", "train.answers=8"}},
      {"a mesh whose last device has fewer rows", {"train.batch=3", "mesh.fsdp=2", "mesh.tp=2"}},
      {"a mesh with rows longer in evaluation",
       {"train.batch=2", "train.steps=2", "train.remat=layer", "mesh.fsdp=2", "lora.targets=down_proj"}},
      {"packed weights", {"train.batch=4", "train.dtype=bf16"}},
      {"magnitudes of DoRA", {"train.batch=4", "lora.dora=true", "train.remat=layer"}},
      {"magnitudes of DoRA on a mesh", {"train.batch=4", "lora.dora=true", "mesh.fsdp=2", "mesh.tp=2"}},
      {"packed weights on a mesh", {"train.batch=4", "train.dtype=bf16", "mesh.tp=4"}},
      {"no rows held out", {"train.batch=4", "data.eval_fraction=0"}},
      {"every weight trained", {"train.batch=1", "train.method=full", "train.remat=layer"}},
  };
}

views::RunView view_of(const Case& c, const std::filesystem::path& folder) {
  experiment::Experiment e = experiment::Experiment::load(MW_RESOURCES "/examples/tiny-lora.json");
  std::vector<std::string> sets{"train.steps=4",           "train.answers=2",      "train.eval_rows=24",
                                "train.eval_every=2",      "train.sample_every=2", "target.threads=2",
                                "train.checkpoint_every=0"};
  sets.insert(sets.end(), c.sets.begin(), c.sets.end());
  experiment::apply_sets(e, sets);
  views::RunView view;
  run_blocking({e, folder, std::nullopt}, [&](const Event& event) { view.feed(event); }, {});
  return view;
}

TEST(RunMemory, ThePredictedPeakCoversTrainingEvaluationAndSampling) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const test::Scratch folder;
    const views::RunView view = view_of(c, folder.path());
    ASSERT_EQ(view.state(), RunState::done) << view.error();
    for (const auto& [device, memory] : view.memory()) {
      const double said = static_cast<double>(view.predicted(device).value().total().value),
                   was = static_cast<double>(memory.peak.value);
      EXPECT_LE(was, said) << "device " << device;
      EXPECT_GE(was, 0.95 * said) << "device " << device;
    }
  }
}

}  // namespace
}  // namespace mw::jobs
