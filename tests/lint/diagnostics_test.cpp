// SPDX-License-Identifier: GPL-3.0-or-later
// Every rule of the checker from the document's side: a document that trips it, one that does not, and the document
// after each of its fixes.
#include "core/plan/document/diagnostics.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "core/formats/safetensors/safetensors.h"
#include "core/plan/experiment/experiment_plan.h"
#include "tests/shipped.h"
#include "tests/store/store_fixture.h"

namespace mw::plan {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using Sets = std::vector<std::string>;

using test::context;
using test::Scratch;

// The paper's run, with everything as it should be.
experiment::Experiment sound() {
  return experiment::Experiment::from_json(parse_json(R"({
    "model": {"id": "gemma4-31b"}, "target": {"id": "v5p-8"}, "mesh": {"fsdp": 1, "tp": 4},
    "lora": {"rank": 64, "alpha": 64}, "data": {"max_len": 3072},
    "train": {"dtype": "bf16", "remat": "layer", "batch": 2, "loss_chunk": 256},
    "stack": {"versions": ["flax==0.12.6", "qwix==0.1.8", "safetensors==0.7.0", "transformers==5.0.0", "jax==0.8.3",
                           "google-tunix==0.1.8"]}})",
                                                      "test"));
}

experiment::Experiment with(const Sets& sets) {
  experiment::Experiment e = sound();
  experiment::apply_sets(e, sets);
  return e;
}

Diagnosis look(const experiment::Experiment& e, DiagnosticFacts known = {}) {
  if (!known.real_share) known.real_share = 0.9;
  if (!known.system_turns) known.system_turns = false;
  if (!known.memory) known.memory = lint::MemoryInput{Bytes(100), Bytes(50), Bytes(1)};
  return diagnose(e, context(), known);
}

std::vector<std::string> ids(const Diagnosis& d) {
  std::vector<std::string> out;
  for (const Diagnostic& x : d.found) out.push_back(x.problem.id);
  return out;
}

const Diagnostic& of(const Diagnosis& d, const std::string& id) {
  const auto at = std::find_if(d.found.begin(), d.found.end(), [&](const auto& x) { return x.problem.id == id; });
  EXPECT_NE(at, d.found.end()) << id;
  return *at;
}

// Trips; has fixes; after each of them it does not trip any more, and nothing else does that did not before.
void trips(const std::string& id, const experiment::Experiment& e, const DiagnosticFacts& known = {}) {
  SCOPED_TRACE(id);
  const Diagnosis before = look(e, known);
  ASSERT_THAT(ids(before), Contains(id));
  const Diagnostic& d = of(before, id);
  EXPECT_FALSE(d.why.empty());
  EXPECT_FALSE(d.problem.message.empty());
  ASSERT_FALSE(d.fixes.empty());
  EXPECT_THAT(d.problem.fix, HasSubstr(d.fixes.front().label));
  for (const lint::Fix& fix : d.fixes) {
    SCOPED_TRACE(fix.label);
    ASSERT_FALSE(fix.edits.empty());
    experiment::Experiment fixed = e;
    apply(fixed, fix);
    EXPECT_TRUE(fixed.validate().empty());
    EXPECT_THAT(ids(look(fixed, known)), Not(Contains(id)));
  }
  // The first fix as the command line takes it does the same.
  experiment::Experiment fixed = e;
  const Json told = to_json(d);
  for (const Json& set : told["fixes"][0]["set"]) experiment::apply_sets(fixed, {set.get<std::string>()});
  EXPECT_THAT(ids(look(fixed, known)), Not(Contains(id)));
}

void passes(const std::string& id, const experiment::Experiment& e, const DiagnosticFacts& known = {}) {
  EXPECT_THAT(ids(look(e, known)), Not(Contains(id)));
}

const std::string kPaperModules =
    "lora.module_path=.*q_einsum|.*kv_einsum|.*gate_proj|.*down_proj|.*up_proj|.*attn_vec_einsum";

