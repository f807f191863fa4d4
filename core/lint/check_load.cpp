// SPDX-License-Identifier: Apache-2.0
// Rules about package versions, types and the loaded files: VER, DTYPE, LOAD.
#include <algorithm>

#include "core/base/counted.h"
#include "core/lint/rules.h"
#include "core/model/catalogue.h"

namespace mw::lint {
namespace {

bool real_size(const CheckInput& input) {
  return input.inventory.parameters() > 100'000'000;
}

// --- VER: Tunix's own pins (pyproject.toml at c7d8950) ---

struct Pin {
  std::string_view package, at_least, below;
  std::vector<std::string_view> never;
  std::string_view good, text;
};
const std::vector<Pin>& pins() {
  static const std::vector<Pin> kPins{
      {"flax", "0.12.5", "", {}, "0.12.5", ">=0.12.5"},
      {"qwix", "0.1.6", "", {}, "0.1.8", ">=0.1.6"},
      {"safetensors", "", "0.8", {}, "0.7.0", "<0.8"},
      {"transformers", "", "", {"4.57.2"}, "4.57.3", "!=4.57.2"},
      {"jax", "0.6.0", "0.11.1", {"0.7.2", "0.11.0"}, "0.8.3", ">=0.6.0, !=0.7.2, !=0.11.0, <0.11.1"},
  };
  return kPins;
}

bool keeps(const Pin& pin, const std::string& version) {
  if (!pin.at_least.empty() && compare_versions(version, pin.at_least) < 0) return false;
  if (!pin.below.empty() && compare_versions(version, pin.below) >= 0) return false;
  return std::none_of(pin.never.begin(), pin.never.end(),
                      [&](std::string_view v) { return compare_versions(version, v) == 0; });
}

void ver_1(const CheckInput& input, const RuleReport& report) {
  std::string unknown;
  for (const Pin& pin : pins()) {
    const auto at = input.versions.find(std::string(pin.package));
    if (at == input.versions.end()) {
      unknown += (unknown.empty() ? "" : ", ") + std::string(pin.package);
      continue;
    }
    if (keeps(pin, at->second)) continue;
    const std::string name(pin.package);
    report.add({.message = name + " is outside the range that Tunix pins",
                .place = "stack.versions",
                .found = name + " " + at->second,
                .expected = name + std::string(pin.text),
                .fixes = {{"Use " + name + " " + std::string(pin.good), "", {set_version(input, name, pin.good)}}}});
  }
  if (!unknown.empty()) report.unchecked("the versions of " + unknown + " (stack.versions)");
}

// --- DTYPE ---

void dtype_1(const CheckInput& input, const RuleReport& report) {
  const Fix bf16{"Hold weights in bf16", "", {{"train.dtype", "bf16"}}};
  if (input.stack == model::Stack::tunix && input.dtype == model::WeightType::f32 && real_size(input))
    report.add({.message = "weights stay in float32, Tunix's default: twice the memory of bf16",
                .place = "train.dtype",
                .found = "f32",
                .expected = "bf16",
                .fixes = {bf16}});
  if (input.config.family != model::Family::gemma3 || input.dtype_stated) return;
  if (!input.checkpoint || !input.checkpoint->any_f16) return;
  report.add({.message = "the files are float16, in which Gemma 3's activations overflow, and the experiment "
                         "sets no other type",
              .place = "train.dtype",
              .found = "float16 files",
              .expected = "bf16 or f32",
              .fixes = {bf16}});
}

void dtype_2(const CheckInput& input, const RuleReport& report) {
  if (input.purpose != Purpose::train || input.dtype != model::WeightType::int8) return;
  report.add({.message = "int8 weights cannot be trained, nor adapters on them: the engine, Tunix and FSDP hold them "
                         "for inference only",
              .place = "train.dtype",
              .found = "int8",
              .expected = "bf16 or f32",
              .fixes = {{"Hold weights in bf16", "twice the memory of the weights", {{"train.dtype", "bf16"}}}}});
}

// --- LOAD ---

bool accepted(model::Family family, const std::string& prefix) {
  switch (family) {
    case model::Family::gemma3:
      return prefix == "model." || prefix == "language_model.model.";
    case model::Family::gemma4:
      return prefix == "model.language_model." || prefix.empty();
    default:
      return prefix == "model.";
  }
}

// The hub's files of the same model have the names that Tunix accepts.
std::vector<Fix> hub_files(const CheckInput& input) {
  for (const std::string& id : model::catalogue_ids()) {
    const model::Config hub = model::catalogue_config(id);
    if (hub.family != input.config.family || hub.dim != input.config.dim || hub.layers != input.config.layers) continue;
    return {{"Load the hub's files of " + id,
             "the weights of this folder are not used",
             {{"model.path", nullptr}, {"model.id", id}}}};
  }
  return {};
}

void load_1(const CheckInput& input, const RuleReport& report) {
  if (!input.checkpoint) return report.unchecked("the tensor names of the files (model.path)");
  const CheckpointInput& c = *input.checkpoint;
  Finding finding{.place = "model.path"};
  if (!accepted(input.config.family, c.prefix)) {
    finding.message = "Tunix does not find tensors under this prefix and leaves them empty";
    finding.found = c.prefix + "layers.0...";
    finding.expected = input.config.family == model::Family::gemma4   ? "model.language_model. or no prefix"
                       : input.config.family == model::Family::gemma3 ? "model. or language_model.model."
                                                                      : "model.";
  } else if (!c.missing.empty()) {
    finding.message = std::to_string(c.missing.size()) + " tensors are not in the files and stay empty";
    finding.found = "no " + c.missing.front();
  } else if (!c.unmatched.empty()) {
    finding.message = counted(c.unmatched.size(), "tensor") + " of the files match nothing and are skipped";
    finding.found = c.unmatched.front();
  } else if (!c.shared_kv) {
    finding.message = "the files were saved without K and V of layers that borrow them; Tunix's parameters stay empty";
    finding.found = "no k_proj in borrowing layers";
  } else {
    return;
  }
  finding.fixes = hub_files(input);
  report.add(std::move(finding));
}

void load_2(const CheckInput& input, const RuleReport& report) {
  if (input.config.family != model::Family::gemma3 && input.config.family != model::Family::gemma4) return;
  const auto given = input.model_config.find("num_embed");
  const std::string expected = given == input.model_config.end() ? "262144" : given->second;
  const std::string rows =
      std::to_string(input.checkpoint ? input.checkpoint->embedding_rows : std::int64_t{input.config.vocab});
  if (rows == expected) return;
  report.add({.message = "embedding has " + rows + " rows; the Tunix config expects " + expected,
              .place = "stack.model_config",
              .found = rows + " rows",
              .expected = expected,
              .fixes = {{"Set num_embed to " + rows, "", {set_model_field(input, "num_embed", rows)}}}});
}

void load_3(const CheckInput& input, const RuleReport& report) {
  if (input.config.family != model::Family::gemma2 || input.config.dim != 3584) return;
  const std::string real = std::to_string(input.config.layers.front().mlp_dim);
  const auto given = input.model_config.find("hidden_dim");
  const std::string configured = given == input.model_config.end() ? "28672" : given->second;
  if (configured == real) return;
  report.add({.message = "the MLP width of Tunix's gemma2_9b differs from the model's",
              .place = "stack.model_config",
              .found = "hidden_dim " + configured,
              .expected = real,
              .fixes = {{"Set hidden_dim to " + real, "", {set_model_field(input, "hidden_dim", real)}}}});
}

}  // namespace

std::vector<CheckRule> load_rules() {
  const std::vector<model::Stack> tunix{model::Stack::tunix};
  return {
      {"VER-1", Severity::error, tunix, "A version outside Tunix's pins",
       "Older flax and qwix shard adapters wrongly or not at all, jax 0.7.2 is slow, 0.11 breaks flax, safetensors 0.8 "
       "breaks with jax 0.9, transformers 4.57.2 breaks loading.",
       "tunix pyproject.toml at c7d8950; google/tunix#795", ver_1},
      {"DTYPE-1", Severity::warning, kAllStacks, "float32 weights by default, or float16 with Gemma 3",
       "Tunix's ModelConfig defaults dtype and param_dtype to float32; Gemma 3 in float16 gives NaN.",
       "tunix ModelConfig; keras-team/kinetic#204; huggingface/transformers#36822, #39972", dtype_1},
      {"DTYPE-2", Severity::error, kAllStacks, "int8 weights in training",
       "The engine, Tunix and PEFT with FSDP load them for inference only; bitsandbytes' int8 layers do not go through "
       "FSDP.",
       "core/engine/transformer/model_weights.cpp; huggingface.co/docs/bitsandbytes, FSDP-QLoRA (4 bits only)", dtype_2,
       RuleEffect::refuses},
      {"LOAD-1", Severity::error, tunix, "Tensors of the files that Tunix does not find",
       "Since 059cfb0b unmatched keys are only warned about; missing ones leave abstract leaves or die with an opaque "
       "tree error.",
       "tunix/models/safetensors_loader.py, params_safetensors.py; google/tunix#611", load_1},
      {"LOAD-2", Severity::error, tunix, "The number of embedding rows differs from num_embed",
       "Hub files of Gemma 3 4B, 12B and 27B have 262,208 rows, Tunix's configs of every size say 262,144, and the "
       "shape check fails.",
       "google/tunix#1651", load_2},
      {"LOAD-3", Severity::error, tunix, "gemma2_9b's hidden_dim",
       "Tunix uses 28,672, but the model has 14,336, so the MLP weights do not fit.",
       "tunix/models/gemma/model.py against google-deepmind/gemma and transformers", load_3},
  };
}

}  // namespace mw::lint
