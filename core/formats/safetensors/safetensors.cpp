// SPDX-License-Identifier: Apache-2.0
// The reader makes the checks of the reference implementation (huggingface/safetensors tensor.rs) and also rejects
// duplicate names. The writer uses its byte layout: "__metadata__" first, tensors by type and then by name, compact
// JSON, padding with spaces to a multiple of 8.
#include "core/formats/safetensors/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <numeric>
#include <unordered_set>

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"

namespace mw::formats {
namespace {

static_assert(std::endian::native == std::endian::little, "the values in the files are little-endian");

struct DTypeName {
  std::string_view text;
  TensorDType dtype;
  unsigned bits;
};
// All types of the format: those that can be written, in the order of their tensors in a file, then those that cannot
// be read.
constexpr std::array<DTypeName, 23> kDTypeNames{
    {{"I64", TensorDType::i64, 64},          {"F64", TensorDType::f64, 64},      {"F32", TensorDType::f32, 32},
     {"I32", TensorDType::i32, 32},          {"BF16", TensorDType::bf16, 16},    {"F16", TensorDType::f16, 16},
     {"I16", TensorDType::i16, 16},          {"I8", TensorDType::i8, 8},         {"U8", TensorDType::u8, 8},
     {"BOOL", TensorDType::boolean, 8},      {"U16", TensorDType::other, 16},    {"U32", TensorDType::other, 32},
     {"U64", TensorDType::other, 64},        {"C64", TensorDType::other, 64},    {"F8_E5M2", TensorDType::other, 8},
     {"F8_E4M3", TensorDType::other, 8},     {"F8_E8M0", TensorDType::other, 8}, {"F8_E4M3FNUZ", TensorDType::other, 8},
     {"F8_E5M2FNUZ", TensorDType::other, 8}, {"F6_E2M3", TensorDType::other, 6}, {"F6_E3M2", TensorDType::other, 6},
     {"F4", TensorDType::other, 4},          {"F4_E2M1", TensorDType::other, 4}}};

const DTypeName* row_of(TensorDType dtype) {
  return std::find_if(kDTypeNames.begin(), kDTypeNames.end(), [&](const DTypeName& n) { return n.dtype == dtype; });
}

[[noreturn]] void read_fault(const std::filesystem::path& file, const std::string& place, const std::string& message,
                             const std::string& found = "", const std::string& expected = "",
                             const std::string& fix = "") {
  throw Error("SAFETENSORS", message,
              {.file = file.string(), .place = place, .found = text_excerpt(found), .expected = expected, .fix = fix});
}

void read_at(const PreadFile& in, std::uint64_t offset, void* out, size_t bytes) {
  in.read(offset, {static_cast<std::byte*>(out), bytes});
}

std::string read_header(const PreadFile& in, const std::filesystem::path& file) {
  const std::uint64_t size = in.size();
  if (size < 8)
    read_fault(file, "header", "the file is too short for a safetensors file", std::to_string(size) + " bytes",
               "at least 8 bytes", "copy or download the file again");
  std::uint64_t length = 0;
  read_at(in, 0, &length, sizeof length);
  if (length > kMaxHeader)
    read_fault(file, "header", "the header is too large", std::to_string(length) + " bytes",
               "at most " + std::to_string(kMaxHeader) + " bytes",
               "check that this is a safetensors file, or download it again");
  if (length > size - 8)
    read_fault(file, "header", "the file ends inside its header", std::to_string(size) + " bytes",
               std::to_string(length + 8) + " bytes or more", "copy or download the file again");
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
    read_fault(file, place, "the value is not a non-negative integer", value.dump(), "0 or more");
  return value.get<std::uint64_t>();
}

// Throws unless type and shape match the number of bytes.
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
    read_fault(file, place, "data_offsets end before they begin",
               std::to_string(t.begin) + " to " + std::to_string(t.end));
  std::uint64_t elements = 1;
  for (const SortedJson& size : shape) {
    const std::uint64_t n = whole(size, file, place);
    if (n > static_cast<std::uint64_t>(INT64_MAX) || (n != 0 && elements > static_cast<std::uint64_t>(INT64_MAX) / n))
      read_fault(file, place, "the shape is too large", shape.dump());
    elements *= n;
    t.shape.push_back(static_cast<std::int64_t>(n));
  }
  const auto* const known =
      std::find_if(kDTypeNames.begin(), kDTypeNames.end(), [&](const DTypeName& n) { return n.text == t.dtype_name; });
  t.dtype = known == kDTypeNames.end() ? TensorDType::other : known->dtype;
  if (known == kDTypeNames.end()) return t;  // unknown type: its size cannot be checked, and its values cannot be read
  if (elements > UINT64_MAX / known->bits) read_fault(file, place, "the shape is too large", shape.dump());
  const std::uint64_t bits = elements * known->bits;
  if (bits % 8 != 0) read_fault(file, place, "the data is not a whole number of bytes", std::to_string(bits) + " bits");
  if (t.end - t.begin != bits / 8)
    read_fault(file, place, "data_offsets do not match dtype and shape", std::to_string(t.end - t.begin) + " bytes",
               std::to_string(bits / 8) + " bytes for " + t.dtype_name + " " + text_excerpt(shape.dump()));
  return t;
}

// The tensors must cover the data section without gaps, overlaps or trailing bytes.
void check_cover(std::vector<TensorInfo>& tensors, std::uint64_t data_bytes, const std::filesystem::path& file) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::uint64_t at = 0;
  for (const TensorInfo& t : tensors) {
    if (t.begin != at)
      read_fault(file, "tensor " + text_excerpt(t.name),
                 t.begin < at ? "the tensor overlaps the previous one" : "there is a gap before the tensor",
                 "begins at " + std::to_string(t.begin), "begin " + std::to_string(at));
    at = t.end;
  }
  if (at > data_bytes)
    read_fault(file, tensors.empty() ? "" : "tensor " + text_excerpt(tensors.back().name), "the file is too short",
               std::to_string(data_bytes) + " bytes of data", std::to_string(at) + " bytes",
               "copy or download the file again");
  if (at < data_bytes)
    read_fault(file, "", "there are bytes after the last tensor", std::to_string(data_bytes) + " bytes of data",
               std::to_string(at) + " bytes");
}

