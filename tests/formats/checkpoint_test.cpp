// SPDX-License-Identifier: GPL-3.0-or-later
// Hugging Face folders in every accepted layout, and with every kind of fault.
#include "core/formats/huggingface/hf_weights.h"

#include <algorithm>
#include <functional>

#include "core/base/json.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/model/hf_config.h"
#include "tests/formats/test_files.h"
#include "tests/formats/tiny_models.h"

namespace mw::formats {
namespace {

namespace fs = std::filesystem;
using model::Config;
using model::Role;
using model::TensorInventory;
using testing::HasSubstr;

struct Stored {  // one tensor as it will stand in a file
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

// Every tensor of the model under `prefix`, with distinct values.
std::vector<Stored> stored(const TensorInventory& inventory, const std::string& from, const std::string& to) {
  std::vector<Stored> out;
  float next = 0;
  for (const model::Tensor& t : inventory.tensors()) {
    Stored s{to + t.hf_name.substr(from.size()), t.hf_shape, {}};
    for (std::int64_t i = 0; i < t.elements(); ++i) s.values.push_back(next += 1.0f);
    out.push_back(std::move(s));
  }
  return out;
}

void save(const fs::path& file, std::span<const Stored> tensors) {
  std::vector<TensorData> data;
  for (const Stored& s : tensors)
    data.push_back({s.name, TensorDType::f32, s.shape, std::as_bytes(std::span(s.values))});
  write_safetensors(file, data, {{"format", "pt"}});
}

void expect_values(const HfWeights& weights, const TensorInventory& inventory) {
  float next = 0;
  for (size_t i = 0; i < inventory.tensors().size(); ++i) {
    std::vector<float> values(static_cast<size_t>(inventory.tensors()[i].elements()));
    weights.read_f32(i, 0, values);
    for (const float v : values) ASSERT_EQ(v, next += 1.0f) << inventory.tensors()[i].name;
  }
}

struct Prefix {
  const char* name;
  const char* text;
};
class EveryPrefix : public testing::TestWithParam<Prefix> {};

TEST_P(EveryPrefix, IsReadRegardlessOfConfig) {
  for (const char* configured : {"model.", "language_model.model.", "model.language_model."}) {
    Config c = tiny_gemma3();
    c.hf_prefix = configured;
    const TensorInventory inventory(c);
    const Scratch folder;
    save(folder / "model.safetensors", stored(inventory, configured, GetParam().text));
    expect_values(HfWeights(folder.path(), inventory), inventory);
  }
}

INSTANTIATE_TEST_SUITE_P(HfWeights, EveryPrefix,
                         testing::Values(Prefix{"text_only", "model."}, Prefix{"old", "language_model.model."},
                                         Prefix{"new_layout", "model.language_model."}, Prefix{"trunk", ""}),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(HfWeights, SkipsTowersAndTiedHead) {
  const TensorInventory inventory(tiny_gemma3());
  const Scratch folder;
  auto tensors = stored(inventory, "model.", "language_model.model.");
  tensors.push_back({"vision_tower.vision_model.encoder.layers.0.self_attn.q_proj.weight", {1}, {7}});
  tensors.push_back({"multi_modal_projector.mm_soft_emb_norm.weight", {1}, {7}});
  tensors.push_back({"model.audio_tower.layers.0.self_attn.q_proj.linear.weight", {1}, {7}});
  tensors.push_back({"model.embed_vision.embedding_projection.weight", {1}, {7}});
  tensors.push_back({"language_model.lm_head.weight", tensors[0].shape, tensors[0].values});
  save(folder / "model.safetensors", tensors);
  const HfWeights weights(folder.path(), inventory);
  EXPECT_EQ(weights.skipped().size(), 5u);
  expect_values(weights, inventory);
}

TEST(HfWeights, IgnoresUnusedKAndVOfSharedKvLayers) {
  const TensorInventory inventory(tiny_gemma4_e());
  const Scratch folder;
  auto tensors = stored(inventory, "model.", "model.");
  save(folder / "model.safetensors", tensors);
  EXPECT_THAT(HfWeights(folder.path(), inventory).skipped(), testing::IsEmpty());
  for (const char* name : {"k_proj.weight", "v_proj.weight", "k_norm.weight"})
    tensors.push_back({std::string("model.layers.3.self_attn.") + name, {1}, {7}});
  save(folder / "model.safetensors", tensors);
  const HfWeights weights(folder.path(), inventory);
  EXPECT_EQ(weights.skipped().size(), 3u);
  expect_values(weights, inventory);
}

// Writes two shards and their index.
void save_sharded(const fs::path& folder, std::span<const Stored> tensors) {
  const size_t half = tensors.size() / 2;
  save(folder / "a.safetensors", tensors.first(half));
  save(folder / "b.safetensors", tensors.subspan(half));
  Json map = Json::object();
  for (size_t i = 0; i < tensors.size(); ++i) map[tensors[i].name] = i < half ? "a.safetensors" : "b.safetensors";
  put(folder / "model.safetensors.index.json", Json{{"metadata", {{"total_size", 1}}}, {"weight_map", map}}.dump());
}

TEST(HfWeights, ReadsShardsByTheirIndex) {
  const TensorInventory inventory(tiny_gemma3());
  const Scratch folder;
  save_sharded(folder.path(), stored(inventory, "model.", "model."));
  expect_values(HfWeights(folder.path(), inventory), inventory);
}

TEST(HfWeights, RejectsShardsOutsideFolder) {
  const TensorInventory inventory(tiny_gemma3());
  const Scratch folder;
  fs::create_directories(folder / "model");
  save(folder / "outside.safetensors", stored(inventory, "model.", "model."));
  const std::string absolute = (folder / "outside.safetensors").string();
  for (const std::string& name : {std::string("../outside.safetensors"), absolute, std::string(""),
                                  std::string("x/../../outside.safetensors"), std::string("a\0b", 3)}) {
    put(folder / "model/model.safetensors.index.json",
        Json{{"weight_map", {{"model.embed_tokens.weight", name}}}}.dump());
    const Problem p = problem_of([&] { HfWeights(folder / "model", inventory); });
    EXPECT_THAT(p.message, HasSubstr("outside the folder")) << name;
    EXPECT_THAT(p.place, HasSubstr("model.embed_tokens.weight"));
  }
}

TEST(HfWeights, RejectsInvalidIndexes) {
  const TensorInventory inventory(tiny_gemma3());
  const Scratch folder;
  for (const char* text : {"", "[]", "{}", R"({"weight_map":[]})", R"({"weight_map":{}})", R"({"weight_map":{"a":1}})",
                           R"({"weight_map":{"a":"missing.safetensors"}})", R"({"weight_map":{"a":"."}})"}) {
    put(folder / "model.safetensors.index.json", text);
    EXPECT_THROW(HfWeights(folder.path(), inventory), Error) << text;
  }
}

TEST(HfWeights, RejectsTensorInTwoShards) {
  const TensorInventory inventory(tiny_gemma3());
  const Scratch folder;
  const auto tensors = stored(inventory, "model.", "model.");
  save_sharded(folder.path(), tensors);
  save(folder / "b.safetensors", tensors);
  EXPECT_THAT(problem_of([&] { HfWeights(folder.path(), inventory); }).message, HasSubstr("twice"));
}

TEST(HfWeights, RejectsIndexWithWrongShard) {
  const TensorInventory inventory(tiny_gemma3());
  const Scratch folder;
  const auto tensors = stored(inventory, "model.", "model.");
  save_sharded(folder.path(), tensors);
  save(folder / "b.safetensors", std::span(tensors).subspan(tensors.size() / 2 + 1));
  EXPECT_THAT(problem_of([&] { HfWeights(folder.path(), inventory); }).message,
              HasSubstr("does not contain the tensor"));
}

struct BrokenTensors {
  const char* name;
  std::function<void(std::vector<Stored>&)> edit;
  const char* says;
};
void PrintTo(const BrokenTensors& b, std::ostream* os) {
  *os << b.name;
}
class BrokenWeights : public testing::TestWithParam<BrokenTensors> {};

TEST_P(BrokenWeights, AreRejected) {
  const TensorInventory inventory(tiny_gemma3());
  const Scratch folder;
  auto tensors = stored(inventory, "model.", "model.");
  GetParam().edit(tensors);
  save(folder / "model.safetensors", tensors);
  const Problem p = problem_of([&] { HfWeights(folder.path(), inventory); });
  EXPECT_THAT(to_text(p), HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    HfWeights, BrokenWeights,
    testing::Values(BrokenTensors{"one_missing", [](auto& all) { all.erase(all.begin() + 3); }, "a tensor is missing"},
                    BrokenTensors{"many_missing", [](auto& all) { all.resize(4); }, "more"},
                    BrokenTensors{"misshapen", [](auto& all) { std::swap(all[0].shape[0], all[0].shape[1]); },
                                  "tensor model.embed_tokens.weight: wrong shape"},
                    BrokenTensors{"flattened", [](auto& all) { all[0].shape = {all[0].shape[0] * all[0].shape[1]}; },
                                  "wrong shape"},
                    BrokenTensors{"unexpected",
                                  [](auto& all) {
                                    all.push_back({"model.layers.9.mlp.up_proj.weight", {1}, {1}});
                                  },
                                  "an unexpected tensor"},
                    BrokenTensors{"bias",
                                  [](auto& all) {
                                    all.push_back({"model.layers.0.self_attn.q_proj.bias", {1}, {1}});
                                  },
                                  "model.layers.0.self_attn.q_proj.bias"},
                    BrokenTensors{"other_head",
                                  [](auto& all) {
                                    all.push_back({"lm_head.weight", {3, 2}, {1, 2, 3, 4, 5, 6}});
                                  },
                                  "lm_head"},
                    BrokenTensors{"twice_under_two_prefixes",
                                  [](auto& all) {
                                    all.push_back(all[0]);
                                    all.back().name = "model.language_model.embed_tokens.weight";
                                  },
                                  "twice"},
                    BrokenTensors{"unknown_prefix",
                                  [](auto& all) {
                                    for (auto& s : all) s.name = "transformer." + s.name;
                                  },
                                  "are missing"}),
    [](const auto& p) { return std::string(p.param.name); });

TEST(HfWeights, RejectsIntegerWeights) {
  const TensorInventory inventory(tiny_gemma3());
  const Scratch folder;
  const auto tensors = stored(inventory, "model.", "model.");
  std::vector<TensorData> data;
  for (const Stored& s : tensors)
    data.push_back({s.name, TensorDType::i32, s.shape, std::as_bytes(std::span(s.values))});
  write_safetensors(folder / "model.safetensors", data);
  const Problem p = problem_of([&] { HfWeights(folder.path(), inventory); });
  EXPECT_EQ(p.found, "I32");
}

TEST(HfWeights, ReportsFolderWithoutWeights) {
  const Scratch folder;
  const Problem p = problem_of([&] { HfWeights(folder.path(), TensorInventory(tiny_gemma3())); });
  EXPECT_THAT(p.expected, HasSubstr("model.safetensors"));
  EXPECT_THROW(HfWeights("/nonexistent", TensorInventory(tiny_gemma3())), Error);
}

TEST(HfWeights, Bf16AndF32ReadsAgree) {
  const Config c = tiny_gemma3();
  const TensorInventory inventory(c);
  std::vector<std::vector<float>> values;
  for (size_t i = 0; i < inventory.tensors().size(); ++i) {
    values.emplace_back();
    for (std::int64_t n = inventory.tensors()[i].elements(); n > 0; --n)
      values.back().push_back(0.1f * static_cast<float>(n) - 3.3f);
  }
  const auto read = [&](size_t i, std::span<float> out) { std::copy(values[i].begin(), values[i].end(), out.begin()); };
  for (const TensorDType dtype : {TensorDType::f32, TensorDType::bf16}) {
    const Scratch folder;
    write_hf_weights(folder.path(), c, inventory, read, dtype);
    const HfWeights weights(folder.path(), inventory);
    EXPECT_EQ(read_json(folder / "config.json").at("dtype"), dtype == TensorDType::f32 ? "float32" : "bfloat16");
    for (size_t i = 0; i < values.size(); ++i) {
      std::vector<std::uint16_t> half(values[i].size());
      weights.read_bf16(i, 0, half);
      std::vector<float> wide(values[i].size());
      weights.read_f32(i, 0, wide);
      for (size_t k = 0; k < half.size(); ++k) {
        ASSERT_EQ(half[k], to_bf16(values[i][k]));
        ASSERT_EQ(wide[k], dtype == TensorDType::f32 ? values[i][k] : from_bf16(half[k]));
      }
      if (half.size() > 3) {
        std::vector<std::uint16_t> part(2);
        weights.read_bf16(i, 1, part);
        EXPECT_EQ(part[0], half[1]);
      }
      EXPECT_THROW(weights.read_f32(i, 1, wide), Error);
    }
  }
}

TEST(WriteHfWeights, LeavesNoFileIfReadingFails) {
  const Config c = tiny_gemma3();
  const TensorInventory inventory(c);
  const Scratch folder;
  const auto read = [&](size_t i, std::span<float>) {
    if (i == 2) throw Error({.id = "READ"});
  };
  EXPECT_EQ(problem_of([&] { write_hf_weights(folder.path(), c, inventory, read, TensorDType::f32); }).id, "READ");
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(WriteHfWeights, SavesMultimodalModelAsTextOnly) {
  Config c = tiny_gemma3();
  c.hf_prefix = "language_model.model.";
  c.hf_model_type = "gemma3";
  c.hf_architecture = "Gemma3ForConditionalGeneration";
  const TensorInventory inventory(c);
  const auto all = [](size_t, std::span<float> out) { std::fill(out.begin(), out.end(), 0.5f); };
  const Scratch folder;
  write_hf_weights(folder.path(), c, inventory, all, TensorDType::bf16);
  const Config back = read_config(folder.path());
  EXPECT_EQ(back.hf_model_type, "gemma3_text");
  EXPECT_NE(SafetensorsFile(folder / "model.safetensors").find("model.embed_tokens.weight"), nullptr);
  EXPECT_NO_THROW(HfWeights(folder.path(), TensorInventory(back)));
}

TEST(ReadConfig, UsesNameOfFolderAsId) {
  const Scratch folder;
  fs::create_directories(folder / "my-model");
  put(folder / "my-model/config.json", model::to_hf_config(tiny_gemma3()).dump());
  EXPECT_EQ(read_config(folder / "my-model").id, "my-model");
  EXPECT_EQ(read_config(folder / "my-model/").id, "my-model");
  EXPECT_EQ(read_config(folder / "my-model/.").id, "my-model");
  EXPECT_THROW(read_config(folder.path()), Error);
}

}  // namespace
}  // namespace mw::formats
