// SPDX-License-Identifier: GPL-3.0-or-later
// Mistakes that a merged folder can have, each of which the check of its weights must find.
#include "core/train/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/files.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/formats/orbax/tunix_adapter.h"
#include "core/formats/safetensors/safetensors.h"
#include "tests/formats/test_files.h"
#include "tests/train/merge_folder.h"

namespace mw::train {
namespace {
namespace fs = std::filesystem;
using formats::TensorDType;
using testing::HasSubstr;

constexpr const char* kAdapted = "layers.1.self_attn.q_proj.weight";
constexpr const char* kUnchanged = "layers.1.input_layernorm.weight";

struct Tensors {  // content of a safetensors file
  std::vector<formats::TensorData> list;
  std::vector<std::vector<std::byte>> bytes;
  size_t index_of(const std::string& ending) const {
    for (size_t i = 0; i < list.size(); ++i)
      if (list[i].name.ends_with(ending)) return i;
    throw std::runtime_error("no tensor " + ending);
  }
};

Tensors read_tensors(const fs::path& path) {
  const formats::SafetensorsFile file(path);
  Tensors out;
  for (const formats::TensorInfo& t : file.tensors()) {
    out.bytes.emplace_back(t.end - t.begin);
    file.read(t, 0, t.elements(), out.bytes.back());
    out.list.push_back({t.name, t.dtype, t.shape, {}});
  }
  return out;
}

void write_tensors(const fs::path& path, Tensors& tensors) {
  for (size_t i = 0; i < tensors.list.size(); ++i) tensors.list[i].bytes = tensors.bytes[i];
  formats::write_safetensors(path, tensors.list, {{"format", "pt"}});
}

void to_bf16(Tensors& tensors) {
  for (size_t i = 0; i < tensors.list.size(); ++i) {
    if (tensors.list[i].dtype != TensorDType::f32) continue;
    const auto* values = reinterpret_cast<const float*>(tensors.bytes[i].data());
    std::vector<std::byte> narrow(tensors.bytes[i].size() / 2);
    for (size_t v = 0; v < narrow.size() / 2; ++v)
      reinterpret_cast<std::uint16_t*>(narrow.data())[v] = formats::to_bf16(values[v]);
    tensors.bytes[i] = std::move(narrow);
    tensors.list[i].dtype = TensorDType::bf16;
  }
}

class MergedWeights : public testing::TestWithParam<TensorDType> {
 protected:
  MergedWeights() {
    const fs::path fixture = fs::path(MW_FIXTURES) / "gemma3_tiny";
    fs::copy(fixture, base_);
    if (GetParam() == TensorDType::bf16) {
      Tensors tensors = read_tensors(base_ / "model.safetensors");
      to_bf16(tensors);
      write_tensors(base_ / "model.safetensors", tensors);
    }
    const model::TensorInventory inventory(formats::read_config(base_));
    adapter_ = formats::read_tunix_adapter(fs::path(MW_FIXTURES) / "orbax/tunix_gemma3_tiny", inventory, 6.0F).adapter;
    merge(base_, adapter_, merged_, 2);
  }

  MergeCheck check() const { return check_weights(base_, adapter_, merged_, 2); }

  // The reason with which the check fails after `change`.
  std::string reason_after(const std::function<void(Tensors&)>& change) {
    Tensors tensors = read_tensors(merged_ / "model.safetensors");
    change(tensors);
    write_tensors(merged_ / "model.safetensors", tensors);
    const MergeCheck found = check();
    return found.verdict == ParityVerdict::failed ? found.reason : "it passed";
  }

