// SPDX-License-Identifier: Apache-2.0
// Checks of the reference reader (huggingface/safetensors tensor.rs) and one more: duplicate names are refused.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/json.h"
#include "core/formats/safetensors/floats.h"
#include "core/formats/safetensors/pread_file.h"
#include "core/formats/safetensors/safetensors.h"

static_assert(std::endian::native == std::endian::little, "the files are little-endian and read as they are");

namespace mw::formats {
namespace {

struct Name {
  std::string_view text;
  DType dtype;
  unsigned bits;
};
// All types of the format; those that nothing here computes with are `other`.
constexpr std::array<Name, 23> kNames{
    {{"F32", DType::f32, 32},          {"BF16", DType::bf16, 16},    {"F16", DType::f16, 16},
     {"F64", DType::f64, 64},          {"I64", DType::i64, 64},      {"I32", DType::i32, 32},
     {"I16", DType::i16, 16},          {"I8", DType::i8, 8},         {"U8", DType::u8, 8},
     {"BOOL", DType::boolean, 8},      {"U16", DType::other, 16},    {"U32", DType::other, 32},
     {"U64", DType::other, 64},        {"C64", DType::other, 64},    {"F8_E5M2", DType::other, 8},
     {"F8_E4M3", DType::other, 8},     {"F8_E8M0", DType::other, 8}, {"F8_E4M3FNUZ", DType::other, 8},
     {"F8_E5M2FNUZ", DType::other, 8}, {"F6_E2M3", DType::other, 6}, {"F6_E3M2", DType::other, 6},
     {"F4", DType::other, 4},          {"F4_E2M1", DType::other, 4}}};

[[noreturn]] void read_fault(const std::filesystem::path& file, const std::string& place, const std::string& message,
                             const std::string& found = "", const std::string& expected = "",
                             const std::string& fix = "") {
  throw Error({.id = "SAFETENSORS",
               .message = message,
               .file = file.string(),
               .place = place,
               .found = text_excerpt(found),
               .expected = expected,
               .fix = fix});
}

void read_at(const PreadFile& in, std::uint64_t offset, void* out, size_t bytes) {
  in.read(offset, {static_cast<std::byte*>(out), bytes});
}

std::string read_header(const PreadFile& in, const std::filesystem::path& file) {
  const std::uint64_t size = in.size();
  if (size < 8)
    read_fault(file, "header", "the file is too short to be a safetensors file", std::to_string(size) + " bytes",
               "at least 8 bytes", "copy or download it again");
  std::uint64_t length = 0;
  read_at(in, 0, &length, sizeof length);
  if (length > kMaxHeader)
    read_fault(file, "header", "the header is too large", std::to_string(length) + " bytes",
               "at most " + std::to_string(kMaxHeader) + " bytes", "this is not a safetensors file, or it is damaged");
  if (length > size - 8)
    read_fault(file, "header", "the file ends inside its header", std::to_string(size) + " bytes",
               std::to_string(length + 8) + " bytes or more", "copy or download it again");
  std::string header(static_cast<size_t>(length), '\0');
  read_at(in, 8, header.data(), header.size());
  if (header.empty() || header[0] != '{')
    read_fault(file, "header", "the header is not a JSON object", header.substr(0, 16), "{");
  return header;
}

std::map<std::string, std::string> read_metadata(const SortedJson& json, const std::filesystem::path& file) {
  std::map<std::string, std::string> out;
  if (!json.is_object()) read_fault(file, "__metadata__", "wrong type", json.type_name(), "an object of strings");
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) read_fault(file, "__metadata__." + key, "wrong type", value.type_name(), "a string");
    out[key] = value.get<std::string>();
  }
  return out;
}

std::uint64_t whole(const SortedJson& value, const std::filesystem::path& file, const std::string& place) {
  if (!value.is_number_unsigned())
    read_fault(file, place, "not a whole number of 0 or more", value.dump(), "0 or more");
  return value.get<std::uint64_t>();
}

// Fills shape and offsets; throws unless the stated type and shape need exactly the stated bytes.
TensorInfo read_entry(const std::string& name, const SortedJson& entry, const std::filesystem::path& file) {
  const std::string place = "tensor " + text_excerpt(name);
  if (!entry.is_object()) read_fault(file, place, "wrong type", entry.type_name(), "an object");
  for (const char* key : {"dtype", "shape", "data_offsets"})
    if (!entry.contains(key)) read_fault(file, place, "a required key is missing", "", std::string("\"") + key + "\"");
  const SortedJson &dtype = entry.at("dtype"), &shape = entry.at("shape"), &offsets = entry.at("data_offsets");
  if (!dtype.is_string()) read_fault(file, place, "dtype has the wrong type", dtype.type_name(), "a string");
  if (!shape.is_array()) read_fault(file, place, "shape has the wrong type", shape.type_name(), "a list");
  if (!offsets.is_array() || offsets.size() != 2)
    read_fault(file, place, "data_offsets is not a pair", "", "[begin, end]");

  TensorInfo t;
  t.name = name;
  t.dtype_name = dtype.get<std::string>();
  t.begin = whole(offsets[0], file, place);
  t.end = whole(offsets[1], file, place);
  if (t.end < t.begin)
    read_fault(file, place, "data_offsets run backwards", std::to_string(t.begin) + " to " + std::to_string(t.end));
  std::uint64_t elements = 1;
  for (const SortedJson& size : shape) {
    const std::uint64_t n = whole(size, file, place);
    if (n > static_cast<std::uint64_t>(INT64_MAX) || (n != 0 && elements > static_cast<std::uint64_t>(INT64_MAX) / n))
      read_fault(file, place, "the shape is too large", shape.dump());
    elements *= n;
    t.shape.push_back(static_cast<std::int64_t>(n));
  }
  const auto known = std::find_if(kNames.begin(), kNames.end(), [&](const Name& n) { return n.text == t.dtype_name; });
  t.dtype = known == kNames.end() ? DType::other : known->dtype;
  if (known == kNames.end()) return t;  // a type of the future: its size cannot be checked, and nobody can read it
  if (elements > UINT64_MAX / known->bits) read_fault(file, place, "the shape is too large", shape.dump());
  const std::uint64_t bits = elements * known->bits;
  if (bits % 8 != 0) read_fault(file, place, "the data does not fill whole bytes", std::to_string(bits) + " bits");
  if (t.end - t.begin != bits / 8)
    read_fault(file, place, "data_offsets do not fit dtype and shape", std::to_string(t.end - t.begin) + " bytes",
               std::to_string(bits / 8) + " bytes for " + t.dtype_name + " " + text_excerpt(shape.dump()));
  return t;
}

