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
constexpr std::int64_t kPiece = 4 << 20;    // values of a tensor in memory at once
constexpr std::uint64_t kAhead = 64 << 20;  // bytes that the system reads while others are computed

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

void check_out(const fs::path& base, const fs::path& out) {
  if (!is_missing_or_empty(out))
    fail(out, "the output is there already", "something in it", "a folder that is not there or empty",
         "give another --out: nothing is overwritten");
  std::error_code error;
  if (fs::weakly_canonical(base, error) == fs::weakly_canonical(out, error))
    fail(out, "the output is the base model", out.string(), "another folder", "give another --out");
}

float scaling_of(const formats::Adapter& adapter, const formats::AdapterModule& m) {
  const auto rank = static_cast<float>(m.rank);
  return m.alpha / (adapter.rslora ? std::sqrt(rank) : rank);
}

void narrow(DType dtype, std::span<const float> values, std::byte* out) {
  if (dtype == DType::f32) {
    std::copy_n(std::as_bytes(values).data(), values.size_bytes(), out);
    return;
  }
  auto* to = reinterpret_cast<std::uint16_t*>(out);
  for (size_t i = 0; i < values.size(); ++i) to[i] = formats::to_bf16(values[i]);
}

// Tells the system what of a file is read next, so that the disk works while values are computed.
class Ahead {
 public:
  explicit Ahead(const formats::SafetensorsFile& file) : file_(file.path()) {
    const auto& tensors = file.tensors();  // in file order, up to its end
    if (!tensors.empty()) data_ = file_.size() - tensors.back().end;
  }
  void of(const formats::TensorInfo& t, std::int64_t first) {
    const std::uint64_t at = data_ + t.begin + static_cast<std::uint64_t>(first) * formats::size_of(t.dtype);
    if (at + kAhead / 2 < told_) return;
    const std::uint64_t from = std::max(at, told_);
    file_.will_read(from, kAhead);
    told_ = from + kAhead;
  }

 private:
  formats::PreadFile file_;
  std::uint64_t data_ = 0, told_ = 0;  // where the data begins; bytes before this the system knows of
};

class Merge {
 public:
  Merge(const formats::Adapter& adapter, int threads, const Progress& progress, std::stop_token stop)
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
    for (const auto& [name, module] : modules_)
      if (!used_.contains(name))
        fail(to, "an adapter's weight is not in the base model's files", name, "every adapted weight",
             "give the base model that the adapter was trained on");
  }

  Merged result;

 private:
  const formats::AdapterModule* module_of(const formats::TensorInfo& t) const {
    if (formats::is_tower(t.name)) return nullptr;
    const auto at = modules_.find(std::string(formats::without_prefix(t.name)));
    return at == modules_.end() ? nullptr : at->second;
  }

  void check(const formats::SafetensorsFile& file) const {
    for (const formats::TensorInfo& t : file.tensors()) {
      if (t.dtype == DType::other)
        fail(file.path(), "a tensor of a type that cannot be copied here", t.name + ": " + t.dtype_name,
             "F32, BF16, F16 or integers", "merge it with the tool that wrote it");
      if (module_of(t) && t.dtype != DType::f32 && t.dtype != DType::bf16)
        fail(file.path(), "an adapted weight of a type that cannot be merged into", t.name + ": " + t.dtype_name,
             "F32 or BF16", "convert the base model to bf16 first");
    }
  }

  void write(const formats::SafetensorsFile& from, const fs::path& to) {
    ahead_.emplace(from);
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
        from.metadata());
    result.files.push_back(to.filename().string());
  }

  void step(std::int64_t bytes) {
    if (stop_.stop_requested()) throw cancelled("merge");
    done_ += bytes;
    result.written += Bytes(bytes);
    if (progress_) progress_(static_cast<long>(done_ >> 20), static_cast<long>(total_ >> 20));
  }

  void copy(const formats::SafetensorsFile& from, const formats::TensorInfo& t, const formats::ByteSink& sink) {
    const auto item = static_cast<std::int64_t>(formats::size_of(t.dtype));
    for (std::int64_t first = 0, all = t.elements(); first < all; first += kPiece) {
      const std::int64_t n = std::min(kPiece, all - first);
      bytes_.resize(static_cast<size_t>(n * item));
      ahead_->of(t, first);
      from.read(t, first, n, bytes_);
      sink(bytes_);
      step(n * item);
    }
  }

  // W += scaling B A, some rows at a time.
  void add(const formats::SafetensorsFile& from, const formats::TensorInfo& t, const formats::AdapterModule& m,
           const formats::ByteSink& sink) {
    used_[std::string(formats::without_prefix(t.name))] = true;
    const std::int64_t rows = m.target.out, cols = m.target.in;
    if (t.shape != std::vector<std::int64_t>{rows, cols})
      fail(from.path(), "an adapted weight has another shape than the model's",
           t.name + ": " + formats::shape_text(t.shape), formats::shape_text({rows, cols}),
           "give the base model that the adapter was trained on");
    const std::int64_t most = std::max<std::int64_t>(1, kPiece / cols);
    for (std::int64_t first = 0; first < rows; first += most) {
      const std::int64_t n = std::min(most, rows - first);
      values_.resize(static_cast<size_t>(n * cols));
      ahead_->of(t, first * cols);
      bytes_.resize(values_.size() * formats::size_of(t.dtype));
      const auto part = [&](std::int64_t begin, std::int64_t end) {  // of values_, by rows
        return std::span(values_).subspan(static_cast<size_t>(begin * cols), static_cast<size_t>((end - begin) * cols));
      };
      device_.pool.parallel_for(n, 1, [&](std::int64_t begin, std::int64_t end) {
        from.read_f32(t, (first + begin) * cols, part(begin, end));
      });
      gemm_.nn(n, cols, m.rank, scaling_of(adapter_, m), m.b.data() + first * m.rank, {.f32 = m.a.data()}, 1,
               values_.data());
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
  std::map<std::string, const formats::AdapterModule*> modules_;  // by the weight's name without prefix
  std::map<std::string, bool> used_;
  std::vector<float> values_;
  std::vector<std::byte> bytes_;
  std::int64_t total_ = 0, done_ = 0;
  std::optional<Ahead> ahead_;
};

// Everything beside the weights goes along: config, tokenizer, templates, the index. No folders, no other weights.
void copy_rest(const fs::path& base, const fs::path& to, Merged& merged) {
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

Merged merge(const fs::path& base, const formats::Adapter& adapter, const fs::path& out, int threads,
             const Progress& progress, std::stop_token stop) {
  check_out(base, out);
  const model::Config config = formats::read_config(base);
  const formats::HfWeights checked(base, model::TensorInventory(config));  // complete, and of this model
  StagedFolder staged(out);
  Merge work(adapter, threads, progress, std::move(stop));
  work.run(formats::weight_files(base), staged.path());
  copy_rest(base, staged.path(), work.result);
  staged.commit();
  return std::move(work.result);
}

}  // namespace mw::train
