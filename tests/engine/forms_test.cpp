// SPDX-License-Identifier: GPL-3.0-or-later
// The same model in every form its files are found in: prefix, multimodal config, towers beside it,
// a copied head, keys and values of layers that borrow them. All give the same logits.
#include <gmock/gmock.h>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/formats/huggingface/hf_weights.h"
#include "tests/engine/tiny_model.h"
#include "tests/formats/test_files.h"

namespace mw::engine::test {
namespace {

namespace fs = std::filesystem;

struct Form {
  const char *name, *fixture, *model_type, *architecture, *prefix;
};
void PrintTo(const Form& f, std::ostream* os) {
  *os << f.name;
}

std::vector<float> logits_of(const fs::path& folder) {
  Device device(Bytes(0), 1);
  Network network(formats::read_config(folder), device, model::WeightType::f32);
  const formats::HfWeights weights(folder, network.inventory());
  network.load({.f32 = [&](size_t i, std::int64_t first, std::span<float> out) { weights.read_f32(i, first, out); },
                .bf16 = {}});
  const OwnedBatch batch = packed_batch(2, 14, network.config().vocab);
  std::vector<float> out(batch.ids.size() * static_cast<size_t>(network.config().vocab));
  network.logits(batch, out);
  return out;
}

void write_config(const Form& form, const fs::path& to) {
  Json text = read_json(fs::path(MW_FIXTURES) / form.fixture / "config.json");
  Json whole{
      {"model_type", form.model_type}, {"architectures", {form.architecture}}, {"vision_config", Json::object()}};
  const bool wrapped = text["model_type"] != form.model_type;
  if (wrapped) {
    text.erase("architectures");
    text["model_type"] = std::string(form.model_type) + "_text";
    whole["text_config"] = text;
  }
  write_file_atomically(to, (wrapped ? whole : text).dump());
}

// Everything under the form's prefix, and what hub files hold besides.
void write_weights(const Form& form, const fs::path& to) {
  const formats::SafetensorsFile file(fs::path(MW_FIXTURES) / form.fixture / "model.safetensors");
  std::vector<std::vector<float>> values;
  std::vector<formats::TensorData> tensors;
  values.reserve(file.tensors().size());
  const auto add = [&](const std::string& name, const std::vector<std::int64_t>& shape, std::span<const float> v) {
    tensors.push_back({name, formats::TensorDType::f32, shape, std::as_bytes(v)});
  };
  for (const formats::TensorInfo& t : file.tensors()) {
    file.read_f32(t, 0, values.emplace_back(static_cast<size_t>(t.elements())));
    add(form.prefix + t.name.substr(std::string("model.").size()), t.shape, values.back());
    if (t.name == "model.embed_tokens.weight") add("lm_head.weight", t.shape, values.back());
  }
  static const std::vector<float> kSeven{7};
  add("model.vision_tower.encoder.layers.0.self_attn.q_proj.linear.weight", {1}, kSeven);
  if (std::string(form.fixture) == "gemma4_e_tiny")
    for (const char* name : {"k_proj", "v_proj", "k_norm"})
      add(form.prefix + std::string("layers.4.self_attn.") + name + ".weight", {1}, kSeven);
  formats::write_safetensors(to, tensors, {{"format", "pt"}});
}

class EveryForm : public testing::TestWithParam<Form> {};

TEST_P(EveryForm, GivesTheSameLogits) {
  const formats::Scratch folder;
  write_config(GetParam(), folder / "config.json");
  write_weights(GetParam(), folder / "model.safetensors");
  EXPECT_EQ(logits_of(folder.path()), logits_of(fs::path(MW_FIXTURES) / GetParam().fixture));
}

constexpr const char *kHub3 = "Gemma3ForConditionalGeneration", *kHub4 = "Gemma4ForConditionalGeneration";
INSTANTIATE_TEST_SUITE_P(
    Forms, EveryForm,
    testing::Values(Form{"gemma2", "gemma2_tiny", "gemma2", "Gemma2ForCausalLM", "model."},
                    Form{"gemma2_trunk", "gemma2_tiny", "gemma2", "Gemma2ForCausalLM", ""},
                    Form{"gemma3_text", "gemma3_tiny_gqa", "gemma3_text", "Gemma3ForCausalLM", "model."},
                    Form{"gemma3_hub", "gemma3_tiny_gqa", "gemma3", kHub3, "language_model.model."},
                    Form{"gemma3_new", "gemma3_tiny_gqa", "gemma3", kHub3, "model.language_model."},
                    Form{"gemma4_text", "gemma4_tiny", "gemma4_text", "Gemma4ForCausalLM", "model."},
                    Form{"gemma4_hub", "gemma4_tiny", "gemma4", kHub4, "model.language_model."},
                    Form{"gemma4_unified", "gemma4_tiny", "gemma4_unified", "Gemma4UnifiedForConditionalGeneration",
                         "model.language_model."},
                    Form{"gemma4_e_text", "gemma4_e_tiny", "gemma4_text", "Gemma4ForCausalLM", "model."},
                    Form{"gemma4_e_hub", "gemma4_e_tiny", "gemma4", kHub4, "model.language_model."},
                    Form{"gemma4_moe_text", "gemma4_moe_tiny", "gemma4_text", "Gemma4ForCausalLM", "model."},
                    Form{"gemma4_moe_hub", "gemma4_moe_tiny", "gemma4", kHub4, "model.language_model."}),
    [](const auto& p) { return std::string(p.param.name); });

}  // namespace
}  // namespace mw::engine::test
