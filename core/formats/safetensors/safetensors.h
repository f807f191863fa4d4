// SPDX-License-Identifier: Apache-2.0
// safetensors, read strictly and written byte-compatibly (huggingface/safetensors, tensor.rs). Nothing in a file is
// trusted.
#pragma once
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
    100'000'000;  // bytes of JSON before the tensors, as the format's own library

enum class DType { f32, bf16, f16, f64, i64, i32, i16, i8, u8, boolean, other };
size_t size_of(DType dtype);  // bytes per element; 0 for other

struct TensorInfo {
  std::string name;
  DType dtype = DType::f32;
  std::string dtype_name;  // as in the file
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;  // in the data section
  std::int64_t elements() const;
};

// One file. Data is read with pread, never mapped, so that loading costs no page-cache mappings in the process's RSS.
// Tensors stand in file order. Reading is const and may be done from several threads.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(std::filesystem::path file);  // throws Error naming file and tensor
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const TensorInfo* find(const std::string& name) const;
  const std::filesystem::path& path() const { return file_; }
  // Raw little-endian bytes of elements [first, first+count); `out` has count*size_of(dtype) bytes.
  void read(const TensorInfo& tensor, std::int64_t first, std::int64_t count, std::span<std::byte> out) const;
  // Same, widened to f32 from f32, bf16, f16 or f64; Error for other dtypes.
  void read_f32(const TensorInfo& tensor, std::int64_t first, std::span<float> out) const;

 private:
  std::filesystem::path file_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, std::string> metadata_;
  std::map<std::string, size_t> by_name_;
  std::uint64_t data_start_ = 0;
};

struct TensorData {  // for writing
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};
// Atomic (written beside, renamed). Layout as the reference writer's: sorted by type and name, header padded to 8.
void write_safetensors(const std::filesystem::path& file, std::span<const TensorData> tensors,
                       const std::map<std::string, std::string>& metadata = {});

// The same for tensors that are made while they are written (converted, streamed), so that none is held whole:
// `produce(i, sink)` is called once per tensor, in file order, and passes exactly its bytes to `sink` in pieces.
struct TensorSpec {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
};
using ByteSink = std::function<void(std::span<const std::byte>)>;
void write_safetensors(const std::filesystem::path& file, std::span<const TensorSpec> tensors,
                       const std::function<void(size_t index, const ByteSink& sink)>& produce,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace mw::formats