TEST(Diagnostics, AValidExperimentHasNoFindingsAndNoUncheckedRules) {
  const Diagnosis d = look(sound());
  EXPECT_THAT(ids(d), testing::IsEmpty());
  std::vector<std::string> left;
  for (const auto& u : d.unchecked) left.push_back(u.id);
  EXPECT_THAT(left, testing::ElementsAre("LOAD-1"));  // the model's files are not here
}

TEST(Diagnostics, ThePapersExpressionMissesTheGlobalLayersKeys) {
  const experiment::Experiment e = with({kPaperModules});
  trips("COV-1", e);
  EXPECT_THAT(ids(look(e)), Not(Contains("COV-3")));  // said once
  const Diagnosis d = look(e);
  EXPECT_EQ(of(d, "COV-1").problem.severity, Severity::error);
  EXPECT_THAT(of(d, "COV-1").problem.message, HasSubstr("10 global layers"));
  EXPECT_EQ(of(d, "COV-1").fixes[0].edits[0].value, kPaperModules.substr(kPaperModules.find('=') + 1) + "|.*k_einsum");
  passes("COV-1", with({kPaperModules + "|.*k_einsum"}));
  passes("COV-1", with({kPaperModules, "model.id=gemma3-27b", "stack.model_config=num_embed=262208"}));
}

TEST(Diagnostics, TpOfEightFailsOnTheFourGlobalKeyValueHeads) {
  const experiment::Experiment e = with({"target.id=v5p-16", "mesh.fsdp=1", "mesh.tp=8"});
  trips("TP-2", e);
  const Diagnosis d = look(e);
  EXPECT_THAT(of(d, "TP-2").problem.message, HasSubstr("4 KV heads of the global layers"));
  EXPECT_EQ(of(d, "TP-2").problem.expected, "tp of 1, 2, 4");
  EXPECT_EQ(set_text(of(d, "TP-2").fixes[0]), "--set mesh.fsdp=2 --set mesh.tp=4");
  EXPECT_THAT(ids(d), Not(Contains("TP-1")));
  passes("TP-2", sound());
  trips("TP-2", with({"model.id=gemma4-12b", "mesh.fsdp=2", "mesh.tp=2"}));
  trips("TP-2", with({"model.id=gemma4-26b-a4b"}));
}

TEST(Diagnostics, Coverage) {
  trips("COV-2", with({"lora.module_path=.*q_einsum|.*kv_einsum|.*k_einsum|.*gate_proj|.*down_proj|.*up_proj"}));
  passes("COV-2", with({kPaperModules}));
  trips("COV-3", with({"lora.module_path=.*q_proj|.*k_proj|.*v_proj|.*o_proj|.*gate_proj|.*up_proj|.*down_proj"}));
  passes("COV-3", with({kPaperModules + "|.*k_einsum"}));
  trips("COV-4", with({"lora.module_path=q_einsum|.*kv_einsum|.*k_einsum"}));
  trips("COV-4", with({R"(lora.module_path=layers\.\d+\.attn\.q_einsum)"}));
  trips("COV-4", with({"lora.module_path=.*q_einsum|("}));
  passes("COV-4", with({kPaperModules}));
  trips("COV-5", with({"model.id=gemma4-26b-a4b", "mesh.fsdp=2", "mesh.tp=2"}));
  trips("COV-5", with({"model.id=gemma4-26b-a4b", "mesh.fsdp=2", "mesh.tp=2", kPaperModules + "|.*k_einsum"}));
  passes("COV-5", with({"model.id=gemma4-26b-a4b", "mesh.fsdp=2", "mesh.tp=2", "lora.targets=q_proj,v_proj"}));
  passes("COV-5", sound());
}

TEST(Diagnostics, TheSuggestedExpressionMatchesAllTargets) {
  const Diagnosis d = look(with({R"(lora.module_path=layers\.\d+\.attn\.q_einsum|.*kv_einsum|.*k_einsum)"}));
  EXPECT_EQ(of(d, "COV-4").fixes[0].edits[0].value, R"(.*layers/\d+/attn/q_einsum|.*kv_einsum|.*k_einsum)");
}