[[noreturn]] void write_fault(const std::filesystem::path& file, const std::string& name, const std::string& message,
                              const std::string& found = "", const std::string& expected = "") {
  throw Error("SAFETENSORS", message,
              {.file = file.string(), .place = "tensor " + valid_utf8(name), .found = found, .expected = expected},
              Error::Kind::failed);
}

std::uint64_t bytes_of(const TensorSpec& t, const std::filesystem::path& file) {
  std::uint64_t n = size_of(t.dtype);
  for (const std::int64_t size : t.shape) {
    if (size < 0 || (size > 0 && n > static_cast<std::uint64_t>(INT64_MAX) / static_cast<std::uint64_t>(size)))
      write_fault(file, t.name, "the shape is invalid", std::to_string(size));
    n *= static_cast<std::uint64_t>(size);
  }
  return n;
}

std::vector<size_t> file_order(std::span<const TensorSpec> tensors, const std::filesystem::path& file) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const DTypeName *ra = row_of(tensors[a].dtype), *rb = row_of(tensors[b].dtype);
    return ra != rb ? ra < rb : tensors[a].name < tensors[b].name;
  });
  std::unordered_set<std::string_view> names;
  for (const TensorSpec& t : tensors) {
    if (t.dtype == TensorDType::other) write_fault(file, t.name, "this data type cannot be written");
    if (t.name == "__metadata__" || first_invalid_utf8(t.name) != std::string_view::npos)
      write_fault(file, t.name, "the name is not valid for a tensor");
    if (!names.insert(t.name).second) write_fault(file, t.name, "two tensors have this name");
  }
  return order;
}

