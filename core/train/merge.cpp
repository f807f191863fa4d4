// SPDX-License-Identifier: Apache-2.0
#include "core/train/merge.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <ranges>
#include <set>

#include "core/base/atomic_file.h"
#include "core/base/files.h"
#include "core/base/ordered_work.h"
#include "core/base/partial_files.h"
#include "core/engine/kernels/gemm.h"
#include "core/engine/kernels/vector.h"
#include "core/formats/huggingface/hf_names.h"
#include "core/formats/safetensors/floats.h"
#include "core/formats/safetensors/pread_file.h"

namespace mw::train {
namespace fs = std::filesystem;
namespace {

using formats::DType;
constexpr std::int64_t kPieceBytes = 512 << 10;  // of a file: the values of a piece stay in the L2 cache of its core
constexpr std::uint64_t kReadahead = 64 << 20, kWriteback = 8 << 20;  // bytes

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

// Memory of one piece that is not set to 0 first.
template <class T>
struct Block {
  explicit Block(std::int64_t n) : data(std::make_unique_for_overwrite<T[]>(static_cast<size_t>(n))), size(n) {}
  std::span<T> all() { return {data.get(), static_cast<size_t>(size)}; }
  std::unique_ptr<T[]> data;
  std::int64_t size;
};

// Values [first, first + count) of a tensor; whole rows if it has a module.
struct Segment {
  const formats::TensorInfo* tensor = nullptr;
  const formats::AdapterModule* module = nullptr;  // null: the values do not change
  std::int64_t first = 0, count = 0;
  std::int64_t bytes() const { return count * static_cast<std::int64_t>(formats::size_of(tensor->dtype)); }
};

struct WeightFile {
  WeightFile(const fs::path& base, fs::path merged) : from(base), raw(base), path(std::move(merged)) {
    std::vector<formats::TensorSpec> specs;
    for (const formats::TensorInfo& t : from.tensors()) specs.push_back({t.name, t.dtype, t.shape});
    layout = formats::layout_of(specs, from.metadata(), path);
  }
  formats::SafetensorsFile from;
  formats::PreadFile raw;
  fs::path path;
  formats::SafetensorsLayout layout;
  std::shared_ptr<OutputFile> to{};  // while it is written
};

// Consecutive bytes of a merged file. The first piece of a file begins with its header.
struct Piece {
  WeightFile* file = nullptr;
  std::uint64_t begin = 0, end = 0;
  bool is_last = false;
  std::vector<Segment> segments{};
  bool has_header() const { return begin == 0; }
};

class Merger {
 public:
  Merger(const formats::Adapter& adapter, const MergeOptions& options, std::stop_token stop)
      : adapter_(adapter), options_(options), stop_(std::move(stop)), threads_(thread_count(options.threads)) {
    for (const formats::AdapterModule& m : adapter.modules)
      modules_.emplace(std::string(formats::suffix_of(m.target)) + ".weight", &m);
  }

  void run(const std::vector<fs::path>& files, const fs::path& to) {
    for (const fs::path& file : files) {
      files_.push_back(std::make_unique<WeightFile>(file, to / file.filename()));
      check(files_.back()->from);
    }
    for (const auto& file : files_) divide(*file);
    for (const auto& [name, module] : modules_)
      if (!used_.contains(name))
        fail(to, "the files of the base model lack an adapted weight", name, "all adapted weights",
             "choose the base model that the adapter was trained on");
    OrderedWork<void> work(threads_), sync(1);
    const auto most = static_cast<size_t>(2 * threads_ + 1);
    for (size_t given = 0, taken = 0; taken < pieces_.size(); ++taken) {
      if (stop_.stop_requested()) throw cancelled("merge");
      for (; given < pieces_.size() && work.pending() < most; ++given) give(pieces_[given], work);
      work.take();
      finish(pieces_[taken], sync);
    }
    while (sync.pending() > 0) sync.take();
    sync_folder_of(to / "model");
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
      const formats::AdapterModule* module = module_of(t);
      if (!module) continue;
      if (t.dtype != DType::f32 && t.dtype != DType::bf16)
        fail(file.path(), "the data type of an adapted weight is not supported", t.name + ": " + t.dtype_name,
             "F32 or BF16", "convert the base model to bf16");
      const std::vector<std::int64_t> expected{module->target.out, module->target.in};
      if (t.shape != expected)
        fail(file.path(), "the shape of an adapted weight does not match the model",
             t.name + ": " + formats::shape_text(t.shape), formats::shape_text(expected),
             "choose the base model that the adapter was trained on");
    }
  }