TEST(Diagnostics, AnAdapterOnDiskLacksModules) {
  const fs::path adapter = fs::path(MW_FIXTURES) / "peft_adapter";
  trips("COV-3", with(Sets{"target.id=2xh100", "lora.adapter=" + adapter.string(), "model.id=gemma3-1b", "mesh.tp=1",
                           "mesh.fsdp=2"}));
}

TEST(Diagnostics, ScaleAndRemat) {
  trips("SCALE-1", with({"lora.rank=16", "lora.alpha=2"}));
  trips("SCALE-1", with({"lora.rank=8", "lora.alpha=64"}));
  trips("SCALE-1", with({"stack.versions=qwix==0.0.9"}));
  EXPECT_EQ(of(look(with({"stack.versions=qwix==0.0.9"})), "SCALE-1").problem.severity, Severity::error);
  passes("SCALE-1", with({"lora.rank=64", "lora.alpha=16"}));
  trips("VARIANT-1", with({"lora.dora=true"}));
  trips("VARIANT-1", with({"lora.plus_ratio=16"}));
  passes("VARIANT-1", sound());
  passes("VARIANT-1", with({"target.id=cpu", "model.id=gemma3-270m", "lora.dora=true"}));
  passes("VARIANT-1", with({"target.id=2xh100", "lora.dora=true", "lora.plus_ratio=16", "mesh.tp=1", "mesh.fsdp=2"}));
  trips("REMAT-1", with({"stack.versions=google-tunix==0.1.7"}));
  passes("REMAT-1", with({"stack.versions=google-tunix==0.1.7", "train.remat=none"}));
  trips("REMAT-2", with({"train.remat=none", "data.max_len=8192"}));
  passes("REMAT-2", with({"train.remat=none", "data.max_len=1024"}));
}

TEST(Diagnostics, Meshes) {
  trips("MESH-SIZE", with({"mesh.tp=2"}));
  trips("TP-1", with({"model.id=gemma3-4b", "stack.model_config=num_embed=262208", "target.id=v6e-8", "mesh.tp=8"}));
  passes("TP-1", with({"model.id=gemma3-12b", "stack.model_config=num_embed=262208", "target.id=v6e-8", "mesh.tp=8"}));
  trips("FSDP-1", with({"model.id=gemma3-1b", "target.id=v5e-256", "mesh.fsdp=256", "mesh.tp=1", "train.batch=256"}));
  passes("FSDP-1", with({"model.id=gemma3-27b", "stack.model_config=num_embed=262208", "target.id=v5e-256",
                         "mesh.fsdp=256", "mesh.tp=1", "train.batch=256"}));
  trips("BATCH-1", with({"mesh.fsdp=4", "mesh.tp=1", "train.batch=2", "train.accumulation=4"}));
  trips("BATCH-1", with({"mesh.fsdp=4", "mesh.tp=1", "train.batch=6"}));
  passes("BATCH-1", with({"mesh.fsdp=4", "mesh.tp=1", "train.batch=8"}));
  trips("MESH-1", with({"mesh.fsdp=1", "mesh.tp=2", "mesh.data=2"}));
  passes("MESH-1", with({"target.id=4xh100", "mesh.fsdp=2", "mesh.tp=1", "mesh.data=2"}));
}

TEST(Diagnostics, ABatchThatDoesNotDivideKeepsTheRowsOfAStep) {
  const Diagnosis d = look(with({"mesh.fsdp=4", "mesh.tp=1", "train.batch=2", "train.accumulation=4"}));
  EXPECT_EQ(set_text(of(d, "BATCH-1").fixes[0]), "--set train.batch=4 --set train.accumulation=2");
  EXPECT_EQ(of(d, "BATCH-1").problem.severity, Severity::warning);  // Tunix replicates
}

