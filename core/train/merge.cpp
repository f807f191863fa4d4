// SPDX-License-Identifier: Apache-2.0
#include "core/train/merge.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "core/base/files.h"
#include "core/engine/kernels/gemm.h"
#include "core/formats/huggingface/hf_names.h"
#include "core/formats/safetensors/floats.h"
#include "core/formats/safetensors/pread_file.h"

namespace mw::train {
namespace fs = std::filesystem;
namespace {

using formats::DType;
constexpr std::int64_t kPiece = 4 << 20;        // values per step
constexpr std::uint64_t kReadahead = 64 << 20;  // bytes
constexpr size_t kUnwritten = 32 << 20;         // bytes that wait for the disk at most, besides a piece

[[noreturn]] void fail(const fs::path& file, const std::string& message, const std::string& found,
                       const std::string& expected, const std::string& fix) {
  throw Error({.id = "MERGE",
               .message = message,
               .file = file.string(),
               .place = "",
               .found = found,
               .expected = expected,
               .fix = fix});
}

void narrow(DType dtype, std::span<const float> values, std::byte* out) {
  if (dtype == DType::f32) {
    std::copy_n(std::as_bytes(values).data(), values.size_bytes(), out);
    return;
  }
  auto* to = reinterpret_cast<std::uint16_t*>(out);
  for (size_t i = 0; i < values.size(); ++i) to[i] = formats::to_bf16(values[i]);
}

// Requests readahead for the next tensors of a file, so that reading overlaps with computing.
class Readahead {
 public:
  explicit Readahead(const formats::SafetensorsFile& file) : file_(file.path()) {
    const auto& tensors = file.tensors();  // in file order
    if (!tensors.empty()) data_ = file_.size() - tensors.back().end;
  }
  void of(const formats::TensorInfo& t, std::int64_t first) {
    const std::uint64_t at = data_ + t.begin + static_cast<std::uint64_t>(first) * formats::size_of(t.dtype);
    if (at + kReadahead / 2 < requested_) return;
    const std::uint64_t from = std::max(at, requested_);
    file_.will_read(from, kReadahead);
    requested_ = from + kReadahead;
  }

 private:
  formats::PreadFile file_;
  std::uint64_t data_ = 0, requested_ = 0;  // offset of the data; end of the requested range
};

class Merger {
 public:
  Merger(const formats::Adapter& adapter, int threads, const Progress& progress, std::stop_token stop)
      : adapter_(adapter),
        device_(Bytes(0), thread_count(threads)),
        gemm_(device_, model::WeightType::f32),
        progress_(progress),
        stop_(std::move(stop)) {
    for (const formats::AdapterModule& m : adapter.modules)
      modules_.emplace(std::string(formats::suffix_of(m.target)) + ".weight", &m);
  }

  void run(const std::vector<fs::path>& files, const fs::path& to) {
    std::vector<std::unique_ptr<formats::SafetensorsFile>> all;
    for (const fs::path& file : files) all.push_back(std::make_unique<formats::SafetensorsFile>(file));
    for (const auto& file : all) {
      check(*file);
      for (const formats::TensorInfo& t : file->tensors()) total_ += static_cast<std::int64_t>(t.end - t.begin);
    }
    for (const auto& file : all) write(*file, to / file->path().filename());
    writer_.finish();
    for (const auto& [name, module] : modules_)
      if (!used_.contains(name))
        fail(to, "the files of the base model lack an adapted weight", name, "all adapted weights",
             "choose the base model that the adapter was trained on");
  }

  MergeResult result;

 private:
  const formats::AdapterModule* module_of(const formats::TensorInfo& t) const {
    if (formats::is_tower(t.name)) return nullptr;
    const auto at = modules_.find(std::string(formats::without_prefix(t.name)));
    return at == modules_.end() ? nullptr : at->second;
  }

  void check(const formats::SafetensorsFile& file) const {
    for (const formats::TensorInfo& t : file.tensors()) {
      if (t.dtype == DType::other)
        fail(file.path(), "the data type of a tensor is not supported", t.name + ": " + t.dtype_name,
             "F32, BF16, F16 or integers", "merge with the tool that wrote the model");
      if (module_of(t) && t.dtype != DType::f32 && t.dtype != DType::bf16)
        fail(file.path(), "the data type of an adapted weight is not supported", t.name + ": " + t.dtype_name,
             "F32 or BF16", "convert the base model to bf16");
    }
  }

  void write(const formats::SafetensorsFile& from, const fs::path& to) {
    readahead_.emplace(from);
    std::vector<formats::TensorSpec> specs;
    for (const formats::TensorInfo& t : from.tensors()) specs.push_back({t.name, t.dtype, t.shape});
    formats::write_safetensors(
        to, specs,
        [&](size_t i, const formats::ByteSink& sink) {
          const formats::TensorInfo& t = from.tensors()[i];
          const formats::AdapterModule* module = module_of(t);
          if (module)
            add(from, t, *module, sink);
          else
            copy(from, t, sink);
          ++result.tensors;
          result.merged += module != nullptr;
        },
        from.metadata(), writer_);
    result.files.push_back(to.filename().string());
  }

  void step(std::int64_t bytes) {
    if (stop_.stop_requested()) throw cancelled("merge");
    done_ += bytes;
    result.written += Bytes(bytes);
    if (progress_) progress_(static_cast<long>(done_), static_cast<long>(total_));
  }

