// SPDX-License-Identifier: GPL-3.0-or-later
// Round trips of PEFT adapters, and unsupported kinds.
#include <cmath>
#include <functional>
#include <regex>

#include "core/base/json.h"
#include "core/base/rng.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/formats/peft/peft_adapter.h"
#include "core/model/catalogue.h"
#include "tests/formats/test_files.h"
#include "tests/formats/tiny_models.h"

namespace mw::formats {
namespace {

using model::Config;
using model::Role;
using model::TensorInventory;
using testing::HasSubstr;

AdapterModule module_of(const model::LoraTarget& target, int rank, float alpha) {
  AdapterModule m{.target = target, .rank = rank, .alpha = alpha, .a = {}, .b = {}};
  for (std::int64_t i = 0; i < rank * target.in; ++i) m.a.push_back(0.5f + static_cast<float>(i));
  for (std::int64_t i = 0; i < rank * target.out; ++i) m.b.push_back(-0.25f * static_cast<float>(i));
  return m;
}

PeftAdapter all_targets(const TensorInventory& inventory, int rank = 2) {
  PeftAdapter adapter{.rank = rank, .alpha = 16, .base_model = "base"};
  for (const model::LoraTarget& t : inventory.lora_targets()) adapter.modules.push_back(module_of(t, rank, 16));
  return adapter;
}

void expect_same_modules(const PeftAdapter& a, const PeftAdapter& b) {
  ASSERT_EQ(a.modules.size(), b.modules.size());
  for (size_t i = 0; i < a.modules.size(); ++i) {
    EXPECT_EQ(a.modules[i].target.module, b.modules[i].target.module);
    EXPECT_EQ(a.modules[i].rank, b.modules[i].rank) << a.modules[i].target.module;
    EXPECT_EQ(a.modules[i].alpha, b.modules[i].alpha) << a.modules[i].target.module;
    EXPECT_EQ(a.modules[i].a, b.modules[i].a);
    EXPECT_EQ(a.modules[i].b, b.modules[i].b);
  }
}

TEST(Peft, RoundTrips) {
  const TensorInventory inventory(tiny_gemma3());
  const Scratch folder;
  PeftAdapter adapter = all_targets(inventory);
  adapter.dropout = 0.1f;
  adapter.rslora = true;
  write_peft(folder / "adapter", adapter, inventory);
  const PeftAdapter back = read_peft(folder / "adapter", inventory);
  expect_same_modules(back, adapter);
  EXPECT_EQ(back.dropout, 0.1f);
  EXPECT_TRUE(back.rslora);
  EXPECT_EQ(back.base_model, "base");
  EXPECT_THAT(back.targets,
              testing::ElementsAre("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"));
}

TEST(Peft, WritesSortedConfigForInference) {
  const TensorInventory inventory(tiny_gemma3());
  const Scratch folder;
  write_peft(folder.path(), all_targets(inventory), inventory);
  const Json config = read_json(folder / "adapter_config.json");
  std::vector<std::string> keys;
  for (const auto& [key, value] : config.items()) keys.push_back(key);
  EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
  EXPECT_EQ(config.at("inference_mode"), true);
  EXPECT_EQ(config.at("peft_type"), "LORA");
  EXPECT_EQ(config.at("task_type"), "CAUSAL_LM");
  EXPECT_EQ(config.at("lora_alpha").dump(), "16");
  EXPECT_THAT(get(folder / "adapter_config.json"), HasSubstr("\n  \"lora_alpha\": 16,\n"));
}

TEST(Peft, KeepsCorrectPatterns) {
  const TensorInventory inventory(tiny_gemma3());
  const Scratch folder;
  PeftAdapter adapter{
      .rank = 2, .alpha = 4, .rank_pattern = {{"q_proj", 3}}, .alpha_pattern = {{"self_attn.q_proj", 9.5f}}};
  for (const model::LoraTarget& t : inventory.lora_targets())
    adapter.modules.push_back(t.role == Role::q_proj ? module_of(t, 3, 9.5f) : module_of(t, 2, 4));
  write_peft(folder.path(), adapter, inventory);
  const Json config = read_json(folder / "adapter_config.json");
  EXPECT_EQ(config.at("rank_pattern").dump(), R"({"q_proj":3})");
  EXPECT_EQ(config.at("alpha_pattern").dump(), R"({"self_attn.q_proj":9.5})");
  expect_same_modules(read_peft(folder.path(), inventory), adapter);
}

// The result depends on the order of the patterns, which PEFT sorts: one entry per module is written.
TEST(Peft, ExpandsPatternsThatPeftWouldResolveDifferently) {
  const TensorInventory inventory(tiny_gemma3());
  const Scratch folder;
  PeftAdapter adapter{.rank = 2, .alpha = 4, .rank_pattern = {{"q_proj", 3}, {"layers.0.self_attn.q_proj", 5}}};
  for (const model::LoraTarget& t : inventory.lora_targets())
    adapter.modules.push_back(module_of(t, t.role == Role::q_proj ? 3 : 2, 4));
  write_peft(folder.path(), adapter, inventory);
  EXPECT_EQ(read_json(folder / "adapter_config.json").at("rank_pattern").dump(),
            R"({"model\\.layers\\.0\\.self_attn\\.q_proj":3,"model\\.layers\\.1\\.self_attn\\.q_proj":3})");
  expect_same_modules(read_peft(folder.path(), inventory), adapter);
}

TEST(Peft, TargetModulesExcludeTowersOfMultimodalBase) {
  Config c = tiny_gemma3();
  c.hf_prefix = "model.language_model.";
  const TensorInventory inventory(c);
  const Scratch folder;
  const PeftAdapter adapter = all_targets(inventory);
  write_peft(folder.path(), adapter, inventory);
  const std::string targets = read_json(folder / "adapter_config.json").at("target_modules");
  EXPECT_EQ(targets, ".*language_model\\..*\\.(down_proj|gate_proj|k_proj|o_proj|q_proj|up_proj|v_proj)");
  expect_same_modules(read_peft(folder.path(), inventory), adapter);
  // The same adapter serves a text-only save of the model.
  EXPECT_EQ(read_peft(folder.path(), TensorInventory(tiny_gemma3())).modules.size(), adapter.modules.size());
}

// Names alone would match other modules, for which PEFT would add untrained adapters.
TEST(Peft, TargetModulesListLayersOfPartlyAdaptedModule) {
  Config c = model::catalogue_config("gemma4-31b");  // global layers: K, and no V of their own
  c.layers.resize(6);
  c.dim = 32;
  for (const char* prefix : {"model.", "model.language_model."}) {
    c.hf_prefix = prefix;
    const TensorInventory inventory(c);
    const auto of = [&](const auto& wanted) {
      PeftAdapter adapter{.rank = 1, .alpha = 1};
      for (const model::LoraTarget& t : inventory.lora_targets())
        if (wanted(t)) adapter.modules.push_back(module_of(t, 1, 1));
      return adapter;
    };
    const auto targets = [&](const PeftAdapter& adapter) {
      const Scratch folder;
      write_peft(folder.path(), adapter, inventory);
      expect_same_modules(read_peft(folder.path(), inventory), adapter);
      return read_json(folder / "adapter_config.json").at("target_modules");
    };
    const auto attention = [](const model::LoraTarget& t) {
      return t.role == Role::q_proj || t.role == Role::k_proj || t.role == Role::v_proj;
    };
    const Json whole = targets(of(attention));  // no V in global layers is no reason for an expression
    if (std::string(prefix) == "model.") {
      EXPECT_EQ(whole, Json({"k_proj", "q_proj", "v_proj"}));
    }
    const std::string partial = targets(
        of([&](const model::LoraTarget& t) { return attention(t) && (t.role != Role::k_proj || t.layer < 5); }));
    const std::regex expression(partial);
    for (const model::LoraTarget& t : inventory.lora_targets())
      EXPECT_EQ(std::regex_match(t.module, expression), attention(t) && (t.role != Role::k_proj || t.layer < 5))
          << t.module << " by " << partial;
    EXPECT_FALSE(std::regex_match("model.vision_tower.encoder.layers.0.self_attn.q_proj", expression) &&
                 std::string(prefix) != "model.");
  }
}

TEST(Peft, ReadsModulesFromTensorsNotTargetModules) {
  const TensorInventory inventory(tiny_gemma3());
  const Scratch folder;
  PeftAdapter adapter = all_targets(inventory);
  adapter.modules.resize(3);
  write_peft(folder.path(), adapter, inventory);
  Json config = read_json(folder / "adapter_config.json");
  for (const Json& targets : {Json("all-linear"), Json(".*"), Json(nullptr), Json{"q_proj", "nothing"}}) {
    config["target_modules"] = targets;
    put(folder / "adapter_config.json", config.dump());
    EXPECT_THAT(read_peft(folder.path(), inventory).targets, testing::ElementsAre("q_proj", "k_proj", "v_proj"));
  }
}

struct Refused {
  const char* name;
  std::function<void(Json&)> edit;
  const char* place;
};
void PrintTo(const Refused& r, std::ostream* os) {
  *os << r.name;
}
class UnsupportedAdapter : public testing::TestWithParam<Refused> {};

TEST_P(UnsupportedAdapter, IsRejected) {
  const TensorInventory inventory(tiny_gemma3());
  const Scratch folder;
  write_peft(folder.path(), all_targets(inventory), inventory);
  Json config = read_json(folder / "adapter_config.json");
  GetParam().edit(config);
  put(folder / "adapter_config.json", config.dump());
  const Problem p = problem_of([&] { read_peft(folder.path(), inventory); });
  EXPECT_THAT(p.place, testing::StartsWith(GetParam().place));
  EXPECT_FALSE(p.file.empty());
}

template <class Value>
auto set(const char* key, Value value) {
  return [key, value](Json& j) { j[key] = value; };
}

INSTANTIATE_TEST_SUITE_P(
    Peft, UnsupportedAdapter,
    testing::Values(Refused{"dora_number", set("use_dora", 1), "use_dora"}, Refused{"bias", set("bias", "all"), "bias"},
                    Refused{"lora_bias", set("lora_bias", true), "lora_bias"},
                    Refused{"saved_modules", set("modules_to_save", Json{"lm_head"}), "modules_to_save"},
                    Refused{"tokens", set("trainable_token_indices", Json{1, 2}), "trainable_token_indices"},
                    Refused{"parameters", set("target_parameters", Json{"experts.down_proj"}), "target_parameters"},
                    Refused{"replication", set("layer_replication", Json{{0, 4}}), "layer_replication"},
                    Refused{"qalora", set("use_qalora", true), "use_qalora"},
                    Refused{"transposed", set("fan_in_fan_out", true), "fan_in_fan_out"},
                    Refused{"alora", set("alora_invocation_tokens", Json{1}), "alora_invocation_tokens"},
                    Refused{"pissa", set("init_lora_weights", "pissa"), "init_lora_weights"},
                    Refused{"ia3", set("peft_type", "IA3"), "peft_type"},
                    Refused{"no_type", [](Json& j) { j.erase("peft_type"); }, "peft_type"},
                    Refused{"zero_rank", set("r", 0), "r"}, Refused{"huge_rank", set("r", 1e12), "r"},
                    Refused{"half_rank", set("r", 2.5), "r"}, Refused{"text_rank", set("r", "8"), "r"},
                    Refused{"negative_alpha", set("lora_alpha", -1), "lora_alpha"},
                    Refused{"dropout_one", set("lora_dropout", 1.0), "lora_dropout"},
                    Refused{"rslora_number", set("use_rslora", 1), "use_rslora"},
                    Refused{"pattern_list", set("rank_pattern", Json{1}), "rank_pattern"},
                    Refused{"pattern_zero", set("rank_pattern", Json{{"q_proj", 0}}), "rank_pattern.q_proj"},
                    Refused{"pattern_text", set("alpha_pattern", Json{{"q_proj", "x"}}), "alpha_pattern.q_proj"},
                    Refused{"pattern_broken", set("alpha_pattern", Json{{"q_proj(", 2}}), "alpha_pattern.q_proj("},
                    Refused{"other_rank", set("r", 3), "tensor"},
                    Refused{"other_pattern", set("rank_pattern", Json{{"v_proj", 3}}), "tensor"}),
    [](const auto& p) { return std::string(p.param.name); });

// Edits the tensors of a valid adapter.
void expect_tensor_error(const std::function<void(std::vector<TensorData>&)>& edit, const char* says) {
  const TensorInventory inventory(tiny_gemma3());
  const Scratch folder;
  const PeftAdapter adapter = all_targets(inventory);
  write_peft(folder.path(), adapter, inventory);
  std::vector<TensorData> tensors;
  for (const AdapterModule& m : adapter.modules) {
    tensors.push_back({m.target.peft_a, TensorDType::f32, {m.rank, m.target.in}, std::as_bytes(std::span(m.a))});
    tensors.push_back({m.target.peft_b, TensorDType::f32, {m.target.out, m.rank}, std::as_bytes(std::span(m.b))});
  }
  edit(tensors);
  write_safetensors(folder / "adapter_model.safetensors", tensors);
  EXPECT_THAT(to_text(problem_of([&] { read_peft(folder.path(), inventory); })), HasSubstr(says));
}

TEST(PeftTensors, RejectsIncompletePair) {
  expect_tensor_error([](auto& t) { t.erase(t.begin()); }, "one of the two tensors is missing");
}
TEST(PeftTensors, RejectsEmptyFile) {
  expect_tensor_error([](auto& t) { t.clear(); }, "contains no tensors");
}
TEST(PeftTensors, RejectsWrongShape) {
  expect_tensor_error([](auto& t) { std::swap(t[0].shape[0], t[0].shape[1]); }, "the shape does not match");
}
TEST(PeftTensors, ReportsIndexOfNonFiniteValue) {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    std::vector<float> values;
    expect_tensor_error(
        [&](auto& t) {
          values.assign(static_cast<size_t>(t[0].shape[0] * t[0].shape[1]), 1.0f);
          values[3] = bad;
          t[0].bytes = std::as_bytes(std::span(values));
        },
        "element 3");
  }
}
TEST(PeftTensors, RejectsUnknownModule) {
  expect_tensor_error([](auto& t) { t[0].name = "base_model.model.model.layers.7.self_attn.q_proj.lora_A.weight"; },
                      "no such module");
}
TEST(PeftTensors, RejectsTowerModule) {
  expect_tensor_error(
      [](auto& t) { t[0].name = "base_model.model.model.vision_tower.layers.0.self_attn.q_proj.lora_A.weight"; },
      "no such module");
}
TEST(PeftTensors, RejectsOtherTensors) {
  for (const char* name : {"base_model.model.lm_head.weight", "base_model.model.model.embed_tokens.lora_embedding_A",
                           "", "base_model.model.model.layers.0.self_attn.q_proj.lora_magnitudes", ".lora_A.weight",
                           "base_model.model.lora_A.weight"})
    expect_tensor_error([&](auto& t) { t[0].name = name; }, "does not belong to LoRA or DoRA");
}
TEST(PeftTensors, RejectsMagnitudesWithoutDora) {
  expect_tensor_error(
      [](auto& t) {
        t.push_back(t[0]);
        t.back().name = "base_model.model.model.layers.0.self_attn.q_proj.lora_magnitude_vector";
      },
      "contradict");
}
TEST(PeftTensors, KeepsTheMagnitudesOfDora) {
  const std::filesystem::path fixtures = MW_FIXTURES;
  const model::TensorInventory inventory(read_config(fixtures / "gemma3_tiny_mha"));
  const PeftAdapter adapter = read_peft(fixtures / "dora_tiny", inventory);
  EXPECT_TRUE(adapter.dora);
  const Scratch folder;
  write_peft(folder / "again", adapter, inventory);
  const PeftAdapter again = read_peft(folder / "again", inventory);
  EXPECT_TRUE(again.dora);
  ASSERT_EQ(again.modules.size(), adapter.modules.size());
  for (size_t i = 0; i < again.modules.size(); ++i) {
    EXPECT_EQ(again.modules[i].m.size(), static_cast<size_t>(again.modules[i].target.out));
    EXPECT_EQ(again.modules[i].m, adapter.modules[i].m);
    EXPECT_EQ(again.modules[i].a, adapter.modules[i].a);
  }
}
TEST(PeftTensors, RejectsModuleUnderTwoPrefixes) {
  expect_tensor_error(
      [](auto& t) {
        t.push_back(t[0]);
        t.back().name = "base_model.model.model.language_model.layers.0.self_attn.q_proj.lora_A.weight";
      },
      "two adapters");
}

TEST(Peft, RefusesToWriteWrongNumberOfValues) {
  const TensorInventory inventory(tiny_gemma3());
  const Scratch folder;
  PeftAdapter adapter = all_targets(inventory);
  adapter.modules[1].a.pop_back();
  EXPECT_THAT(problem_of([&] { write_peft(folder.path(), adapter, inventory); }).place, HasSubstr("k_proj"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(PeftPatterns, MatchLikePeft) {
  const PeftPatterns p({{"q_proj", 1}, {"layers\\.1\\..*_proj", 2}, {"mlp.up_proj", 3}, {"(a|v)_proj", 4}}, "", "");
  EXPECT_EQ(p.resolve("model.layers.1.self_attn.q_proj", 9), 1);  // the first key wins
  EXPECT_EQ(p.resolve("model.layers.1.mlp.up_proj", 9), 2);
  EXPECT_EQ(p.resolve("model.layers.2.mlp.up_proj", 9), 3);
  EXPECT_EQ(p.resolve("model.layers.2.self_attn.v_proj", 9), 4);
  EXPECT_EQ(p.resolve("model.layers.2.self_attn.my_q_proj", 9), 9);  // a whole path component
  EXPECT_EQ(p.resolve("model.layers.11.mlp.down_proj", 9), 9);
}

TEST(PeftPatterns, LimitCostOfExpressions) {
  const std::string module = "model.layers.0." + std::string(200, 'a');
  for (const std::string& key :
       {std::string("(a*)*b"), std::string("(a|aa)+$b"), std::string("(.*)*x"),
        std::string("((a{1,100}){1,100}){1,100}"), std::string(300, '('), std::string("[z-a]"), std::string("(a)\\1"),
        std::string("a{99999999999}"), std::string(120, '(') + std::string(120, ')')}) {
    try {
      PeftPatterns({{key, 1}}, "f", "p").resolve(module, 0);
    } catch (const Error& e) {
      EXPECT_EQ(e.problem().file, "f");
    }
  }
}

TEST(PeftMutation, DamagedConfigsThrowOnlyErrors) {
  const TensorInventory inventory(tiny_gemma3());
  const Scratch folder;
  write_peft(folder.path(), all_targets(inventory), inventory);
  const std::string good = get(folder / "adapter_config.json");
  Rng rng{5};
  for (int round = 0; round < 300; ++round) {
    std::string text = good;
    for (std::uint64_t n = 1 + rng.below(3); n > 0; --n)
      text[rng.below(text.size())] = static_cast<char>(rng.below(256));
    put(folder / "adapter_config.json", text);
    try {
      const PeftAdapter a = read_peft(folder.path(), inventory);
      EXPECT_EQ(a.modules.size(), inventory.lora_targets().size());
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace mw::formats