TEST(Diagnostics, Sharding) {
  trips("SHARD-1", with({"stack.versions=qwix==0.1.5"}));
  passes("SHARD-1", sound());
  trips("SHARD-2", with({"stack.versions=google-tunix==0.1.6"}));
  passes("SHARD-2", with({"stack.versions=google-tunix==0.1.7"}));
  trips("RANK-1", with({"target.id=8xh100", "mesh.fsdp=8", "mesh.tp=1", "lora.rank=20", "lora.alpha=20",
                        R"(lora.module_path=.*language_model\..*\.(q_proj|v_proj))", "lora.targets=q_proj,v_proj",
                        "train.batch=8"}));
  passes("RANK-1", with({"lora.rank=20", "lora.alpha=20"}));  // Tunix keeps the rank whole
}

TEST(Diagnostics, AnAxisOnALineWhereARingIsPossible) {
  // 4x4 of v5e has no wraparound links: each axis along a side lies on a line.
  const experiment::Experiment e = with({"model.id=gemma3-1b", "target.id=v5e-16", "mesh.fsdp=4", "mesh.tp=4",
                                         "train.batch=16", R"(sharding.places=["fsdp = 0", "tp = 1"])"});
  const Diagnosis d = look(e);
  ASSERT_THAT(ids(d), Contains("WRAP-1"));
  EXPECT_THAT(of(d, "WRAP-1").problem.message, HasSubstr("=4 lies on a line"));
  EXPECT_EQ(of(d, "WRAP-1").problem.found, "a line of 4 chips");
  trips("WRAP-1", e);  // and not after its fix
  // The same axes where a side of 16 closes, and four chips of 2x2, which close to a ring.
  passes("WRAP-1", with({"model.id=gemma3-1b", "target.id=v5e-256", "mesh.fsdp=16", "mesh.tp=16", "train.batch=16",
                         R"(sharding.places=["fsdp = 0", "tp = 1"])"}));
  passes("WRAP-1", sound());
}

TEST(Diagnostics, AnAxisWithSumsInEveryLayerOverTheNetwork) {
  const experiment::Experiment e =
      with({"target.id=16xh100", "mesh.fsdp=1", "mesh.tp=16", "train.stack=maxtext", "train.batch=16"});
  const Diagnosis d = look(e);
  ASSERT_THAT(ids(d), Contains("NET-1"));
  EXPECT_EQ(of(d, "NET-1").problem.found, "tp over 2 nodes of 8 devices");
  EXPECT_EQ(set_text(of(d, "NET-1").fixes[0]), "--set mesh.fsdp=4 --set mesh.tp=4");
  trips("NET-1", e);
  // By its place only, between slices; with fsdp and data over the network.
  trips("NET-1", with({"target.id=2xv5p-8", "mesh.fsdp=2", "mesh.tp=4", "train.batch=4",
                       R"(sharding.places=["fsdp = 1", "tp = 0, 2"])"}));
  passes("NET-1", with({"target.id=2xv5p-8", "mesh.fsdp=2", "mesh.tp=4", "train.batch=4"}));
  passes("NET-1", with({"target.id=16xh100", "mesh.fsdp=16", "mesh.tp=1", "train.batch=16"}));
  passes("NET-1", sound());
}

// Tunix and TorchAX have the axes fsdp and tp only, so that fsdp crosses the network; MaxText has copies in the slices.
TEST(Diagnostics, TheDefaultMeshOnSeveralSlicesIsLegal) {
  for (const auto& [stack, mesh] : {std::pair("tunix", "fsdp 2, tp 4"), std::pair("torchax", "fsdp 2, tp 4"),
                                    std::pair("maxtext", "data 2, fsdp 4, tp 1")}) {
    experiment::Experiment e = experiment::Experiment::from_json(parse_json(R"({
      "model": {"id": "gemma3-4b"}, "target": {"id": "2xv5p-8"}, "lora": {"rank": 16, "alpha": 16},
      "data": {"max_len": 512}, "train": {"batch": 8}})",
                                                                            "test"));
    e.set("train.stack", stack);
    EXPECT_EQ(mesh::to_text(planned_mesh(e, context())), mesh);
    EXPECT_THAT(ids(look(e)), Not(testing::AnyOf(Contains("MESH-1"), Contains("MESH-SIZE"), Contains("NET-1"))))
        << stack;
  }
}