std::string header_of(std::span<const TensorSpec> tensors, std::span<const size_t> order,
                      const std::map<std::string, std::string>& metadata, const std::filesystem::path& file) {
  std::string text = "{";
  const auto name = [&](const std::string& of) {
    const bool is_plain = std::all_of(of.begin(), of.end(), [](char c) { return c >= ' ' && c != '"' && c != '\\'; });
    text += text.size() > 1 ? "," : "";
    text += is_plain ? '"' + of + '"' : Json(of).dump();
  };
  if (!metadata.empty()) {
    Json all = Json::object();
    for (const auto& [key, value] : metadata) all[valid_utf8(key)] = valid_utf8(value);
    name("__metadata__");
    text += ":" + all.dump();
  }
  // As text, because a plan asks for the size of a file of a thousand tensors at every edit.
  std::uint64_t at = 0;
  for (const size_t i : order) {
    const TensorSpec& t = tensors[i];
    const std::uint64_t end = at + bytes_of(t, file);
    if (end < at) write_fault(file, t.name, "the file would exceed 2^63 bytes");
    name(t.name);
    text.append(":{\"dtype\":\"").append(row_of(t.dtype)->text).append("\",\"shape\":[");
    for (const std::int64_t size : t.shape) text.append(std::to_string(size)) += ',';
    if (text.back() == ',') text.pop_back();
    text.append("],\"data_offsets\":[").append(std::to_string(at)).append(",").append(std::to_string(end)).append("]}");
    at = end;
  }
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > kMaxHeader)
    write_fault(file, "", "the header exceeds the size limit: too many tensors for one file",
                std::to_string(tensors.size()));
  return text;
}

}  // namespace

size_t size_of(TensorDType dtype) {
  return dtype == TensorDType::other ? 0 : row_of(dtype)->bits / 8;
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
      parse_sorted_json(header, file_.string() + ", header");  // rejects duplicate keys and invalid UTF-8
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
  if (item == 0) read_fault(file_, place, "this data type is not supported", tensor.dtype_name, "F32, BF16 or F16");
  const std::int64_t elements = tensor.elements();
  if (first < 0 || count < 0 || first > elements || count > elements - first)
    read_fault(file_, place, "the requested range is outside the tensor",
               std::to_string(first) + " + " + std::to_string(count) + " of " + std::to_string(elements));
  if (out.size() != static_cast<size_t>(count) * item)
    read_fault(file_, place, "the size of the buffer does not match the number of values");
  // Opened per read, so that a loaded model holds no file descriptors.
  PreadFile(file_).read(data_start_ + tensor.begin + static_cast<std::uint64_t>(first) * item, out);
}

void SafetensorsFile::read_f32(const TensorInfo& tensor, std::int64_t first, std::span<float> out) const {
  if (tensor.dtype == TensorDType::f32) {
    read(tensor, first, static_cast<std::int64_t>(out.size()), std::as_writable_bytes(out));
    return;
  }
  if (tensor.dtype != TensorDType::bf16 && tensor.dtype != TensorDType::f16 && tensor.dtype != TensorDType::f64)
    read_fault(file_, "tensor " + text_excerpt(tensor.name), "the tensor has no floating-point values",
               tensor.dtype_name, "F32, BF16, F16 or F64");
  constexpr size_t kChunk = 1 << 16;  // elements per step, to avoid a second copy of the tensor
  std::vector<std::byte> raw(std::min(out.size(), kChunk) * size_of(tensor.dtype));
  for (size_t done = 0; done < out.size(); done += kChunk) {
    const auto part = out.subspan(done, std::min(kChunk, out.size() - done));
    const auto bytes = std::span(raw).first(part.size() * size_of(tensor.dtype));
    read(tensor, first + static_cast<std::int64_t>(done), static_cast<std::int64_t>(part.size()), bytes);
    widen(tensor.dtype, bytes, part);
  }
}

