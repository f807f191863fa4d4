// SPDX-License-Identifier: Apache-2.0
// Rules whose input no document can give yet, or only with gigabytes of files; the others are in
// tests/lint/diagnostics_test.cpp.
#include "core/lint/check.h"

#include <gmock/gmock.h>

#include "core/lint/rules.h"
#include "core/model/catalogue.h"

namespace mw::lint {
namespace {

using model::Role;
using testing::Contains;
using testing::Not;

CheckInput input_of(const char* id, model::Stack stack) {
  CheckInput input{.config = model::catalogue_config(id),
                   .inventory = model::TensorInventory(model::catalogue_config(id))};
  input.stack = stack;
  input.purpose = stack == model::Stack::vllm_gpu || stack == model::Stack::vllm_tpu ? Purpose::serve : Purpose::train;
  input.lora = LoraInput{.targets = {Role::q_proj, Role::k_proj, Role::v_proj}};
  return input;
}

std::vector<std::string> ids(const CheckInput& input) {
  std::vector<std::string> out;
  for (const Finding& f : check(input).findings) out.push_back(f.id);
  return out;
}
std::vector<std::string> unchecked(const CheckInput& input) {
  std::vector<std::string> out;
  for (const UncheckedRule& u : check(input).unchecked) out.push_back(u.id);
  return out;
}

TEST(Check, ReportsAdapterUnderAnotherPrefix) {
  CheckInput input = input_of("gemma4-e4b", model::Stack::vllm_tpu);
  EXPECT_THAT(unchecked(input), Not(Contains("PEFT-2")));  // merged weights have no adapter
  input.exported.serve_as = options::AdapterServing::adapter;
  EXPECT_THAT(unchecked(input), Contains("PEFT-2"));
  input.lora->adapter_tensors = {"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"};
  EXPECT_THAT(ids(input), Contains("PEFT-2"));
  input.lora->adapter_tensors = {"base_model.model.model.language_model.layers.0.self_attn.q_proj.lora_A.weight"};
  EXPECT_THAT(ids(input), Not(Contains("PEFT-2")));
  input = input_of("gemma3-1b", model::Stack::vllm_gpu);
  input.exported.serve_as = options::AdapterServing::adapter;
  input.lora->adapter_tensors = {"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"};
  EXPECT_THAT(ids(input), Not(Contains("PEFT-2")));
}

TEST(Check, ReportsKeyAdapterThatLeavesTheSharedValueUnchanged) {
  CheckInput input = input_of("gemma4-31b", model::Stack::vllm_gpu);
  input.exported.serve_as = options::AdapterServing::adapter;
  EXPECT_THAT(ids(input), Contains("PEFT-3"));
  input.lora->targets = {Role::q_proj, Role::o_proj};
  EXPECT_THAT(ids(input), Not(Contains("PEFT-3")));
  input.lora->targets = {Role::k_proj};
  input.exported.serve_as = options::AdapterServing::merged;
  EXPECT_THAT(ids(input), Not(Contains("PEFT-3")));
  input = input_of("gemma4-e4b", model::Stack::vllm_gpu);  // has V of its own
  input.exported.serve_as = options::AdapterServing::adapter;
  EXPECT_THAT(ids(input), Not(Contains("PEFT-3")));
}

TEST(Check, OffersHubFilesForFilesThatTunixDoesNotFind) {
  CheckInput input = input_of("gemma3-4b", model::Stack::tunix);
  input.checkpoint = CheckpointInput{.prefix = "model.language_model.", .embedding_rows = 262144};
  const Report report = check(input);
  ASSERT_EQ(report.findings.front().id, "LOAD-1");
  const std::vector<Edit> wanted{{"model.path", nullptr}, {"model.id", "gemma3-4b"}};
  EXPECT_EQ(report.findings.front().fixes.front().edits, wanted);
  input.checkpoint->prefix = "language_model.model.";
  EXPECT_THAT(ids(input), Not(Contains("LOAD-1")));
}

TEST(Check, ReportsMissingBorrowedKeys) {
  CheckInput input = input_of("gemma4-e2b", model::Stack::tunix);
  input.checkpoint = CheckpointInput{.prefix = "model.language_model.", .embedding_rows = 262144, .shared_kv = false};
  EXPECT_THAT(ids(input), Contains("LOAD-1"));
  input.checkpoint->shared_kv = true;
  EXPECT_THAT(ids(input), Not(Contains("LOAD-1")));
}

TEST(Check, ReportsShardedBaseForTunixMerge) {
  CheckInput input = input_of("gemma3-1b", model::Stack::tunix);
  input.exported.merge = options::MergeTool::tunix;
  EXPECT_THAT(unchecked(input), Contains("EXP-1"));
  input.checkpoint = CheckpointInput{.prefix = "model.", .embedding_rows = 262144, .files = 3};
  EXPECT_THAT(ids(input), Contains("EXP-1"));
  input.checkpoint->files = 1;
  EXPECT_THAT(ids(input), Not(Contains("EXP-1")));
}

TEST(Check, PrefersTokensOfAnExampleToSettings) {
  CheckInput input = input_of("gemma4-31b", model::Stack::tunix);
  input.chat.chat = options::ChatFormat::gemma4;
  input.chat.first_tokens = {105, 2364};
  EXPECT_THAT(ids(input), Contains("TOK-1"));
  input.chat.first_tokens = {2, 2, 105};
  EXPECT_THAT(ids(input), Contains("TOK-1"));
  input.chat.first_tokens = {2, 105};
  EXPECT_THAT(ids(input), Not(Contains("TOK-1")));
}

TEST(Check, ReportsEmptyTargetsForPeft) {
  CheckInput input = input_of("gemma4-12b", model::Stack::trl_fsdp);  // unified: no tower
  EXPECT_THAT(ids(input), Not(Contains("PEFT-1")));
  input.lora->targets.clear();
  EXPECT_THAT(ids(input), Contains("PEFT-1"));
}

TEST(Check, ListsErrorsBeforeWarnings) {
  CheckInput input = input_of("gemma4-31b", model::Stack::tunix);
  input.lora->options.alpha = 1;
  input.mesh.axes = {{"tp", 8}};
  const Report report = check(input);
  ASSERT_GE(report.findings.size(), 2U);
  for (size_t i = 1; i < report.findings.size(); ++i)
    EXPECT_GE(report.findings[i - 1].severity, report.findings[i].severity);
}

TEST(Check, ComparesVersionsByTheirNumbers) {
  EXPECT_EQ(compare_versions("0.1.8+33", "0.1.8"), 0);
  EXPECT_EQ(compare_versions("0.1.10", "0.1.9"), 1);
  EXPECT_EQ(compare_versions("0.12", "0.12.1"), -1);
  EXPECT_EQ(compare_versions("1.0", "1"), 0);
}

}  // namespace
}  // namespace mw::lint