// On this machine's virtual devices: the engine's own rules and none of Tunix's.
experiment::Experiment here(const std::vector<std::string>& overrides, const Sets& sets = {}) {
  experiment::Experiment e = experiment::Experiment::from_json(parse_json(R"({
    "model": {"id": "gemma3-4b"}, "target": {"id": "cpu"}, "mesh": {"fsdp": 2, "tp": 4},
    "lora": {"rank": 16, "alpha": 16}, "data": {"max_len": 512}, "train": {"dtype": "f32", "batch": 4},
    "stack": {"model_config": ["num_embed=262208"]}})",
                                                                          "test"));
  experiment::apply_sets(e, sets);
  if (!overrides.empty()) e.set_value("sharding.overrides", overrides);
  return e;
}

TEST(Diagnostics, ASpecOfTheWrongRankIsCaughtBeforeARun) {
  trips("SPEC-RANK", here({"q_einsum = (tp, fsdp, -, -)"}));
  trips("SPEC-RANK", here({"final_norm = (-, tp)", "q_einsum = (tp, fsdp, -)"}));
  passes("SPEC-RANK", here({"q_einsum = (tp, fsdp, -)"}));
  passes("SPEC-RANK", here({}));
  const Diagnosis d = look(here({"q_einsum = (tp, fsdp, -, -)"}));
  EXPECT_EQ(of(d, "SPEC-RANK").problem.severity, Severity::error);
  EXPECT_EQ(of(d, "SPEC-RANK").fixes[0].label, "Use (tp, fsdp, -)");
  trips("SPEC-RANK", with({"sharding.overrides=q_einsum = (tp, fsdp, -, -)"}));
  const auto all = ids(diagnostics(with({"sharding.overrides=q_einsum = (tp, fsdp, -, -)"}), context()));
  EXPECT_EQ(std::count(all.begin(), all.end(), "SPEC-RANK"), 1);  // the plan says it, too
}

TEST(Diagnostics, AnInvalidShardingRule) {
  trips("SPEC-AXIS", here({"q_einsum = (model, fsdp, -)"}));
  passes("SPEC-AXIS", here({"q_einsum = (model, fsdp, -)"}, {"mesh.model=1"}));
  trips("SPEC-TWICE", here({"q_einsum = (tp, tp, -)"}));
  passes("SPEC-TWICE", here({"q_einsum = ((fsdp, tp), -, -)"}));
  trips("SPEC-PATTERN", here({"q_einsum( = (tp, fsdp, -)"}));
  passes("SPEC-PATTERN", here({R"(q_einsum\( = (tp, fsdp, -))"}));
  trips("SPEC-UNUSED", here({"q_einsumm = (tp, fsdp, -)"}));
  passes("SPEC-UNUSED", here({"q_einsum = (tp, fsdp, -)"}));
}

TEST(Diagnostics, HeadsThatDoNotDivideOnVirtualDevices) {
  trips("TP-1", here({}, {"mesh.tp=8", "mesh.fsdp=1"}));  // four KV heads
  passes("TP-1", here({}));
  passes("TP-1", here({}, {"mesh.tp=8", "mesh.fsdp=1", "sharding.preset=megatron"}));  // there they repeat
  trips("MESH-SIZE", here({}, {"mesh.fsdp=32"}));
  passes("MESH-SIZE", here({}, {"mesh.fsdp=16", "train.batch=16"}));
}

TEST(Diagnostics, ALoraFactorLeftOnOneDevice) {
  trips("SHARD-3", here({"q_proj.lora_b = ()"}));
  trips("SHARD-3", here({"o_proj.lora_a = (-, -, tp)"}));  // split, but along the rank instead of its heads
  trips("SHARD-3", here({"gate_proj.lora_b = ()", "up_proj.lora_a = ()"}));
  passes("SHARD-3", here({"q_proj.lora_b = (-, tp, -)"}));  // as its base gives it
  passes("SHARD-3", here({"q_einsum = (-, fsdp, -)"}));     // the adapters follow
  passes("SHARD-3", here({"q_proj.lora_b = ()"}, {"mesh.fsdp=1", "mesh.tp=1"}));
  passes("SHARD-3", here({"q_proj.lora_b = ()"}, {"mesh.tp=1"}));  // nothing to split it over
  EXPECT_THAT(of(look(here({"q_proj.lora_b = ()"})), "SHARD-3").problem.message,
              HasSubstr("layers.0.q_proj.lora_b differently from its base: whole on every device"));
}

