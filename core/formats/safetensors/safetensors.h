// SPDX-License-Identifier: Apache-2.0
// safetensors, read strictly and written byte-compatibly (huggingface/safetensors, tensor.rs). Nothing in a file is
// trusted.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace mw::formats {

inline constexpr std::uint64_t kMaxHeader =
    100'000'000;  // limit of the JSON header in bytes, as in the reference library

enum class TensorDType { f32, bf16, f16, f64, i64, i32, i16, i8, u8, boolean, other };
size_t size_of(TensorDType dtype);  // bytes per element; 0 for other

struct TensorInfo {
  std::string name;
  TensorDType dtype = TensorDType::f32;
  std::string dtype_name;  // as written in the file
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;  // byte range in the data section
  std::int64_t elements() const;
};

// A safetensors file opened for reading. Data is read with pread instead of mmap, so loading does not add to the RSS of
// the process. Thread-safe.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(std::filesystem::path file);                // throws SAFETENSORS naming file and tensor
  const std::vector<TensorInfo>& tensors() const { return tensors_; }  // in file order
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const TensorInfo* find(const std::string& name) const;
  const std::filesystem::path& path() const { return file_; }
  std::uint64_t data_start() const { return data_start_; }  // offset of the data section in the file
  // Reads elements [first, first + count) as little-endian bytes; `out` has count * size_of(dtype) bytes.
  void read(const TensorInfo& tensor, std::int64_t first, std::int64_t count, std::span<std::byte> out) const;
  // Reads out.size() elements as f32; throws unless the tensor is f32, bf16, f16 or f64.
  void read_f32(const TensorInfo& tensor, std::int64_t first, std::span<float> out) const;

 private:
  std::filesystem::path file_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, std::string> metadata_;
  std::map<std::string, size_t> by_name_;
  std::uint64_t data_start_ = 0;
};

struct TensorData {  // a tensor to write
  std::string name;
  TensorDType dtype = TensorDType::f32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};
// Writes a file atomically, in the layout of the reference writer: tensors sorted by type and name, header padded to 8.
void write_safetensors(const std::filesystem::path& file, std::span<const TensorData> tensors,
                       const std::map<std::string, std::string>& metadata = {});

// A tensor that is produced while the file is written: write_safetensors() calls produce(i, sink) once per tensor, in
// file order, and produce() passes the bytes of tensor i to `sink` in one or more pieces.
struct TensorSpec {
  std::string name;
  TensorDType dtype = TensorDType::f32;
  std::vector<std::int64_t> shape;
};
using ByteSink = std::function<void(std::span<const std::byte>)>;
// The file that write_safetensors() makes of these tensors. Errors name `file`.
struct SafetensorsLayout {
  std::string header;         // all bytes before the tensors
  std::vector<size_t> order;  // indices of the tensors as they lie in the file, without gaps
  std::uint64_t bytes = 0;    // of the file
};
SafetensorsLayout layout_of(std::span<const TensorSpec> tensors, const std::map<std::string, std::string>& metadata,
                            const std::filesystem::path& file);
void write_safetensors(const std::filesystem::path& file, std::span<const TensorSpec> tensors,
                       const std::function<void(size_t index, const ByteSink& sink)>& produce,
                       const std::map<std::string, std::string>& metadata = {});

// Errors of the readers of core/formats. Text quoted from the file is converted to valid UTF-8.

// Throws errors of one id: weights_fault(file, "tensor x", "wrong shape", "[2]", "[3]").
struct FileErrors {
  const char* id;
  [[noreturn]] void operator()(const std::filesystem::path& file, const std::string& place, const std::string& message,
                               const std::string& found = "", const std::string& expected = "",
                               const std::string& fix = "") const;
};

// Conversion between bf16 or f16 bits and float. Thread-safe.
inline float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Rounds to nearest, ties to even. NaN becomes a quiet NaN.
inline std::uint16_t to_bf16(float value) {
  const auto u = std::bit_cast<std::uint32_t>(value);
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((u >> 16) | 0x40u);
  return static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

float from_f16(std::uint16_t bits);

// Converts out.size() little-endian values of type f32, bf16, f16 or f64; f64 is rounded to nearest.
void widen(TensorDType dtype, std::span<const std::byte> bytes, std::span<float> out);

// A regular file that is read at offsets with pread. Errors name the file. Thread-safe.
class PreadFile {
 public:
  explicit PreadFile(const std::filesystem::path& file);
  ~PreadFile();
  PreadFile(const PreadFile&) = delete;
  PreadFile& operator=(const PreadFile&) = delete;
  std::uint64_t size() const { return size_; }
  void read(std::uint64_t offset, std::span<std::byte> out) const;  // fills `out` or throws FILE-SHORT
  void will_read(std::uint64_t offset, std::uint64_t bytes) const;  // readahead hint

 private:
  std::filesystem::path file_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace mw::formats
