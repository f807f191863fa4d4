// SPDX-License-Identifier: Apache-2.0
// Rules whose facts no document can give yet, or only with gigabytes of files; the others are in
// tests/runs/diagnostics_test.cpp.
#include "core/lint/check.h"

#include <gmock/gmock.h>

#include "core/lint/check_table.h"

namespace mw::lint {
namespace {

using model::Role;
using testing::Contains;
using testing::Not;

CheckFacts facts_of(const char* id, Stack stack) {
  CheckFacts facts{.config = model::catalogue(id), .inventory = model::TensorInventory(model::catalogue(id))};
  facts.stack = stack;
  facts.purpose = stack == Stack::vllm_gpu || stack == Stack::vllm_tpu ? Purpose::serve : Purpose::train;
  facts.lora = LoraFacts{.targets = {Role::q_proj, Role::k_proj, Role::v_proj}, .module_path = ""};
  return facts;
}

std::vector<std::string> ids(const CheckFacts& facts) {
  std::vector<std::string> out;
  for (const Finding& f : check(facts).findings) out.push_back(f.id);
  return out;
}
std::vector<std::string> unchecked(const CheckFacts& facts) {
  std::vector<std::string> out;
  for (const Unchecked& u : check(facts).unchecked) out.push_back(u.id);
  return out;
}

TEST(Check, AnAdapterUnderAnotherPrefixIsNotFoundByTheServer) {
  CheckFacts facts = facts_of("gemma4-e4b", Stack::vllm_tpu);
  EXPECT_THAT(unchecked(facts), Not(Contains("PEFT-2")));  // merged weights have no adapter
  facts.exported.serve_as = ServeAs::adapter;
  EXPECT_THAT(unchecked(facts), Contains("PEFT-2"));
  facts.lora->adapter_tensors = {"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"};
  EXPECT_THAT(ids(facts), Contains("PEFT-2"));
  facts.lora->adapter_tensors = {"base_model.model.model.language_model.layers.0.self_attn.q_proj.lora_A.weight"};
  EXPECT_THAT(ids(facts), Not(Contains("PEFT-2")));
  facts = facts_of("gemma3-1b", Stack::vllm_gpu);
  facts.exported.serve_as = ServeAs::adapter;
  facts.lora->adapter_tensors = {"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"};
  EXPECT_THAT(ids(facts), Not(Contains("PEFT-2")));
}

TEST(Check, AKeyAdapterMustChangeTheValueWhereBothAreOne) {
  CheckFacts facts = facts_of("gemma4-31b", Stack::vllm_gpu);
  facts.exported.serve_as = ServeAs::adapter;
  EXPECT_THAT(ids(facts), Contains("PEFT-3"));
  facts.lora->targets = {Role::q_proj, Role::o_proj};
  EXPECT_THAT(ids(facts), Not(Contains("PEFT-3")));
  facts.lora->targets = {Role::k_proj};
  facts.exported.serve_as = ServeAs::merged;
  EXPECT_THAT(ids(facts), Not(Contains("PEFT-3")));
  facts = facts_of("gemma4-e4b", Stack::vllm_gpu);  // has V of its own
  facts.exported.serve_as = ServeAs::adapter;
  EXPECT_THAT(ids(facts), Not(Contains("PEFT-3")));
}

TEST(Check, FilesThatTunixDoesNotFindHaveTheHubsFilesAsFix) {
  CheckFacts facts = facts_of("gemma3-4b", Stack::tunix);
  facts.checkpoint = CheckpointFacts{.prefix = "model.language_model.", .embedding_rows = 262144};
  const Report report = check(facts);
  ASSERT_EQ(report.findings.front().id, "LOAD-1");
  const std::vector<Edit> wanted{{"model.path", nullptr}, {"model.id", "gemma3-4b"}};
  EXPECT_EQ(report.findings.front().fixes.front().edits, wanted);
  facts.checkpoint->prefix = "language_model.model.";
  EXPECT_THAT(ids(facts), Not(Contains("LOAD-1")));
}

TEST(Check, BorrowedKeysMissingInFilesStayEmptyInTunix) {
  CheckFacts facts = facts_of("gemma4-e2b", Stack::tunix);
  facts.checkpoint = CheckpointFacts{.prefix = "model.language_model.", .embedding_rows = 262144, .shared_kv = false};
  EXPECT_THAT(ids(facts), Contains("LOAD-1"));
  facts.checkpoint->shared_kv = true;
  EXPECT_THAT(ids(facts), Not(Contains("LOAD-1")));
}

TEST(Check, AShardedBaseIsNotMergedByTunix) {
  CheckFacts facts = facts_of("gemma3-1b", Stack::tunix);
  facts.exported.merge = Merge::tunix;
  EXPECT_THAT(unchecked(facts), Contains("EXP-1"));
  facts.checkpoint = CheckpointFacts{.prefix = "model.", .embedding_rows = 262144, .files = 3};
  EXPECT_THAT(ids(facts), Contains("EXP-1"));
  facts.checkpoint->files = 1;
  EXPECT_THAT(ids(facts), Not(Contains("EXP-1")));
}

TEST(Check, TokensOfARealExampleDecideOverSettings) {
  CheckFacts facts = facts_of("gemma4-31b", Stack::tunix);
  facts.chat.chat = Chat::gemma4;
  facts.chat.first_tokens = {105, 2364};
  EXPECT_THAT(ids(facts), Contains("TOK-1"));
  facts.chat.first_tokens = {2, 2, 105};
  EXPECT_THAT(ids(facts), Contains("TOK-1"));
  facts.chat.first_tokens = {2, 105};
  EXPECT_THAT(ids(facts), Not(Contains("TOK-1")));
}

TEST(Check, AListWithoutTargetsHasNoDefaultInPeft) {
  CheckFacts facts = facts_of("gemma4-12b", Stack::trl_fsdp);  // unified: no tower
  EXPECT_THAT(ids(facts), Not(Contains("PEFT-1")));
  facts.lora->targets.clear();
  EXPECT_THAT(ids(facts), Contains("PEFT-1"));
}

TEST(Check, ErrorsStandBeforeWarnings) {
  CheckFacts facts = facts_of("gemma4-31b", Stack::tunix);
  facts.lora->alpha = 1;
  facts.mesh.axes = {{"tp", 8}};
  const Report report = check(facts);
  ASSERT_GE(report.findings.size(), 2U);
  for (size_t i = 1; i < report.findings.size(); ++i)
    EXPECT_GE(report.findings[i - 1].severity, report.findings[i].severity);
}

TEST(Check, VersionsCompareByTheirNumbers) {
  EXPECT_EQ(compare_versions("0.1.8+33", "0.1.8"), 0);
  EXPECT_EQ(compare_versions("0.1.10", "0.1.9"), 1);
  EXPECT_EQ(compare_versions("0.12", "0.12.1"), -1);
  EXPECT_EQ(compare_versions("1.0", "1"), 0);
}

}  // namespace
}  // namespace mw::lint