TEST(Diagnostics, ASpecThatDoesNotFitItsMatmul) {
  trips("SHARD-4", here({"down_proj = (fsdp, tp)"}));
  trips("SHARD-4", here({"gate_proj = (tp, fsdp)"}));  // the block cannot compute in parallel: the others are gathered
  passes("SHARD-4", here({"down_proj = (tp, fsdp)"}));
  passes("SHARD-4", here({"down_proj = (tp, -)"}));                    // whole along the batch axis: nothing to gather
  passes("SHARD-4", here({"down_proj = (fsdp, tp)"}, {"mesh.tp=1"}));  // then it is FSDP along another dimension
  const Diagnostic d = of(look(here({"down_proj = (fsdp, tp)"})), "SHARD-4");
  EXPECT_THAT(d.problem.message, HasSubstr("such as layers.0.down_proj"));
  EXPECT_THAT(d.problem.expected, HasSubstr("(tp, fsdp)"));
}

TEST(Diagnostics, AnUnshardedOptimizerStateComesWithAnUnshardedTensor) {
  const Sets full{"train.method=full"};
  trips("SHARD-2", here({"input_embedding = ()"}, full));
  passes("SHARD-2", here({"input_embedding = (-, fsdp)"}, full));
  const Diagnosis d = look(here({"input_embedding = ()"}, full));
  EXPECT_THAT(of(d, "SHARD-2").problem.message, HasSubstr("with its gradient and optimizer state"));
  EXPECT_THAT(look(here({"input_embedding = ()"})).found, Not(testing::IsEmpty()));
}

TEST(Diagnostics, AnUnevenBatchRunsHereWithIdleDevices) {
  trips("BATCH-1", here({}, {"train.batch=3"}));
  passes("BATCH-1", here({}));
  const Diagnosis d = look(here({}, {"mesh.fsdp=8", "mesh.tp=1", "train.batch=5"}));
  EXPECT_EQ(of(d, "BATCH-1").problem.severity, Severity::warning);
  EXPECT_THAT(of(d, "BATCH-1").problem.message, HasSubstr("3 of 8 have no rows"));
}

TEST(Diagnostics, Versions) {
  for (const char* bad : {"flax==0.12.4", "qwix==0.1.5", "safetensors==0.8.1", "transformers==4.57.2", "jax==0.7.2",
                          "jax==0.11.0", "jax==0.11.1", "jax==0.5.3"})
    trips("VER-1", with({std::string("stack.versions=") + bad}));
  for (const char* good : {"flax==0.12.5", "qwix==0.1.10", "safetensors==0.7.9", "transformers==4.57.3", "jax==0.10.2"})
    passes("VER-1", with({std::string("stack.versions=") + good}));
  passes("VER-1", with({"target.id=4xh100", "mesh.fsdp=4", "mesh.tp=1", "stack.versions=jax==0.7.2"}));
}

TEST(Diagnostics, TypesAndFiles) {
  trips("DTYPE-1", with({"train.dtype=f32"}));
  passes("DTYPE-1", sound());
  trips("LOAD-2", with({"model.id=gemma3-4b"}));
  passes("LOAD-2", with({"model.id=gemma3-1b"}));
  trips("LOAD-3", with({"model.id=gemma2-9b"}));
  passes("LOAD-3", with({"model.id=gemma2-2b"}));
}