  // Appends the pieces of a file, in the order of its bytes.
  void divide(WeightFile& file) {
    pieces_.push_back({.file = &file, .end = file.layout.header.size()});
    for (const size_t i : file.layout.order) {
      const formats::TensorInfo& t = file.from.tensors()[i];
      const formats::AdapterModule* module = module_of(t);
      const std::int64_t item = static_cast<std::int64_t>(formats::size_of(t.dtype)), unit = module ? t.shape[1] : 1;
      const std::int64_t most = std::max<std::int64_t>(1, kPieceBytes / (unit * item)) * unit;
      for (std::int64_t first = 0, all = t.elements(); first < all; first += most) {
        const Segment s{&t, module, first, std::min(most, all - first)};
        Piece* last = &pieces_.back();
        if (static_cast<std::int64_t>(last->end - last->begin) + s.bytes() > kPieceBytes)
          last = &pieces_.emplace_back(Piece{.file = &file, .begin = last->end, .end = last->end});
        last->segments.push_back(s);
        last->end += static_cast<std::uint64_t>(s.bytes());
      }
      ++result.tensors;
      result.merged += module != nullptr;
      total_ += static_cast<std::int64_t>(t.end - t.begin);
      if (module) used_.insert(std::string(formats::without_prefix(t.name)));
    }
    pieces_.back().is_last = true;
  }

  void give(const Piece& piece, OrderedWork<void>& work) {
    read_ahead(piece);
    WeightFile& file = *piece.file;
    if (piece.has_header()) {
      file.to = std::make_shared<OutputFile>(file.path, OutputFile::Create::must_be_new);
      file.to->resize(file.layout.bytes);
    }
    work.give([this, &piece] {
      Block<std::byte> bytes(static_cast<std::int64_t>(piece.end - piece.begin));
      std::byte* at = bytes.data.get();
      if (piece.has_header()) at = std::ranges::copy(std::as_bytes(std::span(piece.file->layout.header)), at).out;
      for (const Segment& s : piece.segments) {
        const std::span<std::byte> out(at, static_cast<size_t>(s.bytes()));
        piece.file->raw.read(piece.file->from.data_start() + s.tensor->begin +
                                 static_cast<std::uint64_t>(s.first) * formats::size_of(s.tensor->dtype),
                             out);
        if (s.module) add(s, out);
        at += s.bytes();
      }
      piece.file->to->write_at(piece.begin, bytes.all());
    });
  }

  // Requests the bytes of the next pieces, so that reading overlaps with computing.
  void read_ahead(const Piece& now) {
    for (; requested_ < pieces_.size(); ++requested_) {
      const Piece& piece = pieces_[requested_];
      if (&piece > &now && requested_bytes_ > given_bytes_ + kReadahead) break;
      for (const Segment& s : piece.segments)
        piece.file->raw.will_read(piece.file->from.data_start() + s.tensor->begin +
                                      static_cast<std::uint64_t>(s.first) * formats::size_of(s.tensor->dtype),
                                  static_cast<std::uint64_t>(s.bytes()));
      requested_bytes_ += piece.end - piece.begin;
    }
    given_bytes_ += now.end - now.begin;
  }

  void finish(const Piece& piece, OrderedWork<void>& sync) {
    WeightFile& file = *piece.file;
    if (const std::uint64_t behind = piece.end - started_; behind >= kWriteback || piece.is_last) {
      sync.give([to = file.to, begin = started_, behind, is_last = piece.is_last] {
        to->start_writeback(begin, behind);
        if (is_last) to->sync();
      });
      started_ = piece.is_last ? 0 : piece.end;
    }
    for (const Segment& s : piece.segments) result.written += Bytes(s.bytes());
    if (options_.progress) options_.progress(static_cast<long>(result.written.value), static_cast<long>(total_));
    if (options_.written) options_.written(file.from.path(), file.path, piece.end);
    if (!piece.is_last) return;
    file.to.reset();
    result.files.push_back(file.path.filename().string());
  }