SafetensorsLayout layout_of(std::span<const TensorSpec> tensors, const std::map<std::string, std::string>& metadata,
                            const std::filesystem::path& file) {
  SafetensorsLayout layout{.header = {}, .order = file_order(tensors, file)};
  const std::string text = header_of(tensors, layout.order, metadata, file);
  const std::uint64_t length = text.size();
  layout.header.assign(reinterpret_cast<const char*>(&length), sizeof(length));
  layout.header += text;
  layout.bytes = layout.header.size();
  for (const TensorSpec& t : tensors) layout.bytes += bytes_of(t, file);
  return layout;
}

void write_safetensors(const std::filesystem::path& file, std::span<const TensorSpec> tensors,
                       const std::function<void(size_t index, const ByteSink& sink)>& produce,
                       const std::map<std::string, std::string>& metadata) {
  const SafetensorsLayout layout = layout_of(tensors, metadata, file);
  AtomicFile out(file);
  out.write(std::as_bytes(std::span(layout.header)));
  for (const size_t i : layout.order) {
    std::uint64_t written = 0;
    const std::uint64_t expected = bytes_of(tensors[i], file);
    produce(i, [&](std::span<const std::byte> bytes) {
      written += bytes.size();
      if (written <= expected) out.write(bytes);
    });
    if (written != expected)
      write_fault(file, tensors[i].name, "the number of bytes does not match the shape",
                  std::to_string(written) + " bytes", std::to_string(expected) + " bytes");
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

void FileErrors::operator()(const std::filesystem::path& file, const std::string& place, const std::string& message,
                            const std::string& found, const std::string& expected, const std::string& fix) const {
  throw Error(id, message,
              {.file = file.string(),
               .place = valid_utf8(place),
               .found = valid_utf8(found),
               .expected = expected,
               .fix = fix});
}

namespace {

template <class Stored, class Convert>
void convert_all(std::span<const std::byte> bytes, std::span<float> out, Convert convert) {
  for (size_t i = 0; i < out.size(); ++i) {
    Stored stored;  // copied, because the bytes may be unaligned
    std::memcpy(&stored, bytes.data() + i * sizeof stored, sizeof stored);
    out[i] = convert(stored);
  }
}

}  // namespace

float from_f16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu, fraction = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));  // infinity, NaN
  if (exponent == 0) {  // zero and subnormals: fraction x 2^-24, exact in float
    const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

void widen(TensorDType dtype, std::span<const std::byte> bytes, std::span<float> out) {
  if (out.empty()) return;  // `bytes` may have a null pointer
  if (dtype == TensorDType::f32)
    std::memcpy(out.data(), bytes.data(), out.size() * sizeof(float));
  else if (dtype == TensorDType::bf16)
    convert_all<std::uint16_t>(bytes, out, from_bf16);
  else if (dtype == TensorDType::f16)
    convert_all<std::uint16_t>(bytes, out, from_f16);
  else if (dtype == TensorDType::f64)
    convert_all<double>(bytes, out, [](double v) { return static_cast<float>(v); });
}

PreadFile::PreadFile(const std::filesystem::path& file) : file_(file) {
  fd_ = open_input(file);
  struct stat st {};
  if (::fstat(fd_, &st) == 0) {
    size_ = static_cast<std::uint64_t>(st.st_size);
    return;
  }
  const int error = errno;
  ::close(fd_);
  throw system_error("cannot read", file.string(), error);
}

PreadFile::~PreadFile() {
  ::close(fd_);
}

void PreadFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t n = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw system_error("cannot read", file_.string(), errno);
    if (n == 0)
      throw Error("FILE-SHORT", "the file is shorter than expected",
                  {.file = file_.string(), .found = "end at byte " + std::to_string(offset)});
    offset += static_cast<std::uint64_t>(n);
    out = out.subspan(static_cast<size_t>(n));
  }
}

void PreadFile::will_read(std::uint64_t offset, std::uint64_t bytes) const {
  ::posix_fadvise(fd_, static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
}

}  // namespace mw::formats
