// SPDX-License-Identifier: Apache-2.0
// Rules about the modules that LoRA adapts and about their scale: COV, SCALE, REMAT.
#include <algorithm>
#include <cmath>

#include "core/base/counted.h"
#include "core/lint/lora_modules.h"
#include "core/lint/rules.h"

namespace mw::lint {

// The modules that the user's expression adapts.
struct Coverage {
  std::vector<LoraModule> all, adapted;
  bool adapts(std::string_view module) const {
    return std::any_of(adapted.begin(), adapted.end(),
                       [&](const LoraModule& m) { return last_component(m.path) == module; });
  }
  bool knows(std::string_view module) const {
    return std::any_of(all.begin(), all.end(), [&](const LoraModule& m) { return last_component(m.path) == module; });
  }
};

namespace {

using model::Role;

ModuleNaming naming_of(const CheckInput& input) {
  return input.stack == model::Stack::tunix ? ModuleNaming::qwix : ModuleNaming::peft;
}

// Null for an expression that is generated from the targets, which always matches, or invalid, which COV-4 reports.
std::shared_ptr<const Coverage> coverage(const CheckInput& input) try {
  if (!trains_lora(input) || input.lora->options.module_path.empty()) return nullptr;
  if (input.derived && input.derived->coverage) return *input.derived->coverage;
  std::vector<LoraModule> all = lora_modules(input.inventory, naming_of(input));
  std::vector<LoraModule> adapted = matching_modules(all, input.lora->options.module_path);
  auto out = std::make_shared<const Coverage>(Coverage{.all = std::move(all), .adapted = std::move(adapted)});
  if (input.derived) input.derived->coverage = out;
  return out;
} catch (const Error&) {
  return nullptr;
}

Fix append(const CheckInput& input, const std::string& alternative, const std::string& label, const std::string& cost) {
  return {label, cost, {{"lora.module_path", input.lora->options.module_path + "|" + alternative}}};
}
Fix generate() {
  return {"Make the expression from lora.targets", "", {{"lora.module_path", nullptr}}};
}

std::string parameters_text(const std::vector<LoraModule>& modules, int rank) {
  std::int64_t n = 0;
  for (const LoraModule& m : modules) n += m.parameters_per_rank * rank;
  return counted(count_text(static_cast<double>(n)), "parameter");
}

// --- COV ---

bool misses_k_einsum(const Coverage& coverage) {
  if (!coverage.adapts("kv_einsum")) return false;
  return std::any_of(coverage.all.begin(), coverage.all.end(), [&](const LoraModule& m) {
    return last_component(m.path) == "k_einsum" && std::none_of(coverage.adapted.begin(), coverage.adapted.end(),
                                                                [&](const LoraModule& a) { return a.path == m.path; });
  });
}

void cov_1(const CheckInput& input, const RuleReport& report) {
  const auto c = coverage(input);
  if (!c || !misses_k_einsum(*c)) return;
  const auto missed = std::count_if(c->all.begin(), c->all.end(),
                                    [](const LoraModule& m) { return last_component(m.path) == "k_einsum"; });
  auto with = c->adapted;
  std::copy_if(c->all.begin(), c->all.end(), std::back_inserter(with),
               [](const LoraModule& m) { return last_component(m.path) == "k_einsum"; });
  report.add(
      {.message = "the " + std::to_string(missed) + " global layers get no key-value LoRA: their module is k_einsum",
       .place = "lora.module_path",
       .found = parameters_text(c->adapted, input.lora->options.rank),
       .expected = parameters_text(with, input.lora->options.rank) + " with |.*k_einsum",
       .fixes = {append(input, ".*k_einsum", "Adapt k_einsum, too", "more adapter parameters in global layers")}});
}

void cov_2(const CheckInput& input, const RuleReport& report) {
  const auto c = coverage(input);
  if (!c || c->adapted.empty() || c->adapts("attn_vec_einsum") || !c->knows("attn_vec_einsum")) return;
  report.add({.message = "the attention's output projection (attn_vec_einsum) gets no adapter",
              .place = "lora.module_path",
              .found = input.lora->options.module_path,
              .fixes = {append(input, ".*attn_vec_einsum", "Adapt attn_vec_einsum, too",
                               "more adapter parameters in every layer")}});
}

void adapter_on_disk(const CheckInput& input, const RuleReport& report) {
  const auto& names = input.lora->adapter_tensors;
  if (!names) return;
  const auto has = [&](const model::LoraTarget& t) {
    const std::string suffix = t.peft_a.substr(t.peft_a.find("layers."));
    return std::any_of(names->begin(), names->end(), [&](const std::string& n) { return n.ends_with(suffix); });
  };
  std::vector<std::string> missing;
  for (const model::LoraTarget& t : input.inventory.lora_targets())
    if (std::find(input.lora->targets.begin(), input.lora->targets.end(), t.role) != input.lora->targets.end() &&
        !has(t))
      missing.push_back(t.module);
  if (missing.empty()) return;
  report.add(
      {.message = "the adapter lacks " + std::to_string(missing.size()) + " of the modules that should be adapted",
       .place = "lora.adapter",
       .found = "no lora_A for " + missing.front(),
       .expected = "every module of lora.targets",
       .fixes = {{"Start with new adapters",
                  "the trained values of the adapter are not used",
                  {{"lora.adapter", nullptr}}}}});
}

void cov_3(const CheckInput& input, const RuleReport& report) {
  if (!trains_lora(input)) return;
  adapter_on_disk(input, report);
  const auto c = coverage(input);
  if (!c) return;
  std::vector<LoraModule> wanted, missing;
  for (const LoraModule& m : c->all) {
    const bool target =
        std::any_of(input.lora->targets.begin(), input.lora->targets.end(), [&](Role r) { return m.has(r); });
    if (!target) continue;
    wanted.push_back(m);
    const bool adapted =
        std::any_of(c->adapted.begin(), c->adapted.end(), [&](const LoraModule& a) { return a.path == m.path; });
    const std::string_view name = last_component(m.path);
    const bool reported_elsewhere =
        (name == "k_einsum" && misses_k_einsum(*c)) ||
        (name == "attn_vec_einsum" && input.stack == model::Stack::tunix && !c->adapted.empty());
    if (!adapted && !reported_elsewhere) missing.push_back(m);
  }
  if (missing.empty()) return;
  report.add({.message = std::to_string(missing.size()) + " of " + counted(wanted.size(), "module") +
                         " that should be adapted get no adapter, such as " + missing.front().path,
              .place = "lora.module_path",
              .found = parameters_text(c->adapted, input.lora->options.rank),
              .expected = parameters_text(wanted, input.lora->options.rank) + " for lora.targets",
              .fixes = {generate()}});
}

// Repairs an alternative that matches nothing: adds ".*" in front and corrects the separator.
std::string repaired(std::string alternative, ModuleNaming naming) {
  std::string out;
  for (size_t i = 0; i < alternative.size(); ++i) {
    const char c = alternative[i];
    const char next = i + 1 < alternative.size() ? alternative[i + 1] : '\0';
    if (naming == ModuleNaming::qwix && c == '\\' && next == '.') {
      out += '/';
      ++i;
    } else if (naming == ModuleNaming::qwix && c == '.' && next != '*' && next != '+' && next != '?' && next != '{') {
      out += '/';
    } else if (naming == ModuleNaming::peft && c == '/') {
      out += "\\.";
    } else if (c == '^' && out.empty()) {
      continue;
    } else {
      out += c;
    }
  }
  if (!out.starts_with(".*")) out = ".*" + out;
  return out;
}

void cov_4(const CheckInput& input, const RuleReport& report) {
  if (!trains_lora(input) || input.lora->options.module_path.empty()) return;
  const ModuleNaming naming = naming_of(input);
  const auto modules = lora_modules(input.inventory, naming);
  Finding finding{.place = "lora.module_path"};
  try {
    std::string better, dead;
    for (const std::string& a : split_alternatives(input.lora->options.module_path)) {
      const std::string other = repaired(a, naming);
      const bool repair = matching_modules(modules, a).empty() && !matching_modules(modules, other).empty();
      if (repair && dead.empty()) dead = a;
      better += (better.empty() ? "" : "|") + (repair ? other : a);
    }
    if (dead.empty()) return;
    finding.message =
        "\"" + dead + "\" matches no module: the whole path is matched, " +
        (naming == ModuleNaming::qwix ? "as in layers/0/attn/q_einsum" : "as in model.layers.0.self_attn.q_proj");
    finding.found = input.lora->options.module_path;
    finding.expected = better;
    finding.fixes = {{"Match the whole path", "", {{"lora.module_path", better}}}, generate()};
  } catch (const Error& error) {
    finding.message = error.problem().message;
    finding.found = input.lora->options.module_path;
    finding.fixes = {generate()};
  }
  report.add(std::move(finding));
}

void cov_5(const CheckInput& input, const RuleReport& report) {
  if (!trains_lora(input) || input.config.experts == 0) return;
  std::vector<Role> attention;
  bool mlp = false;
  Json names = Json::array();
  for (const Role r : input.lora->targets) {
    if (r == Role::gate_proj || r == Role::up_proj || r == Role::down_proj) {
      mlp = true;
      continue;
    }
    attention.push_back(r);
    names.push_back(std::string(model::hf_module_name(r)));
  }
  if (!mlp) return;
  std::vector<Fix> fixes;
  if (!attention.empty()) {
    Fix fix{"Adapt attention only", "the dense branch stays frozen like the experts", {{"lora.targets", names}}};
    if (!input.lora->options.module_path.empty())
      fix.edits.push_back({"lora.module_path", lora_pattern(input.inventory, attention, naming_of(input))});
    fixes.push_back(std::move(fix));
  }
  fixes.push_back({"Train every weight", "gradients and two moments for every expert", {{"train.method", "full"}}});
  report.add({.message = "gate, up and down projections are adapted in the dense branch only: the " +
                         counted(input.config.experts, "expert") + " of each layer get no LoRA",
              .place = "lora.targets",
              .fixes = std::move(fixes)});
}

// --- SCALE, REMAT ---

void scale_1(const CheckInput& input, const RuleReport& report) {
  if (!trains_lora(input)) return;
  const options::Lora& l = input.lora->options;
  if (input.stack == model::Stack::tunix &&
      is_older(input, {"qwix", "0.1.0", "whether alpha is divided by the rank"}, report))
    report.add({.message = "this qwix scales adapters by alpha itself, not by alpha / rank",
                .place = "stack.versions",
                .found = "qwix " + input.versions.at("qwix") + ", scale " + number_text(l.alpha),
                .expected = "scale " + number_text(l.alpha / l.rank) + ", qwix 0.1.0 or newer",
                .fixes = {{"Use qwix 0.1.8", "", {set_version(input, "qwix", "0.1.8")}}}},
               Severity::error);
  const bool root = l.rslora && input.stack != model::Stack::tunix;
  const double scale = l.alpha / (root ? std::sqrt(l.rank) : l.rank);
  if (scale >= 0.25 && scale <= 4) return;
  const double alpha = root ? std::round(std::sqrt(l.rank)) : l.rank;
  report.add({.message = "adapters act at " + number_text(scale) + " of their strength (alpha / " +
                         (root ? "root of rank)" : "rank)"),
              .place = "lora.alpha",
              .found = "alpha " + number_text(l.alpha) + ", rank " + std::to_string(l.rank),
              .expected = "a scale of 0.25 to 4",
              .fixes = {{"Set alpha to " + number_text(alpha) + ": scale 1", "", {{"lora.alpha", alpha}}}}});
}

// --- VARIANT ---

// PEFT, which TRL and the engine follow, and torchtune compute DoRA; PEFT and the engine have LoRA+.
void variant_1(const CheckInput& input, const RuleReport& report) {
  if (!trains_lora(input)) return;
  const bool here = input.stack == model::Stack::engine, peft = input.stack == model::Stack::trl_fsdp;
  const std::string stack(model::to_string(input.stack));
  if (const bool computes = here || peft || input.stack == model::Stack::torchtune;
      input.lora->options.dora && !computes)
    report.add({.message = stack + " does not compute DoRA",
                .place = "lora.dora",
                .found = "true",
                .expected = "false, or TRL or torchtune",
                .fixes = {{"Train plain LoRA", "the rows keep their lengths", {{"lora.dora", false}}}}});
  if (input.lora->options.plus_ratio != 1 && !here && !peft)
    report.add({.message = stack + " has one learning rate for A and B",
                .place = "lora.plus_ratio",
                .found = number_text(input.lora->options.plus_ratio),
                .expected = "1, or TRL",
                .fixes = {{"Train A and B at one rate", "slower learning of B", {{"lora.plus_ratio", 1}}}}});
}

void remat_1(const CheckInput& input, const RuleReport& report) {
  if (!trains_lora(input) || input.remat == model::Remat::none) return;
  if (!is_older(input, {"google-tunix", "0.1.8", "whether LoRA is applied with remat off"}, report)) return;
  report.add({.message = "this Tunix applies LoRA with remat on: the adapters made inside are lost",
              .place = "train.remat",
              .found = "google-tunix " + input.versions.at("google-tunix"),
              .expected = "0.1.8 or newer, or remat off while LoRA is applied",
              .fixes = {{"Use google-tunix 0.1.8", "", {set_version(input, "google-tunix", "0.1.8")}},
                        {"Turn remat off", "every layer's activations stay in memory", {{"train.remat", "none"}}}}});
}

constexpr int kLongRow = 4096;  // tokens; keras-hub#2158 ran out at 8192 with 4 rows

void remat_2(const CheckInput& input, const RuleReport& report) {
  if (input.purpose != Purpose::train || input.remat != model::Remat::none || input.max_len < kLongRow) return;
  report.add(
      {.message = "rows of " + std::to_string(input.max_len) + " tokens keep the activations of every layer in memory",
       .place = "train.remat",
       .found = "none",
       .expected = "layer, from " + std::to_string(kLongRow) + " tokens on",
       .fixes = {{"Recompute layers in the backward pass",
                  "about one more forward pass per step",
                  {{"train.remat", "layer"}}}}});
}

}  // namespace

std::vector<CheckRule> lora_rules() {
  const std::vector<model::Stack> tunix{model::Stack::tunix}, jax_or_peft{model::Stack::tunix, model::Stack::trl_fsdp},
      accelerators{model::Stack::tunix, model::Stack::torchax, model::Stack::trl_fsdp};
  return {
      {"COV-1", Severity::error, tunix, "Global layers whose V is their K (Gemma 4 12B, 26B, 31B) need .*k_einsum",
       "In these layers Tunix has a k_einsum in place of kv_einsum, and .*kv_einsum does not fullmatch it. The rule "
       "still counts as used, nothing is reported, and the layers train without key-value LoRA.",
       "tunix/models/gemma4/attention.py; qwix/_src/qconfig.py (re.fullmatch); Tunix's own quickstart expression",
       cov_1},
      {"COV-2", Severity::warning, tunix, "The expression leaves out attn_vec_einsum",
       "Tunix's documented default expression has no output projection; its own GRPO examples add it.",
       "tunix docs/quickstart.md, cli/base_config.yaml against examples/rl/grpo/gsm8k/configs", cov_2},
      {"COV-3", Severity::error, jax_or_peft, "Modules that should be adapted get no adapter",
       "Names of another family match no module or only the MLP, and training continues with fewer adapters than "
       "intended.",
       "tunix e0e45fff (lora filter of Llama and Qwen); qwix get_unused_rules() reports only rules that match nothing",
       cov_3},
      {"COV-4", Severity::error, jax_or_peft,
       "An alternative that cannot match: no .* in front, or the wrong separator",
       "Qwix matches the whole slash-joined path, PEFT the whole dotted one: q_einsum or layers.0.attn.q_einsum match "
       "nothing in Qwix.",
       "qwix/_src/providers/lora.py and flax_util.py; peft/tuners/tuners_utils.py", cov_4},
      {"COV-5", Severity::warning, kAllStacks, "Experts get no LoRA",
       "Expert weights go through ragged_dot, which Qwix's LoRA does not intercept; PEFT needs target_parameters. Only "
       "attention and the dense branch train.",
       "qwix/_src/providers/lora.py (dot_general, einsum, conv); tunix/models/gemma4/moe.py", cov_5},
      {"SCALE-1", Severity::warning, kAllStacks, "alpha / rank below 0.25 or above 4",
       "Tunix's documented rank 16 with alpha 2 scales adapters by 0.125; qwix before 0.1.0 scaled by alpha itself.",
       "tunix docs/quickstart.md; qwix 0ad770a (2025-04-28, first in 0.1.0)", scale_1},
      {"VARIANT-1", Severity::error, kAllStacks, "The software has no DoRA or no LoRA+",
       "An option that a library does not know is ignored or refused at the start. Qwix and torchax have neither "
       "variant.",
       "peft/tuners/lora/dora.py; peft/optimizers/loraplus.py; torchtune/modules/peft/dora.py", variant_1},
      {"REMAT-1", Severity::error, tunix, "Remat is on while LoRA is applied",
       "Parameters made inside a rematerialised call are lost. Tunix's command line turns remat off around it since "
       "0.1.8; a direct qwix.apply_lora_to_model does not.",
       "tunix f36fe42d (2026-06-12, after v0.1.7): tunix/cli/utils/model.py", remat_1},
      {"REMAT-2", Severity::warning, accelerators, "Long rows without remat",
       "Gemma 2 2B with LoRA, 4 rows of 8,192 tokens, needed about 41 GB without remat.",
       "keras-team/keras-hub#2158; google/tunix#309; Tunix's RematConfig defaults to NONE", remat_2},
  };
}

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
  const std::vector<model::Stack> peft{model::Stack::trl_fsdp}, vllm{model::Stack::vllm_tpu, model::Stack::vllm_gpu};
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