// Together the tensors must cover the data section exactly: no hole, no overlap, nothing left over.
void check_cover(std::vector<TensorInfo>& tensors, std::uint64_t data_bytes, const std::filesystem::path& file) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::uint64_t at = 0;
  for (const TensorInfo& t : tensors) {
    if (t.begin != at)
      read_fault(file, "tensor " + text_excerpt(t.name),
                 t.begin < at ? "overlaps the tensor before it" : "a hole before it",
                 "begins at " + std::to_string(t.begin), "begin " + std::to_string(at));
    at = t.end;
  }
  if (at > data_bytes)
    read_fault(file, tensors.empty() ? "" : "tensor " + text_excerpt(tensors.back().name), "the file is too short",
               std::to_string(data_bytes) + " bytes of data", std::to_string(at) + " bytes",
               "copy or download it again");
  if (at < data_bytes)
    read_fault(file, "", "the file has bytes after its last tensor", std::to_string(data_bytes) + " bytes of data",
               std::to_string(at) + " bytes");
}

}  // namespace

size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
    case DType::i16:
      return 2;
    case DType::i8:
    case DType::u8:
    case DType::boolean:
      return 1;
    case DType::other:
      return 0;
  }
  return 0;
}

std::int64_t TensorInfo::elements() const {
  std::int64_t n = 1;
  for (const std::int64_t size : shape) n *= size;
  return n;
}

SafetensorsFile::SafetensorsFile(std::filesystem::path file) : file_(std::move(file)) {
  const PreadFile in(file_);
  const std::uint64_t size = in.size();
  const std::string header = read_header(in, file_);
  data_start_ = 8 + header.size();
  const SortedJson json =
      parse_sorted_json(header, file_.string() + ", header");  // refuses duplicates and bytes that are not UTF-8
  for (const auto& [name, entry] : json.items()) {
    if (name == "__metadata__")
      metadata_ = read_metadata(entry, file_);
    else
      tensors_.push_back(read_entry(name, entry, file_));
  }
  check_cover(tensors_, size - data_start_, file_);
  for (size_t i = 0; i < tensors_.size(); ++i) by_name_.emplace(tensors_[i].name, i);
}

const TensorInfo* SafetensorsFile::find(const std::string& name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : &tensors_[at->second];
}

void SafetensorsFile::read(const TensorInfo& tensor, std::int64_t first, std::int64_t count,
                           std::span<std::byte> out) const {
  const size_t item = size_of(tensor.dtype);
  const std::string place = "tensor " + text_excerpt(tensor.name);
  if (item == 0) read_fault(file_, place, "values of this type cannot be read", tensor.dtype_name, "F32, BF16 or F16");
  const std::int64_t elements = tensor.elements();
  if (first < 0 || count < 0 || first > elements || count > elements - first)
    read_fault(file_, place, "asked for values outside the tensor",
               std::to_string(first) + " + " + std::to_string(count) + " of " + std::to_string(elements));
  if (out.size() != static_cast<size_t>(count) * item)
    read_fault(file_, place, "the buffer has another size than the values");
  // Opened for one operation: a model in memory keeps no descriptors.
  PreadFile(file_).read(data_start_ + tensor.begin + static_cast<std::uint64_t>(first) * item, out);
}

void SafetensorsFile::read_f32(const TensorInfo& tensor, std::int64_t first, std::span<float> out) const {
  if (tensor.dtype == DType::f32) {
    read(tensor, first, static_cast<std::int64_t>(out.size()), std::as_writable_bytes(out));
    return;
  }
  if (tensor.dtype != DType::bf16 && tensor.dtype != DType::f16 && tensor.dtype != DType::f64)
    read_fault(file_, "tensor " + text_excerpt(tensor.name), "not floating-point numbers", tensor.dtype_name,
               "F32, BF16, F16 or F64");
  constexpr size_t kChunk = 1 << 16;  // elements; widened piecewise, so that no second copy of a tensor is held
  std::vector<std::byte> raw(std::min(out.size(), kChunk) * size_of(tensor.dtype));
  for (size_t done = 0; done < out.size(); done += kChunk) {
    const auto part = out.subspan(done, std::min(kChunk, out.size() - done));
    const auto bytes = std::span(raw).first(part.size() * size_of(tensor.dtype));
    read(tensor, first + static_cast<std::int64_t>(done), static_cast<std::int64_t>(part.size()), bytes);
    widen(tensor.dtype, bytes, part);
  }
}

}  // namespace mw::formats
