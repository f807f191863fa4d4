// SPDX-License-Identifier: Apache-2.0
// Byte layout of the reference writer (huggingface/safetensors): "__metadata__" first, tensors by type (in the order
// below) and then by name, compact JSON, spaces up to a multiple of 8.
#include <algorithm>
#include <numeric>

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/formats/safetensors/safetensors.h"

namespace mw::formats {
namespace {

struct Kind {
  int rank;  // position in the file
  const char* name;
};
Kind kind_of(DType dtype) {
  switch (dtype) {
    case DType::i64:
      return {0, "I64"};
    case DType::f64:
      return {1, "F64"};
    case DType::f32:
      return {2, "F32"};
    case DType::i32:
      return {3, "I32"};
    case DType::bf16:
      return {4, "BF16"};
    case DType::f16:
      return {5, "F16"};
    case DType::i16:
      return {6, "I16"};
    case DType::i8:
      return {7, "I8"};
    case DType::u8:
      return {8, "U8"};
    case DType::boolean:
      return {9, "BOOL"};
    case DType::other:
      break;
  }
  return {10, ""};
}

[[noreturn]] void write_fault(const std::filesystem::path& file, const std::string& name, const std::string& message,
                              const std::string& found = "", const std::string& expected = "") {
  throw Error({.id = "SAFETENSORS",
               .message = message,
               .file = file.string(),
               .place = "tensor " + valid_utf8(name),
               .found = found,
               .expected = expected},
              Error::Kind::failed);
}

std::uint64_t bytes_of(const TensorSpec& t, const std::filesystem::path& file) {
  std::uint64_t n = size_of(t.dtype);
  for (const std::int64_t size : t.shape) {
    if (size < 0 || (size > 0 && n > static_cast<std::uint64_t>(INT64_MAX) / static_cast<std::uint64_t>(size)))
      write_fault(file, t.name, "a size that cannot be written", std::to_string(size));
    n *= static_cast<std::uint64_t>(size);
  }
  return n;
}

std::vector<size_t> file_order(std::span<const TensorSpec> tensors, const std::filesystem::path& file) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const int ra = kind_of(tensors[a].dtype).rank, rb = kind_of(tensors[b].dtype).rank;
    return ra != rb ? ra < rb : tensors[a].name < tensors[b].name;
  });
  std::vector<std::string_view> names;
  for (const TensorSpec& t : tensors) {
    if (t.dtype == DType::other) write_fault(file, t.name, "this type cannot be written");
    if (t.name == "__metadata__" || valid_utf8(t.name) != t.name) write_fault(file, t.name, "not a tensor name");
    names.push_back(t.name);
  }
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    write_fault(file, std::string(*twice), "two tensors with one name");
  return order;
}

std::string header_of(std::span<const TensorSpec> tensors, std::span<const size_t> order,
                      const std::map<std::string, std::string>& metadata, const std::filesystem::path& file) {
  Json header = Json::object();
  if (!metadata.empty()) {
    Json& all = header["__metadata__"] = Json::object();
    for (const auto& [key, value] : metadata) all[valid_utf8(key)] = valid_utf8(value);
  }
  // ordered_json looks a key up by scanning, which is quadratic over thousands of tensors; names are already unique.
  auto& members = header.get_ref<Json::object_t&>();
  std::uint64_t at = 0;
  for (const size_t i : order) {
    const TensorSpec& t = tensors[i];
    const std::uint64_t end = at + bytes_of(t, file);
    if (end < at) write_fault(file, t.name, "the file would be too large");
    Json entry{{"dtype", kind_of(t.dtype).name}, {"shape", t.shape}, {"data_offsets", {at, end}}};
    static_cast<std::vector<Json::object_t::value_type>&>(members).emplace_back(t.name, std::move(entry));
    at = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > kMaxHeader) write_fault(file, "", "too many tensors for one file", std::to_string(tensors.size()));
  return text;
}

}  // namespace

void write_safetensors(const std::filesystem::path& file, std::span<const TensorSpec> tensors,
                       const std::function<void(size_t index, const ByteSink& sink)>& produce,
                       const std::map<std::string, std::string>& metadata) {
  const std::vector<size_t> order = file_order(tensors, file);
  const std::string header = header_of(tensors, order, metadata, file);
  AtomicFile out(file);
  const std::uint64_t length = header.size();
  out.write(std::as_bytes(std::span(&length, 1)));
  out.write(std::as_bytes(std::span(header)));
  for (const size_t i : order) {
    std::uint64_t written = 0;
    const std::uint64_t expected = bytes_of(tensors[i], file);
    produce(i, [&](std::span<const std::byte> bytes) {
      written += bytes.size();
      if (written <= expected) out.write(bytes);
    });
    if (written != expected)
      write_fault(file, tensors[i].name, "the values do not fit the shape", std::to_string(written) + " bytes",
                  std::to_string(expected) + " bytes");
  }
  out.commit();
}

void write_safetensors(const std::filesystem::path& file, std::span<const TensorData> tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<TensorSpec> specs;
  for (const TensorData& t : tensors) specs.push_back({t.name, t.dtype, t.shape});
  write_safetensors(
      file, specs, [&](size_t i, const ByteSink& sink) { sink(tensors[i].bytes); }, metadata);
}

}  // namespace mw::formats