  void copy(const formats::SafetensorsFile& from, const formats::TensorInfo& t, const formats::ByteSink& sink) {
    const auto item = static_cast<std::int64_t>(formats::size_of(t.dtype));
    for (std::int64_t first = 0, all = t.elements(); first < all; first += kPiece) {
      const std::int64_t n = std::min(kPiece, all - first);
      bytes_.resize(static_cast<size_t>(n * item));
      readahead_->of(t, first);
      from.read(t, first, n, bytes_);
      sink(bytes_);
      step(n * item);
    }
  }

  // W += scaling B A, a few rows at a time.
  void add(const formats::SafetensorsFile& from, const formats::TensorInfo& t, const formats::AdapterModule& m,
           const formats::ByteSink& sink) {
    used_[std::string(formats::without_prefix(t.name))] = true;
    const std::int64_t rows = m.target.out, cols = m.target.in;
    if (t.shape != std::vector<std::int64_t>{rows, cols})
      fail(from.path(), "the shape of an adapted weight does not match the model",
           t.name + ": " + formats::shape_text(t.shape), formats::shape_text({rows, cols}),
           "choose the base model that the adapter was trained on");
    const std::int64_t most = std::max<std::int64_t>(1, kPiece / cols);
    for (std::int64_t first = 0; first < rows; first += most) {
      const std::int64_t n = std::min(most, rows - first);
      values_.resize(static_cast<size_t>(n * cols));
      readahead_->of(t, first * cols);
      bytes_.resize(values_.size() * formats::size_of(t.dtype));
      const auto part = [&](std::int64_t begin, std::int64_t end) {  // rows of values_
        return std::span(values_).subspan(static_cast<size_t>(begin * cols), static_cast<size_t>((end - begin) * cols));
      };
      device_.pool.parallel_for(n, 1, [&](std::int64_t begin, std::int64_t end) {
        from.read_f32(t, (first + begin) * cols, part(begin, end));
      });
      gemm_.nn({n, cols, m.rank}, m.b.data() + first * m.rank, {.f32 = m.a.data()}, values_.data(),
               {.alpha = scaling_of(adapter_, m), .beta = 1});
      device_.pool.parallel_for(n, 1, [&](std::int64_t begin, std::int64_t end) {
        narrow(t.dtype, part(begin, end),
               bytes_.data() + static_cast<size_t>(begin * cols) * formats::size_of(t.dtype));
      });
      sink(bytes_);
      step(static_cast<std::int64_t>(bytes_.size()));
    }
  }

  const formats::Adapter& adapter_;
  engine::Device device_;
  engine::Gemm gemm_;
  const Progress& progress_;
  std::stop_token stop_;
  std::map<std::string, const formats::AdapterModule*> modules_;  // by name of the weight without prefix
  std::map<std::string, bool> used_;
  std::vector<float> values_;
  std::vector<std::byte> bytes_;
  std::int64_t total_ = 0, done_ = 0;
  std::optional<Readahead> readahead_;
  OrderedTasks writer_{kUnwritten};
};

// Copies all other files (config, tokenizer, templates, index), but no folders and no weights in other formats.
void copy_rest(const fs::path& base, const fs::path& to, MergeResult& merged) {
  constexpr std::uintmax_t kMost = 256u << 20;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(base, error)) {
    const fs::path name = entry.path().filename();
    const std::string end = name.extension().string();
    if (!entry.is_regular_file(error) || end == ".safetensors" || end == ".bin" || end == ".gguf" ||
        entry.file_size(error) > kMost)
      continue;
    copy_atomically(entry.path(), to / name);
    merged.files.push_back(name.string());
  }
}

}  // namespace

float scaling_of(const formats::Adapter& adapter, const formats::AdapterModule& m) {
  const auto rank = static_cast<float>(m.rank);
  return m.alpha / (adapter.rslora ? std::sqrt(rank) : rank);
}

void require_merge_target(const fs::path& base, const fs::path& out) {
  if (!is_missing_or_empty(out))
    fail(out, "the output folder exists and is not empty", "files in it", "a folder that is missing or empty",
         "choose another --out; existing files are not overwritten");
  std::error_code error;
  if (fs::weakly_canonical(base, error) == fs::weakly_canonical(out, error))
    fail(out, "the output is the folder of the base model", out.string(), "another folder", "choose another --out");
}

MergeResult merge_into(const fs::path& folder, const fs::path& base, const formats::Adapter& adapter, int threads,
                       const Progress& progress, std::stop_token stop) {
  const model::Config config = formats::read_config(base);
  const formats::HfWeights checked(base, model::TensorInventory(config));  // checks that the weights are complete
  Merger work(adapter, threads, progress, std::move(stop));
  work.run(formats::weight_files(base), folder);
  copy_rest(base, folder, work.result);
  return std::move(work.result);
}

MergeResult merge(const fs::path& base, const formats::Adapter& adapter, const fs::path& out, int threads,
                  const Progress& progress, std::stop_token stop) {
  require_merge_target(base, out);
  StagedFolder staged(out);
  MergeResult result = merge_into(staged.path(), base, adapter, threads, progress, std::move(stop));
  staged.commit();
  return result;
}

}  // namespace mw::train
