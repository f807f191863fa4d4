// SPDX-License-Identifier: Apache-2.0
// Rules about adapters in PEFT and in servers: PEFT.
#include <algorithm>

#include "core/lint/rules/lora_modules.h"
#include "core/lint/rules/rules.h"

namespace mw::lint {
namespace {

using model::Role;

bool has_towers(const model::Config& c) {
  return c.hf_prefix.find("language_model") != std::string::npos && c.hf_model_type != "gemma4_unified";
}

void peft_1(const CheckInput& input, const RuleReport& report) {
  if (!trains_lora(input) || !input.lora->options.module_path.empty()) return;
  std::vector<Role> roles = input.lora->targets;
  const auto& type = input.config.hf_model_type;
  const bool no_default = type == "gemma3" || type == "gemma4_text" || type == "gemma4_unified";
  const bool missing = roles.empty() && no_default;
  if (!missing && !has_towers(input.config)) return;
  if (roles.empty()) roles = {Role::q_proj, Role::v_proj};
  std::vector<Edit> edits{{"lora.module_path", lora_pattern(input.inventory, roles, ModuleNaming::peft)}};
  if (input.lora->targets.empty()) edits.push_back({"lora.targets", Json::array({"q_proj", "v_proj"})});
  report.add({.message = missing
                             ? "PEFT has no default target_modules for " + type
                             : "a list of suffixes hits the vision and audio towers of " + input.config.id + ", too",
              .place = "lora.module_path",
              .found = missing ? "no targets" : "a list",
              .expected = "an expression that names language_model",
              .fixes = {{"Name the language model's modules by expression", "", std::move(edits)}}});
}

bool serves_adapter(const CheckInput& input) {
  return input.lora && input.exported.serve_as == options::AdapterServing::adapter;
}
Fix serve_merged() {
  return {"Serve merged weights", "a whole copy of the weights per adapter", {{"export.serve_as", "merged"}}};
}

void peft_2(const CheckInput& input, const RuleReport& report) {
  if (!serves_adapter(input)) return;
  const auto& names = input.lora->adapter_tensors;
  if (!names) return report.unchecked("the adapter to serve (lora.adapter)");
  std::vector<std::string> accepted{"base_model.model." + input.config.hf_prefix};
  if (has_towers(input.config)) accepted.push_back("base_model.model.model.language_model.");
  for (const std::string& name : *names) {
    const size_t layers = name.find("layers.");
    if (layers == std::string::npos) continue;
    const std::string prefix = name.substr(0, layers);
    if (std::find(accepted.begin(), accepted.end(), prefix) != accepted.end()) continue;
    report.add({.message = "the adapter's tensors are not named for the class that serves this model",
                .place = "lora.adapter",
                .found = prefix,
                .expected = accepted.back(),
                .fixes = {serve_merged()}});
    return;
  }
}

void peft_3(const CheckInput& input, const RuleReport& report) {
  if (!serves_adapter(input) || !has_key_equals_value(input.config)) return;
  const auto& targets = input.lora->targets;
  if (std::find(targets.begin(), targets.end(), Role::k_proj) == targets.end()) return;
  report.add(
      {.message =
           "global layers take V from the K projection: an adapter on K has to change V, and the server's V slot "
           "does not get it",
       .place = "export.serve_as",
       .found = "adapter",
       .expected = "merged",
       .fixes = {serve_merged()}});
}

}  // namespace

std::vector<CheckRule> peft_rules() {
  const std::vector<Stack> peft{Stack::trl_fsdp}, vllm{Stack::vllm_tpu, Stack::vllm_gpu};
  return {
      {"PEFT-1", Severity::error, peft, "A target list on a multimodal base, or none where PEFT has no default",
       "Suffixes such as q_proj also hit the towers: Gemma 4's clippable linears are refused, Gemma 3's SigLIP is "
       "adapted without a warning.",
       "huggingface/peft#3129, #3130; peft/utils/constants.py", peft_1},
      {"PEFT-2", Severity::error, vllm, "The adapter's keys do not fit the serving class",
       "Keys under another prefix are not found, so the base model answers.",
       "vllm-project/vllm#38844, #39278, #41702, #39246; sgl-project/sglang#25913", peft_2},
      {"PEFT-3", Severity::error, vllm, "An adapter on K where V is K",
       "An engine that loads K twice into a fused qkv and adds the K delta to the K slot only computes another model "
       "than was trained.",
       "vllm/model_executor/models/gemma4.py; sgl-project/sglang#28199; vllm-project/vllm#41944", peft_3},
  };
}

}  // namespace mw::lint