// The tiny Gemma 3 of the fixtures, its tensors renamed or left out.
fs::path renamed(const Scratch& folder, const std::string& prefix, const std::string& without,
                 formats::TensorDType dtype = formats::TensorDType::f32) {
  const fs::path from = fs::path(MW_FIXTURES) / "gemma3_tiny";
  fs::copy_file(from / "config.json", folder.path() / "config.json");
  const formats::SafetensorsFile file(from / "model.safetensors");
  std::vector<std::vector<std::byte>> bytes;
  std::vector<formats::TensorData> tensors;
  for (const formats::TensorInfo& t : file.tensors()) {
    if (!without.empty() && t.name.find(without) != std::string::npos) continue;
    const std::string name = t.name.starts_with("model.") ? prefix + t.name.substr(6) : t.name;
    bytes.emplace_back(static_cast<size_t>(t.elements()) * formats::size_of(dtype));
    tensors.push_back({.name = name, .dtype = dtype, .shape = t.shape, .bytes = {}});
  }
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i].bytes = bytes[i];
  formats::write_safetensors(folder.path() / "model.safetensors", tensors);
  return folder.path();
}

TEST(Diagnostics, TensorNamesOfAFolder) {
  const Sets small{"target.id=v5p-8", "mesh.tp=1", "mesh.fsdp=4", "train.batch=4"};
  const auto found = [&](const std::string& prefix, const std::string& without) {
    const Scratch folder;
    Sets sets = small;
    sets.push_back("model.path=" + renamed(folder, prefix, without).string());
    return look(with(sets));
  };
  EXPECT_THAT(ids(found("model.", "")), Not(Contains("LOAD-1")));
  EXPECT_THAT(ids(found("language_model.model.", "")), Not(Contains("LOAD-1")));
  EXPECT_THAT(of(found("model.language_model.", ""), "LOAD-1").problem.found, HasSubstr("model.language_model."));
  EXPECT_THAT(of(found("model.", "up_proj"), "LOAD-1").problem.found, HasSubstr("up_proj"));
  for (const auto& u : found("model.", "").unchecked) EXPECT_NE(u.id, "LOAD-1");
}

TEST(Diagnostics, Float16FilesOfGemma3) {
  const Scratch folder;
  experiment::Experiment e = with({"model.path=" + renamed(folder, "model.", "", formats::TensorDType::f16).string(),
                                   "target.id=2xh100", "mesh.fsdp=2", "mesh.tp=1"});
  passes("DTYPE-1", e);  // bf16 is said
  e.erase("train.dtype");
  trips("DTYPE-1", e);
}

TEST(Diagnostics, Exports) {
  const Scratch used, fresh;
  std::ofstream(used.path() / "model.safetensors") << "x";
  const Sets gemma3{"model.id=gemma3-1b", "export.merge=tunix"};
  trips("EXP-1", with({"export.merge=tunix"}));
  trips("EXP-1", with({"export.merge=tunix", "model.id=gemma3-4b", "stack.model_config=num_embed=262208"}));
  passes("EXP-1", with(gemma3));
  trips("EXP-2", with({"model.id=gemma3-1b", "export.merge=tunix", "export.out=" + used.path().string()}));
  passes("EXP-2", with({"model.id=gemma3-1b", "export.merge=tunix", "export.out=" + fresh.path().string()}));
  trips("EXP-3", with({"export.merge=meshwright", "export.alpha=16"}));
  trips("EXP-3", with({"export.merge=meshwright", "export.rank=32", "export.alpha=32"}));
  passes("EXP-3", with({"export.merge=meshwright", "export.rank=64", "export.alpha=64"}));
  trips("EXP-4", with({"model.id=gemma3-1b", "export.merge=tunix", "stack.versions=google-tunix==0.1.7"}));
  passes("EXP-4", with(gemma3));
  EXPECT_FALSE(fs::exists(used.path().string() + "-merged"));
}

TEST(Diagnostics, PeftTargets) {
  const Sets gpu{"target.id=2xh100", "mesh.fsdp=2", "mesh.tp=1"};
  trips("PEFT-1", with(gpu));
  Sets text = gpu;
  text.push_back("model.id=gemma3-1b");
  passes("PEFT-1", with(text));
  Sets dotted = gpu;
  dotted.push_back(R"(lora.module_path=.*language_model/.*/(q_proj|v_proj))");
  trips("COV-4", with(dotted));
}