  formats::Scratch folder_;
  const fs::path base_ = folder_ / "base", merged_ = folder_ / "merged";
  formats::PeftAdapter adapter_;
};

TEST_P(MergedWeights, PassWithFigures) {
  const MergeCheck good = check();
  EXPECT_EQ(good.verdict, ParityVerdict::passed) << good.reason;
  EXPECT_EQ(good.adapted, static_cast<long>(adapter_.modules.size()));
  EXPECT_GT(good.tensors, good.adapted);
  EXPECT_GT(good.effect_rms, 0);
  // bf16 keeps 8 bits of a weight, f32 24.
  EXPECT_GE(good.rounding_rms / good.effect_rms, GetParam() == TensorDType::bf16 ? 1e-4 : 0);
  EXPECT_LT(good.rounding_rms / good.effect_rms, GetParam() == TensorDType::bf16 ? 1 : 1e-5);
  EXPECT_THAT(check_text(good), HasSubstr("check of all weights passed"));
  EXPECT_EQ(to_json(good)["verdict"], "passed");
}

TEST_P(MergedWeights, OneBitOfAnAdaptedWeightIsFound) {
  const std::string reason = reason_after([](Tensors& t) {
    auto& bytes = t.bytes[t.index_of(kAdapted)];
    bytes[bytes.size() - (GetParam() == TensorDType::bf16 ? 2 : 4) + (GetParam() == TensorDType::bf16 ? 0 : 1)] ^=
        std::byte{2};
  });
  EXPECT_THAT(reason, HasSubstr(kAdapted));
  EXPECT_THAT(reason, HasSubstr("expected"));
}

TEST_P(MergedWeights, OneBitOfAnotherTensorIsFound) {
  const std::string reason = reason_after([](Tensors& t) { t.bytes[t.index_of(kUnchanged)].front() ^= std::byte{1}; });
  EXPECT_THAT(reason, HasSubstr(std::string(kUnchanged) + "[0, 0] differs from the base model"));
}

TEST_P(MergedWeights, SwappedTensorsAreFound) {
  EXPECT_THAT(reason_after([](Tensors& t) {
                std::swap(t.bytes[t.index_of("layers.0.mlp.up_proj.weight")],
                          t.bytes[t.index_of("layers.0.mlp.gate_proj.weight")]);
              }),
              HasSubstr("layers.0.mlp"));
}

TEST_P(MergedWeights, AMissingTensorIsFound) {
  EXPECT_THAT(reason_after([](Tensors& t) {
                const auto at = static_cast<std::ptrdiff_t>(t.index_of(kUnchanged));
                t.list.erase(t.list.begin() + at);
                t.bytes.erase(t.bytes.begin() + at);
              }),
              HasSubstr("tensors, expected"));
}

TEST_P(MergedWeights, ATruncatedFileIsFound) {
  const fs::path file = merged_ / "model.safetensors";
  fs::resize_file(file, fs::file_size(file) - 1);
  EXPECT_EQ(check().verdict, ParityVerdict::failed);
  EXPECT_THAT(check().reason, HasSubstr("model.safetensors"));
}

TEST_P(MergedWeights, AnotherScaleOrTheBaseModelIsFound) {
  for (formats::AdapterModule& m : adapter_.modules)
    if (m.target.layer == 1) m.alpha *= 1.01F;
  EXPECT_EQ(check().verdict, ParityVerdict::failed);
  EXPECT_THAT(check().reason, HasSubstr("layers.1."));
  EXPECT_EQ(check_weights(base_, adapter_, base_, 2).verdict, ParityVerdict::failed);
}

TEST_P(MergedWeights, AStopEndsTheCheck) {
  std::stop_source stop;
  stop.request_stop();
  try {
    check_weights(base_, adapter_, merged_, 2, {}, stop.get_token());
    FAIL() << "it was not stopped";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::cancelled);
  }
}

// Several files of several pieces each, some of which a thread writes while others are computed and checked.
TEST(MergeChecked, FilesOfManyPiecesAreTheSameWithAnyNumberOfThreads) {
  const formats::Scratch folder;
  const fs::path fixture = fs::path(MW_FIXTURES) / "gemma3_tiny", base = folder / "base";
  model::Config config = formats::read_config(fixture);
  config.vocab = 50'000;
  const model::TensorInventory inventory(config);
  fs::create_directories(base);
  formats::write_hf_weights(
      base, config, inventory,
      [](size_t tensor, std::span<float> out) {
        for (size_t i = 0; i < out.size(); ++i)
          out[i] = static_cast<float>((i * 2654435761U + tensor * 40503U) % 8191U) / 8191.0F - 0.5F;
      },
      TensorDType::bf16);
  Tensors all = read_tensors(base / "model.safetensors");
  Tensors second;
  while (all.list.size() > 12) {
    second.list.push_back(std::move(all.list.back())), all.list.pop_back();
    second.bytes.push_back(std::move(all.bytes.back())), all.bytes.pop_back();
  }
  Json index{{"weight_map", Json::object()}};
  for (const auto& t : all.list) index["weight_map"][t.name] = "first.safetensors";
  for (const auto& t : second.list) index["weight_map"][t.name] = "second.safetensors";
  write_tensors(base / "first.safetensors", all);
  write_tensors(base / "second.safetensors", second);
  fs::remove(base / "model.safetensors");
  write_file_atomically(base / "model.safetensors.index.json", index.dump());
  const formats::PeftAdapter adapter =
      formats::read_tunix_adapter(fs::path(MW_FIXTURES) / "orbax/tunix_gemma3_tiny", inventory, 6.0F).adapter;

  MergeCheck first_check;
  for (const int threads : {1, 4}) {
    const fs::path out = folder / std::to_string(threads);
    fs::create_directories(out);
    long last = 0, total = -1;
    const CheckedMerge done = merge_checked(out, base, adapter, {.threads = threads, .progress = [&](long at, long of) {
                                                                   EXPECT_GE(at, last);
                                                                   last = at, total = of;
                                                                 }});
    EXPECT_EQ(last, total);
    EXPECT_EQ(done.check.verdict, ParityVerdict::passed) << done.check.reason;
    EXPECT_EQ(done.check.adapted, static_cast<long>(adapter.modules.size()));
    EXPECT_EQ(done.check.tensors, done.merged.tensors);
    EXPECT_GT(done.merged.written.value, 3 << 20);  // pieces have half a MiB
    if (threads == 1) first_check = done.check;
    EXPECT_EQ(done.check.values, first_check.values);
    EXPECT_EQ(done.check.rounding_rms, first_check.rounding_rms);
    EXPECT_EQ(done.check.effect_rms, first_check.effect_rms);
    for (const char* file : {"first.safetensors", "second.safetensors"})
      EXPECT_EQ(read_file(out / file), read_file(folder / "1" / file)) << file;
    const MergeCheck again = check_weights(base, adapter, out, threads);
    EXPECT_EQ(again.verdict, ParityVerdict::passed) << again.reason;
    EXPECT_EQ(again.rounding_rms, first_check.rounding_rms);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, MergedWeights, testing::Values(TensorDType::f32, TensorDType::bf16),
                         [](const auto& type) { return type.param == TensorDType::f32 ? "f32" : "bf16"; });

}  // namespace
}  // namespace mw::train
