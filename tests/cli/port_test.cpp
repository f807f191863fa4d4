// SPDX-License-Identifier: GPL-3.0-or-later
// `port` reads recipes, writes experiments and documents, and never replaces its input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/files.h"
#include "tests/cli/process.h"
#include "tests/cli/project.h"

namespace mw::test {
namespace {

using testing::HasSubstr;

constexpr const char* kRecipe =
    "model = AutoModelForCausalLM.from_pretrained(\"google/gemma-3-1b-it\")\n"
    "args = SFTConfig(per_device_train_batch_size=1, max_length=1024, output_dir=make())\n"
    "SFTTrainer(model=model, args=args, peft_config=LoraConfig(r=8, target_modules=[\"q_proj\"]))\n";

TEST(PortCommand, WritesExperimentsThatPlan) {
  const Scratch scratch;
  const std::string script = scratch.put("train.py", kRecipe), yaml = scratch.put("a.yaml", "num_processes: 4\n"),
                    gpu = scratch / "gpu.json", tpu = scratch / "tpu.json", document = scratch / "port.md";
  const Result read = meshwright({"port", script, yaml, "--out", gpu, "--document", document, "--json"});
  ASSERT_EQ(read.exit_code, 0) << read.err;
  const Json said = parse_json(read.out, "port");
  EXPECT_EQ(said["processes"], 4);
  EXPECT_EQ(said["not_read"].size(), 1u);
  EXPECT_EQ(said["not_read"][0]["line"], 2);
  EXPECT_EQ(said["adaptations"].size(), 6u);
  EXPECT_EQ(said["experiment"]["mesh"]["fsdp"], 4);
  EXPECT_THAT(read_file(document), HasSubstr("## The six adaptations"));
  ASSERT_EQ(meshwright({"port", script, yaml, "--to", "tpu", "--tpu", "v5p-8", "--out", tpu}).exit_code, 0);
  for (const std::string& experiment : {gpu, tpu}) {
    const Result plan = meshwright({"plan", experiment, "--json"});
    EXPECT_EQ(plan.exit_code, 0) << plan.err;
    EXPECT_GT(parse_json(plan.out, "plan")["step"]["seconds"].get<double>(), 0);
  }
  const std::string back = scratch / "back.py";
  const Result trl = meshwright({"port", gpu, "--to", "trl", "--out", back});
  ASSERT_EQ(trl.exit_code, 0) << trl.err;
  EXPECT_THAT(trl.out, HasSubstr("per_device_train_batch_size=1"));
  EXPECT_EQ(meshwright({"port", back, scratch / "back.yaml", "--json"}).exit_code, 0);
}

TEST(PortCommand, BadInputIsOneErrorAndInputStays) {
  const Scratch scratch;
  const std::string script = scratch.put("train.py", kRecipe), broken = scratch.put("b.py", "SFTConfig(seed=1\n");
  const Result replace = meshwright({"port", script, "--out", script});
  EXPECT_EQ(replace.exit_code, 2);
  EXPECT_THAT(replace.err, HasSubstr("replace the input"));
  EXPECT_EQ(read_file(script), kRecipe);
  const Result bad = meshwright({"port", broken});
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_THAT(bad.err, HasSubstr("line 1: the bracket is not closed"));
  EXPECT_EQ(meshwright({"port", script, "--tpu", "8xh100"}).exit_code, 2);
  EXPECT_EQ(meshwright({"port", script, "--to", "moon"}).exit_code, 2);
  EXPECT_EQ(meshwright({"port", "/dev/zero"}).exit_code, 2);
  EXPECT_EQ(meshwright({"port"}).exit_code, 2);
}

}  // namespace
}  // namespace mw::test