TEST(Diagnostics, Text) {
  trips("TOK-1", with({"stack.add_bos=always"}));
  trips("TOK-1", with({"data.chat=none"}));
  passes("TOK-1", with({"data.chat=none", "stack.add_bos=always"}));
  passes("TOK-1", sound());
  trips("TOK-2", with({"model.id=gemma2-2b", "data.columns.system=instructions"}));
  trips("TOK-2", with({"model.id=gemma3-1b", "data.columns.system=instructions"}));
  passes("TOK-2", with({"data.columns.system=instructions"}));  // Gemma 4 has a system turn
  passes("TOK-2", with({"model.id=gemma2-2b"}));
  trips("TOK-3", with({"stack.rendering=conversation"}));
  passes("TOK-3", with({"stack.rendering=conversation", "model.id=gemma4-e2b", "mesh.tp=4"}));
  passes("TOK-3", sound());
}

TEST(Diagnostics, PaddingAndLogits) {
  DiagnosticFacts padded;
  padded.real_share = 0.35;
  trips("PAD-1", sound(), padded);
  passes("PAD-1", with({"data.packing=true"}), padded);
  padded.real_share = 0.71;
  passes("PAD-1", sound(), padded);
  DiagnosticFacts full;
  full.memory = lint::MemoryInput{Bytes(100), Bytes(130), Bytes(60)};
  trips("LOGITS-1", with({"train.loss_chunk=0"}), full);
  passes("LOGITS-1", sound(), full);
  full.memory = lint::MemoryInput{Bytes(100), Bytes(230), Bytes(60)};  // others are in the way
  passes("LOGITS-1", with({"train.loss_chunk=0"}), full);
}

TEST(Diagnostics, RulesWithoutFactsAreReportedAsUnchecked) {
  experiment::Experiment e = sound();
  e.erase("stack");
  const Diagnosis d = diagnose(e, context());
  std::vector<std::string> left;
  for (const auto& u : d.unchecked) left.push_back(u.id + ": " + u.needs);
  for (const char* id : {"SCALE-1", "REMAT-1", "SHARD-1", "SHARD-2", "VER-1", "LOAD-1", "PAD-1"})
    EXPECT_THAT(left, Contains(HasSubstr(id)));
  EXPECT_THAT(left, Contains("VER-1: the versions of flax, qwix, safetensors, transformers, jax (stack.versions)"));
}

TEST(Diagnostics, EveryFindingHasAReasonAndEvidence) {
  for (const lint::CheckRule& rule : lint::check_rules()) {
    EXPECT_FALSE(rule.title.empty()) << rule.id;
    EXPECT_GT(rule.why.size(), 20U) << rule.id;
    const bool ours = rule.id == "PAD-1";
    EXPECT_TRUE(ours || !rule.evidence.empty()) << rule.id;
    EXPECT_EQ(lint::find_rule(rule.id), &rule);
  }
  for (const char* id : {"COV-1",  "COV-2",  "COV-3",  "COV-4",  "COV-5",   "SCALE-1", "REMAT-1", "REMAT-2",
                         "TP-1",   "TP-2",   "FSDP-1", "MESH-1", "SHARD-1", "SHARD-2", "VER-1",   "DTYPE-1",
                         "LOAD-1", "LOAD-2", "LOAD-3", "EXP-1",  "EXP-2",   "EXP-3",   "EXP-4",   "PEFT-1",
                         "PEFT-2", "PEFT-3", "TOK-1",  "TOK-2",  "TOK-3",   "TOK-4",   "TOK-5"})
    EXPECT_NE(lint::find_rule(id), nullptr) << id;
}

TEST(Diagnostics, AnInvalidValueIsReportedAlone) {
  experiment::Experiment e = sound();
  e.set_value("mesh.tp", -3);
  EXPECT_THAT(ids(look(e)), testing::ElementsAre("RANGE"));
  e.set_value("mesh.tp", "four");
  EXPECT_THAT(ids(look(e)), testing::ElementsAre("TYPE"));
}

}  // namespace
}  // namespace mw::plan