  struct Product {  // for one thread at a time
    engine::Device device{Bytes(0), 1};
    engine::Gemm gemm{device, model::WeightType::f32};
  };
  std::unique_ptr<Product> take_product() {
    const std::lock_guard lock(products_mutex_);
    if (products_.empty()) return std::make_unique<Product>();
    std::unique_ptr<Product> product = std::move(products_.back());
    products_.pop_back();
    return product;
  }
  void give_product(std::unique_ptr<Product> product) {
    const std::lock_guard lock(products_mutex_);
    products_.push_back(std::move(product));
  }

  // W += scaling B A for the bytes of whole rows; with DoRA they then get their trained lengths.
  void add(const Segment& s, std::span<std::byte> bytes) {
    const formats::AdapterModule& m = *s.module;
    const std::int64_t cols = m.target.in, row = s.first / cols;
    Block<float> wide(s.count);
    formats::widen(s.tensor->dtype, bytes, wide.all());
    std::unique_ptr<Product> product = take_product();
    product->gemm.nn({s.count / cols, cols, m.rank}, m.b.data() + row * m.rank, {.f32 = m.a.data()}, wide.data.get(),
                     {.alpha = scaling_of(adapter_, m), .beta = 1});
    give_product(std::move(product));
    if (adapter_.dora) scale_rows(m, row, wide.all());
    if (s.tensor->dtype == DType::f32)
      std::ranges::copy(std::as_bytes(wide.all()), bytes.begin());
    else
      engine::vector_kernels().narrow(s.count, wide.data.get(), reinterpret_cast<std::uint16_t*>(bytes.data()));
  }

  const formats::Adapter& adapter_;
  const MergeOptions& options_;
  std::stop_token stop_;
  const int threads_;
  std::mutex products_mutex_;
  std::vector<std::unique_ptr<Product>> products_;                // those that no thread uses
  std::map<std::string, const formats::AdapterModule*> modules_;  // by name of the weight without prefix
  std::set<std::string> used_;
  std::vector<std::unique_ptr<WeightFile>> files_;
  std::vector<Piece> pieces_;
  size_t requested_ = 0;                                 // pieces
  std::uint64_t requested_bytes_ = 0, given_bytes_ = 0;  // of all files
  std::uint64_t started_ = 0;                            // bytes of the current file whose write-back was started
  std::int64_t total_ = 0;
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

void scale_rows(const formats::AdapterModule& m, std::int64_t first_row, std::span<float> rows) {
  const engine::VectorKernels& kernels = engine::vector_kernels();
  const std::int64_t cols = m.target.in;
  for (std::int64_t r = 0; r < std::ssize(rows) / cols; ++r) {
    float* const row = rows.data() + r * cols;
    const double norm = std::sqrt(kernels.dot(cols, row, row));
    const double length = m.m[static_cast<size_t>(first_row + r)];
    kernels.scale(cols, norm > 0 ? static_cast<float>(length / norm) : 0.0F, row);
  }
}

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

MergeResult merge_into(const fs::path& folder, const fs::path& base, const formats::Adapter& adapter,
                       const MergeOptions& options, std::stop_token stop) {
  const model::Config config = formats::read_config(base);
  const formats::HfWeights checked(base, model::TensorInventory(config));  // checks that the weights are complete
  Merger work(adapter, options, std::move(stop));
  work.run(formats::weight_files(base), folder);
  copy_rest(base, folder, work.result);
  return std::move(work.result);
}

MergeResult merge(const fs::path& base, const formats::Adapter& adapter, const fs::path& out, int threads,
                  const Progress& progress, std::stop_token stop) {
  require_merge_target(base, out);
  StagedFolder staged(out);
  MergeResult result =
      merge_into(staged.path(), base, adapter, {.threads = threads, .progress = progress}, std::move(stop));
  staged.commit();
  return result;
}

}  // namespace mw::train
