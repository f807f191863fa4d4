// SPDX-License-Identifier: Apache-2.0
// A text-only HF folder, whatever prefix and towers the model came with.
#include <algorithm>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/formats/huggingface/hf_names.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/formats/safetensors/floats.h"
#include "core/model/hf_config.h"

namespace mw::formats {
namespace fs = std::filesystem;
namespace {

void write_as_bf16(std::span<const float> values, const ByteSink& sink) {
  std::vector<std::uint16_t> rounded(std::min<size_t>(values.size(), 1 << 16));
  for (size_t done = 0; done < values.size(); done += rounded.size()) {
    const auto part = values.subspan(done, std::min(rounded.size(), values.size() - done));
    std::transform(part.begin(), part.end(), rounded.begin(), to_bf16);
    sink(std::as_bytes(std::span(rounded).first(part.size())));
  }
}

}  // namespace

void write_hf_weights(const fs::path& folder, const model::Config& config, const model::TensorInventory& inventory,
                      const ReadTensor& read, DType dtype) {
  const fs::path file = folder / "model.safetensors";
  if (dtype != DType::f32 && dtype != DType::bf16)
    throw Error({.id = "CHECKPOINT", .message = "weights are written as f32 or bf16", .file = file.string()},
                Error::Kind::failed);
  std::vector<TensorSpec> specs;
  for (const model::Tensor& tensor : inventory.tensors())
    specs.push_back({"model." + std::string(suffix_of(tensor)), dtype, tensor.hf_shape});
  Json json = model::to_hf_config(config);
  json["dtype"] = dtype == DType::f32 ? "float32" : "bfloat16";
  std::vector<float> values;
  const auto produce = [&](size_t i, const ByteSink& sink) {
    values.resize(static_cast<size_t>(inventory.tensors()[i].elements()));
    read(i, values);
    if (dtype == DType::f32)
      sink(std::as_bytes(std::span(values)));
    else
      write_as_bf16(values, sink);
  };
  write_safetensors(file, specs, produce, {{"format", "pt"}});  // transformers refuses files without a format
  write_file_atomically(folder / "config.json", json.dump(2) + "\n");
}

}  // namespace mw::formats
