// SPDX-License-Identifier: Apache-2.0
// A text-only HF folder, whatever prefix and towers the model came with.
#include <algorithm>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/formats/checkpoint.h"
#include "core/formats/floats.h"
#include "core/formats/hf_names.h"

namespace mw::formats {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void fail(const fs::path& file, const std::string& place, const std::string& message,
                       const std::string& found, const std::string& expected) {
  throw Error({.id = "CHECKPOINT",
               .message = message,
               .file = file.string(),
               .place = place,
               .found = found,
               .expected = expected},
              Error::Kind::failed);
}

void check_complete(const fs::path& file, const model::TensorInventory& inventory,
                    std::span<const WriteTensor> tensors) {
  const auto all = inventory.tensors();
  std::vector<int> times(all.size());
  for (const WriteTensor& t : tensors) {
    if (t.inventory_index >= all.size())
      fail(file, "", "no such tensor", std::to_string(t.inventory_index), "below " + std::to_string(all.size()));
    const model::Tensor& tensor = all[t.inventory_index];
    if (static_cast<std::int64_t>(t.values.size()) != tensor.elements())
      fail(file, "tensor " + tensor.name, "wrong number of values", std::to_string(t.values.size()),
           std::to_string(tensor.elements()));
    ++times[t.inventory_index];
  }
  for (size_t i = 0; i < all.size(); ++i)
    if (times[i] != 1) fail(file, "tensor " + all[i].name, "not given exactly once", std::to_string(times[i]), "1");
}

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
                      std::span<const WriteTensor> tensors, DType dtype) {
  const fs::path file = folder / "model.safetensors";
  if (dtype != DType::f32 && dtype != DType::bf16)
    fail(file, "", "weights are written as f32 or bf16", "another type", "");
  check_complete(file, inventory, tensors);
  std::vector<TensorSpec> specs;
  for (const WriteTensor& t : tensors) {
    const model::Tensor& tensor = inventory.tensors()[t.inventory_index];
    specs.push_back({"model." + std::string(suffix_of(tensor)), dtype, tensor.hf_shape});
  }
  Json json = model::to_hf_config(config);
  json["dtype"] = dtype == DType::f32 ? "float32" : "bfloat16";
  const auto produce = [&](size_t i, const ByteSink& sink) {
    if (dtype == DType::f32)
      sink(std::as_bytes(tensors[i].values));
    else
      write_as_bf16(tensors[i].values, sink);
  };
  write_safetensors(file, specs, produce, {{"format", "pt"}});  // transformers refuses files without a format
  write_file_atomically(folder / "config.json", json.dump(2) + "\n");
}

}  // namespace mw::formats
