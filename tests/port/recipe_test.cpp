// SPDX-License-Identifier: Apache-2.0
// Recipes of TRL and PEFT as experiments, their adaptations to JAX, and the way back.
#include "core/port/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/files.h"
#include "core/lint/check.h"
#include "core/port/port_report.h"
#include "core/port/trl_settings.h"
#include "tests/base/scratch.h"
#include "tests/shipped.h"

namespace mw::port {
namespace {

using test::context;
using testing::HasSubstr;

constexpr const char* kScript = R"(
from trl import SFTConfig, SFTTrainer
rows = load_dataset("org/rows", split="train").map(render)
name = "google/gemma-3-1b-it"
model = AutoModelForCausalLM.from_pretrained(name, dtype=torch.bfloat16, attn_implementation="eager")
args = SFTConfig(output_dir=f"{name}-out", per_device_train_batch_size=2, gradient_accumulation_steps=4,
                 max_length=2048, learning_rate=1e-4, lr_scheduler_type="cosine", warmup_ratio=0.1, max_steps=55,
                 num_train_epochs=3, gradient_checkpointing=True, bf16=True, seed=7, logging_steps=5)
lora = LoraConfig(r=16, lora_alpha=32, lora_dropout=0.05, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
SFTTrainer(model=model, args=args, train_dataset=rows, peft_config=lora).train()
)";
constexpr const char* kAccelerate =
    "distributed_type: FSDP\nfsdp_config:\n  fsdp_activation_checkpointing: false\n  fsdp_version: 2\n"
    "mixed_precision: bf16\nnum_machines: 1\nnum_processes: 4\n";

PortedRecipe ported(const std::string& script, const std::string& accelerate = {}, const std::string& gpu = {}) {
  const test::Scratch scratch;
  std::vector<std::filesystem::path> files{scratch.put("train.py", script)};
  if (!accelerate.empty()) files.push_back(scratch.put("accelerate.yaml", accelerate));
  return read_recipe(files, gpu, context());
}
Json value(const PortedRecipe& recipe, const std::string& key) {
  return recipe.experiment.value(key);
}
const MappedSetting* mapped(const PortedRecipe& recipe, const std::string& name) {
  for (const MappedSetting& m : recipe.mapped)
    if (m.from.name == name) return &m;
  return nullptr;
}
std::string missing(const PortedRecipe& recipe, const std::string& name) {
  for (const UnmatchedSetting& u : recipe.without_counterpart)
    if (u.from.name == name) return u.reason;
  return {};
}

TEST(PortedRecipes, BecomeValidExperiments) {
  const PortedRecipe r = ported(kScript, kAccelerate);
  for (const Problem& p : r.experiment.validate()) EXPECT_NE(p.severity, Severity::error) << to_text(p);
  EXPECT_EQ(value(r, "model.id"), "gemma3-1b");
  EXPECT_EQ(value(r, "mesh.fsdp"), 4);
  EXPECT_EQ(value(r, "train.batch"), 8);  // 4 processes with 2 rows each
  EXPECT_EQ(value(r, "train.accumulation"), 4);
  EXPECT_EQ(value(r, "data.max_len"), 2048);
  EXPECT_EQ(value(r, "train.steps"), 55);
  EXPECT_EQ(value(r, "train.epochs"), 0);        // max_steps wins, as in transformers
  EXPECT_EQ(value(r, "train.warmup_steps"), 6);  // 5.5, rounded up
  EXPECT_EQ(value(r, "train.schedule"), "cosine");
  EXPECT_EQ(value(r, "train.remat"), "layer");
  EXPECT_EQ(value(r, "train.attention"), "materialised");
  EXPECT_EQ(value(r, "lora.targets"), Json::parse(R"(["q_proj", "v_proj"])"));
  EXPECT_EQ(value(r, "lora.alpha"), 32);
  EXPECT_EQ(value(r, "target.id"), "4xh100");
  EXPECT_EQ(mapped(r, "learning_rate")->from.place.line, 7);
  EXPECT_THAT(mapped(r, "learning_rate")->from.place.file, HasSubstr("train.py"));
  EXPECT_THAT(missing(r, "fsdp_activation_checkpointing"), HasSubstr("gradient_checkpointing decides"));
  EXPECT_THAT(missing(r, "logging_steps"), HasSubstr("every step"));
  std::vector<std::string> unread;
  for (const formats::ConfigSetting& s : r.not_read) unread.push_back(s.name);
  EXPECT_THAT(unread, testing::ElementsAre("map", "output_dir"));
}

TEST(PortedRecipes, LibraryDefaultsAreNamedAsAssumed) {
  const PortedRecipe r = ported("SFTTrainer(model=\"google/gemma-2-2b\", args=SFTConfig(packing=True))\n");
  EXPECT_EQ(value(r, "model.id"), "gemma2-2b");
  EXPECT_EQ(value(r, "train.learning_rate"), 2e-5);
  EXPECT_EQ(value(r, "train.method"), "full");
  EXPECT_EQ(value(r, "data.max_len"), 1024);
  std::map<std::string, std::string> assumed;
  for (const AssumedSetting& a : r.assumed) assumed[a.key] = a.reason;
  EXPECT_THAT(assumed["train.learning_rate"], HasSubstr("TRL's default"));
  EXPECT_THAT(assumed["train.method"], HasSubstr("no adapter"));
  EXPECT_THAT(assumed["mesh.fsdp"], HasSubstr("number of processes"));
  EXPECT_TRUE(assumed.contains("target.id"));
}

TEST(PortedRecipes, MeshesFollowAccelerate) {
  const auto mesh = [](const std::string& yaml) {
    return ported("TrainingArguments(per_device_train_batch_size=1)\n", yaml).experiment.json().at("mesh");
  };
  EXPECT_EQ(mesh("distributed_type: MULTI_GPU\nnum_processes: 8\n"), Json::parse(R"({"data": 8})"));
  EXPECT_EQ(mesh("distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\nnum_processes: 8\n"),
            Json::parse(R"({"fsdp": 8})"));
  EXPECT_EQ(mesh("distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 2\nnum_processes: 2\n"),
            Json::parse(R"({"data": 2})"));
  EXPECT_EQ(mesh("distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: HYBRID_SHARD\nnum_machines: 2\n"
                 "num_processes: 16\n"),
            Json::parse(R"({"data": 2, "fsdp": 8})"));
  EXPECT_EQ(mesh("distributed_type: FSDP\nparallelism_config:\n  parallelism_config_dp_replicate_size: 2\n"
                 "  parallelism_config_dp_shard_size: 4\nnum_processes: 8\n"),
            Json::parse(R"({"data": 2, "fsdp": 4})"));
}

TEST(PortedRecipes, ValuesOutsideTheKeysRangeHaveNoCounterpart) {
  const PortedRecipe r = ported(
      "SFTConfig(learning_rate=50, max_length=None, num_train_epochs=-1, seed=1.5, "
      "gradient_accumulation_steps=\"auto\")\n"
      "LoraConfig(target_modules=[\"c_attn\"], r=8)\nDPOConfig(beta=0.1)\nBitsAndBytesConfig(load_in_4bit=True)\n");
  for (const char* name : {"learning_rate", "max_length", "num_train_epochs", "seed", "gradient_accumulation_steps",
                           "target_modules", "beta", "load_in_4bit"})
    EXPECT_NE(missing(r, name), "") << name;
  EXPECT_THAT(missing(r, "beta"), HasSubstr("does not belong"));
  EXPECT_THAT(missing(r, "load_in_4bit"), HasSubstr("QLoRA"));
  for (const Problem& p : r.experiment.validate()) EXPECT_NE(p.severity, Severity::error) << to_text(p);
}

TEST(PortedRecipes, LaterFilesReplaceEarlierValues) {
  const PortedRecipe r = ported("SFTConfig(learning_rate=1e-3, max_grad_norm=0.5)\n", "learning_rate: 2e-3\n");
  EXPECT_EQ(value(r, "train.learning_rate"), 2e-3);
  EXPECT_THAT(mapped(r, "learning_rate")->note, HasSubstr("replaced by"));
}

TEST(PortedRecipes, FilesWithoutARecipeAreOneError) {
  EXPECT_THROW(ported("print('hello')\n"), Error);
  EXPECT_THROW(ported("SFTConfig(seed=1)\n", "num_processes: 4\n", "2xh100"), Error);
  EXPECT_THROW(ported("SFTConfig(seed=1)\n", {}, "4xnothing"), Error);
}

TEST(SettingsMap, HubNamesAreCatalogueModels) {
  for (const auto& [hub, id] :
       std::vector<std::pair<std::string, std::string>>{{"google/gemma-3-12b-it", "gemma3-12b"},
                                                        {"google/gemma-4-26B-A4B-it", "gemma4-26b-a4b"},
                                                        {"google/gemma-2-2b", "gemma2-2b"},
                                                        {"meta-llama/Meta-Llama-3.1-8B-Instruct", "llama3.1-8b"},
                                                        {"Qwen/Qwen3-32B", "qwen3-32b"},
                                                        {"Qwen/Qwen2.5-0.5B", ""}})
    EXPECT_EQ(catalogue_model(hub), id) << hub;
}

TEST(Adaptations, AreSixWithFiguresOnBothTargetsAndKnownRules) {
  const PortedRecipe r = ported(kScript, kAccelerate);
  const PortedToTpu tpu = ported_to_tpu(r, "v5p-8", context());
  EXPECT_EQ(tpu.experiment.value("target.id"), "v5p-8");
  EXPECT_EQ(tpu.experiment.value("train.stack"), "tunix");
  EXPECT_EQ(tpu.experiment.value("train.batch").get<int>() * tpu.experiment.value("train.accumulation").get<int>(), 32);
  const std::vector<Adaptation> six = adaptations(r, tpu, context());
  ASSERT_EQ(six.size(), 6u);
  for (const Adaptation& a : six) {
    EXPECT_FALSE(a.before.empty() || a.after.empty() || a.reason.empty() || a.rules.empty()) << a.id;
    ASSERT_EQ(a.effects.size(), 2u) << a.id;
    EXPECT_EQ(a.effects[0].target, "4xh100");
    EXPECT_EQ(a.effects[1].target, "v5p-8");
    for (const AdaptationEffect& e : a.effects)
      for (const VariantFigures& f : {e.before, e.after}) {
        EXPECT_FALSE(f.error) << a.id << ": " << f.error.value_or("");
        EXPECT_GT(f.seconds, 0) << a.id;
        EXPECT_GT(f.peak.value, 0) << a.id;
        EXPECT_GT(f.usd_per_1000_steps, 0) << a.id;
      }
    for (const GuardRule& rule : a.rules) EXPECT_NE(lint::find_rule(rule.id), nullptr) << rule.id;
  }
  const auto& names = six[1];
  EXPECT_EQ(names.effects[1].before.trained, 0);  // PEFT's names match no module of Qwix
  EXPECT_GT(names.effects[1].after.trained, 0);
  EXPECT_THAT(names.after, HasSubstr("q_einsum"));
  const auto& remat = six[3];
  for (const AdaptationEffect& e : remat.effects) {
    EXPECT_LT(e.after.peak, e.before.peak);
    EXPECT_GT(e.after.seconds, e.before.seconds);
  }
  const auto& sharding = six[2];
  EXPECT_LT(sharding.effects[1].after.peak, sharding.effects[1].before.peak);
  EXPECT_THROW(ported_to_tpu(r, "8xh100", context()), Error);
}

TEST(Adaptations, FullTrainingHasNoAdapterFigures) {
  const PortReport report = [] {
    const test::Scratch scratch;
    return port_recipe(
        {{scratch.put("t.py", "SFTTrainer(model=\"google/gemma-3-1b-it\", args=SFTConfig(bf16=True))\n")}, {}, {}},
        context());
  }();
  ASSERT_EQ(report.adaptations.size(), 6u);
  EXPECT_TRUE(report.adaptations[1].effects.empty());
  EXPECT_TRUE(report.adaptations[5].effects.empty());
  EXPECT_THAT(report.adaptations[1].effect_note, HasSubstr("no adapters"));
}

TEST(Reports, UnknownModelsGiveSettingsWithoutAdaptations) {
  const test::Scratch scratch;
  const PortReport report = port_recipe(
      {{scratch.put("t.py", "SFTTrainer(model=\"org/own-7b\", args=SFTConfig(seed=3))\n")}, {}, {}}, context());
  EXPECT_TRUE(report.no_plan);
  EXPECT_TRUE(report.adaptations.empty());
  EXPECT_THAT(report_text(report), HasSubstr("seed"));
  EXPECT_THAT(report_json(report)["no_adaptations"].get<std::string>(), HasSubstr("model"));
}

TEST(Reports, DocumentsListEverything) {
  const test::Scratch scratch;
  const PortReport report =
      port_recipe({{scratch.put("train.py", kScript), scratch.put("a.yaml", kAccelerate)}, {}, "v5p-8"}, context());
  const std::string document = report_document(report), text = report_text(report);
  for (const char* part : {"## Mapped settings", "## Not read", "## Without counterpart", "### 1. Mesh",
                           "### 6. Merging", "PartitionSpec", "remat_config", "COV-3", "v5p-8", "4xh100"})
    EXPECT_THAT(document, HasSubstr(part));
  EXPECT_THAT(text, HasSubstr("2 expressions not read"));
  EXPECT_EQ(report_json(report)["adaptations"].size(), 6u);
}

// What is written for TRL and read again is the same experiment, as far as TRL has the settings.
TEST(TrlSettings, ReadBackToTheSameExperiment) {
  experiment::Experiment e;
  e.set_value("name", "round trip");
  e.set_value("model.id", "gemma3-4b");
  e.set_value("target.id", "8xh100");
  e.set_value("mesh.fsdp", 8);
  e.set_value("lora.rank", 64);
  e.set_value("lora.alpha", 128);
  e.set_value("lora.rslora", true);
  e.set_value("lora.targets", Json::array({"q_proj", "o_proj"}));
  e.set_value("lora.rank_pattern", Json{{"layers\\.0\\..*q_proj", 8}});
  e.set_value("data.max_len", 4096);
  e.set_value("data.packing", true);
  e.set_value("data.loss", "assistant");
  e.set_value("train.steps", 500);
  e.set_value("train.batch", 16);
  e.set_value("train.accumulation", 2);
  e.set_value("train.learning_rate", 3e-4);
  e.set_value("train.schedule", "cosine");
  e.set_value("train.final_ratio", 0.1);
  e.set_value("train.remat", "layer");
  e.set_value("train.loss_chunk", 256);
  e.set_value("train.clip", 0.3);
  e.set_value("serve.max_num_seqs", 8);
  const TrlSettings settings = trl_settings(e, context());
  const test::Scratch scratch;
  const PortedRecipe back = read_recipe(
      {scratch.put("train.py", settings.script), scratch.put("a.yaml", settings.accelerate)}, {}, context());
  EXPECT_TRUE(back.not_read.empty());
  for (const TrlSetting& s : settings.settings) {
    if (s.key == "mesh") continue;
    EXPECT_EQ(back.experiment.value(s.key), e.value(s.key)) << s.key;
  }
  EXPECT_EQ(back.experiment.json().at("mesh"), e.json().at("mesh"));
  ASSERT_EQ(settings.without_counterpart.size(), 1u);
  EXPECT_EQ(settings.without_counterpart[0].key, "serve.max_num_seqs");
  e.set_value("kind", "serve");
  EXPECT_THROW(trl_settings(e, context()), Error);
}

// The Trainer takes the labels away to smooth them; TRL's loss in chunks reads them.
TEST(TrlSettings, SmoothedLabelsHaveNoLossInChunks) {
  experiment::Experiment e;
  e.set_value("model.id", "gemma3-4b");
  e.set_value("target.id", "1xh100");
  e.set_value("train.loss_chunk", 256);
  EXPECT_THAT(trl_settings(e, context()).script, HasSubstr("chunked_nll"));
  e.set_value("train.label_smoothing", 0.1);
  const std::string script = trl_settings(e, context()).script;
  EXPECT_THAT(script, testing::Not(HasSubstr("chunked_nll")));
  EXPECT_THAT(script, HasSubstr("label_smoothing_factor=0.1"));
}

}  // namespace
}  // namespace mw::port
