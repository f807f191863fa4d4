// SPDX-License-Identifier: Apache-2.0
#include "core/train/merge.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <ranges>
#include <set>

#include "core/base/atomic_file.h"
#include "core/base/counted.h"
#include "core/base/files.h"
#include "core/base/ordered_work.h"
#include "core/base/text.h"
#include "core/engine/kernels/gemm.h"
#include "core/engine/kernels/vector.h"
#include "core/formats/safetensors/safetensors.h"

namespace mw::train {

namespace fs = std::filesystem;
namespace {

using formats::TensorDType;
constexpr std::int64_t kPieceBytes = 512 << 10;  // of a file: the values of a piece stay in the L2 cache of its core
constexpr std::uint64_t kReadahead = 64 << 20, kWriteback = 8 << 20;  // bytes

[[noreturn]] void fail(const fs::path& file, const std::string& message, const std::string& found,
                       const std::string& expected, const std::string& fix) {
  throw Error("MERGE", message, {.file = file.string(), .place = "", .found = found, .expected = expected, .fix = fix});
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
  Merger(const formats::PeftAdapter& adapter, const MergeOptions& options, std::stop_token stop)
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

  MergedFiles result;

 private:
  const formats::AdapterModule* module_of(const formats::TensorInfo& t) const {
    if (formats::is_tower(t.name)) return nullptr;
    const auto at = modules_.find(std::string(formats::without_prefix(t.name)));
    return at == modules_.end() ? nullptr : at->second;
  }

  void check(const formats::SafetensorsFile& file) const {
    for (const formats::TensorInfo& t : file.tensors()) {
      if (t.dtype == TensorDType::other)
        fail(file.path(), "the data type of a tensor is not supported", t.name + ": " + t.dtype_name,
             "F32, BF16, F16 or integers", "merge with the tool that wrote the model");
      const formats::AdapterModule* module = module_of(t);
      if (!module) continue;
      if (t.dtype != TensorDType::f32 && t.dtype != TensorDType::bf16)
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
    if (s.tensor->dtype == TensorDType::f32)
      std::ranges::copy(std::as_bytes(wide.all()), bytes.begin());
    else
      engine::vector_kernels().narrow(s.count, wide.data.get(), reinterpret_cast<std::uint16_t*>(bytes.data()));
  }

  const formats::PeftAdapter& adapter_;
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
void copy_rest(const fs::path& base, const fs::path& to, MergedFiles& merged) {
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

float scaling_of(const formats::PeftAdapter& adapter, const formats::AdapterModule& m) {
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

MergedFiles merge_into(const fs::path& folder, const fs::path& base, const formats::PeftAdapter& adapter,
                       const MergeOptions& options, std::stop_token stop) {
  const model::Config config = formats::read_config(base);
  const formats::HfWeights checked(base, model::TensorInventory(config));  // checks that the weights are complete
  Merger work(adapter, options, std::move(stop));
  work.run(formats::weight_files(base), folder);
  copy_rest(base, folder, work.result);
  return std::move(work.result);
}

namespace fs = std::filesystem;
namespace {

using formats::SafetensorsFile;
using formats::TensorDType;
using formats::TensorInfo;

constexpr std::int64_t kCheckedBytes = 256
                                       << 10;  // read at once by a thread, from either file: both stay in its L2 cache
constexpr std::int64_t kStepBytes = 64 << 20;  // between two reports of progress
constexpr float kSumError = 0x1p-22F;          // of an f32 sum, relative to the sum of magnitudes, per 2 terms

struct Difference {
  std::int64_t index = 0;  // of the value in its tensor
  double found = 0, expected = 0;
};

// Sums over adapted weights.
struct ErrorSums {
  double rounding = 0, effect = 0;  // of squares
};

// The smallest distance between two values of the type near `value`.
float unit_in_last_place(TensorDType dtype, float value) {
  const int bits = dtype == TensorDType::f32 ? 23 : 7;
  int exponent = 0;
  std::frexp(value, &exponent);
  return std::ldexp(1.0F, std::max(exponent - 1, -126) - bits);
}

// The largest magnitude in each row of A.
std::vector<float> largest_of_rows(const formats::AdapterModule& module) {
  std::vector<float> out;
  for (int k = 0; k < module.rank; ++k) {
    const float* row = module.a.data() + k * module.target.in;
    float largest = 0;
    for (std::int64_t c = 0; c < module.target.in; ++c) largest = std::max(largest, std::abs(row[c]));
    out.push_back(largest);
  }
  return out;
}

// Computes rows of base + scale B A, with DoRA of their trained lengths, by adding multiples of the rows of A one after
// the other, and compares them.
class AdaptedRows {
 public:
  AdaptedRows(const formats::AdapterModule& module, const std::vector<float>& largest, float scale, TensorDType dtype)
      : module_(module), largest_(largest), scale_(scale), dtype_(dtype), cols_(module.target.in) {}

  // The first value of the rows [first, first + n) that is wrong. `before`, `after`: bytes of the rows.
  std::optional<Difference> check(std::int64_t first, std::int64_t n, const std::byte* before, const std::byte* after,
                                  ErrorSums& sums) {
    const std::int64_t bytes = cols_ * static_cast<std::int64_t>(formats::size_of(dtype_));
    for (std::int64_t r = 0; r < n; ++r)
      if (const auto wrong = check_row(first + r, before + r * bytes, after + r * bytes, sums)) return wrong;
    return std::nullopt;
  }

 private:
  void widen_row(const std::byte* bytes, std::vector<float>& out) const {
    out.resize(static_cast<size_t>(cols_));
    if (dtype_ == TensorDType::f32)
      std::memcpy(out.data(), bytes, out.size() * sizeof(float));
    else
      kernels_.widen(cols_, reinterpret_cast<const std::uint16_t*>(bytes), out.data());
  }

  std::optional<Difference> check_row(std::int64_t row, const std::byte* before, const std::byte* after,
                                      ErrorSums& sums) {
    delta_.assign(static_cast<size_t>(cols_), 0.0F);
    float bound = 0;  // of the magnitude of a delta
    for (int k = 0; k < module_.rank; ++k) {
      const float factor = scale_ * module_.b[static_cast<size_t>(row * module_.rank + k)];
      kernels_.add(cols_, module_.a.data() + k * cols_, factor, delta_.data());
      bound += std::abs(factor) * largest_[static_cast<size_t>(k)];
    }
    widen_row(before, exact_);
    kernels_.add(cols_, delta_.data(), 1.0F, exact_.data());
    if (!module_.m.empty()) {  // DoRA: the row gets its trained length
      const double norm = std::sqrt(kernels_.dot(cols_, exact_.data(), exact_.data()));
      const double length = module_.m[static_cast<size_t>(row)];
      const float factor = norm > 0 ? static_cast<float>(length / norm) : 0.0F;
      kernels_.scale(cols_, factor, exact_.data());
      bound *= std::abs(factor);
      widen_row(before, delta_);
      kernels_.scale(cols_, -1.0F, delta_.data());
      kernels_.add(cols_, exact_.data(), 1.0F, delta_.data());
    }
    sums.effect += kernels_.dot(cols_, delta_.data(), delta_.data());
    widen_row(after, found_);
    const auto wrong = first_wrong(row, bound);
    kernels_.add(cols_, exact_.data(), -1.0F, found_.data());
    sums.rounding += kernels_.dot(cols_, found_.data(), found_.data());
    return wrong;
  }

  std::optional<Difference> first_wrong(std::int64_t row, float bound) {
    if (dtype_ == TensorDType::bf16) {  // nearly always equal bits
      rounded_.resize(static_cast<size_t>(cols_));
      kernels_.narrow(cols_, exact_.data(), rounded_.data());
      again_.resize(static_cast<size_t>(cols_));
      kernels_.widen(cols_, rounded_.data(), again_.data());
      if (std::memcmp(again_.data(), found_.data(), again_.size() * sizeof(float)) == 0) return std::nullopt;
    }
    for (std::int64_t c = 0; c < cols_; ++c) {
      const float exact = exact_[static_cast<size_t>(c)], found = found_[static_cast<size_t>(c)];
      const float slack = kSumError * static_cast<float>(module_.rank + 2) * (bound + std::abs(exact));
      const float allowed = unit_in_last_place(dtype_, found) / 2 + slack;
      if (std::isnan(exact) ? !std::isnan(found) : !(std::abs(found - exact) <= allowed))
        return Difference{row * cols_ + c, found, exact};
    }
    return std::nullopt;
  }

  const engine::VectorKernels& kernels_ = engine::vector_kernels();
  const formats::AdapterModule& module_;
  const std::vector<float>& largest_;  // largest_of_rows()
  const float scale_;
  const TensorDType dtype_;
  const std::int64_t cols_;
  std::vector<float> delta_, exact_, found_, again_;
  std::vector<std::uint16_t> rounded_;
};

// Checks the files of a merged folder one after the other, each as far as it is written. Use on one thread.
class WeightChecker {
 public:
  WeightChecker(const formats::PeftAdapter& adapter, int threads, std::stop_token stop)
      : adapter_(adapter),
        stop_(std::move(stop)),
        most_(static_cast<size_t>(2 * thread_count(threads) + 1)),
        work_(thread_count(threads)) {
    for (const formats::AdapterModule& m : adapter.modules)
      modules_.emplace(std::string(formats::suffix_of(m.target)) + ".weight", &m);
  }

  // Checks the values of `merged` that lie in its first `written` bytes and were not checked before. A file must be
  // complete before the next one begins.
  void follow(const fs::path& base, const fs::path& merged, std::uint64_t written) {
    if (has_failed()) return;
    if (!after_ || after_->path() != merged) {
      end_file();
      if (!has_failed()) begin_file(base, merged);
    }
    for (; !has_failed() && tensor_ < after_->tensors().size(); ++tensor_)
      if (!give_tensor(after_->tensors()[tensor_], written)) return;
  }

  MergeCheck finish() {
    end_file();
    if (!has_failed() && used_ != modules_.size())
      fail((after_ ? after_->path().parent_path().string() + ": " : "") + std::to_string(modules_.size() - used_) +
           " adapted weights are in no file");
    if (has_failed()) return std::move(result_);
    result_.verdict = ParityVerdict::passed;
    if (adapted_values_ > 0) {
      result_.rounding_rms = std::sqrt(sums_.rounding / static_cast<double>(adapted_values_));
      result_.effect_rms = std::sqrt(sums_.effect / static_cast<double>(adapted_values_));
    }
    return std::move(result_);
  }

  std::int64_t done() const { return done_; }  // bytes of tensors

 private:
  struct CheckedPiece {
    std::optional<Difference> wrong{};
    ErrorSums sums{};
  };
  struct PendingPiece {
    std::shared_ptr<const SafetensorsFile> before, after;
    const TensorInfo* tensor;  // of before
    const formats::AdapterModule* module;
    std::int64_t count;
  };

  bool has_failed() const { return result_.verdict == ParityVerdict::failed; }
  void fail(std::string reason) {
    if (has_failed()) return;
    result_.verdict = ParityVerdict::failed;
    result_.reason = std::move(reason);
  }

  void begin_file(const fs::path& base, const fs::path& merged) {
    before_ = std::make_shared<SafetensorsFile>(base);
    try {
      after_ = std::make_shared<SafetensorsFile>(merged);
    } catch (const Error& error) {
      return fail(error.what());
    }
    tensor_ = 0;
    next_ = 0;
    if (after_->tensors().size() != before_->tensors().size())
      return fail(merged.string() + ": has " + counted(after_->tensors().size(), "tensor") + ", expected " +
                  std::to_string(before_->tensors().size()));
    for (const TensorInfo& t : before_->tensors()) {
      const TensorInfo* found = after_->find(t.name);
      if (!found) return fail(merged.string() + ": tensor " + t.name + " is missing");
      if (found->shape != t.shape || found->dtype_name != t.dtype_name)
        return fail(merged.string() + ": tensor " + t.name + " is " + found->dtype_name + " " +
                    formats::shape_text(found->shape) + ", expected " + t.dtype_name + " " +
                    formats::shape_text(t.shape));
      const formats::AdapterModule* module = module_of(t);
      if (module && t.shape != std::vector<std::int64_t>{module->target.out, module->target.in})
        return fail(base.string() + ": tensor " + t.name + " has the shape " + formats::shape_text(t.shape) +
                    ", which the adapter does not fit");
    }
  }

  // Waits for all pieces. A file that was not written to its end is a mistake of the caller of follow().
  void end_file() {
    while (!pending_.empty()) take();
    if (!has_failed() && after_ && tensor_ < after_->tensors().size())
      fail(after_->path().string() + ": tensor " + after_->tensors()[tensor_].name + " was not written");
  }

  const formats::AdapterModule* module_of(const TensorInfo& t) const {
    if (formats::is_tower(t.name)) return nullptr;
    const auto at = modules_.find(std::string(formats::without_prefix(t.name)));
    return at == modules_.end() ? nullptr : at->second;
  }

  // False if the tensor is not written to its end.
  bool give_tensor(const TensorInfo& found, std::uint64_t written) {
    const TensorInfo& t = *before_->find(found.name);
    const formats::AdapterModule* module = module_of(t);
    const auto item = static_cast<std::int64_t>(formats::size_of(t.dtype));
    const std::int64_t unit = module ? module->target.in : 1;
    const std::int64_t piece = std::max<std::int64_t>(1, kCheckedBytes / (unit * item)) * unit;
    const std::uint64_t begin = after_->data_start() + found.begin;
    if (module && next_ == 0) largest_ = std::make_shared<std::vector<float>>(largest_of_rows(*module));
    while (next_ < t.elements()) {
      const std::int64_t n = std::min(piece, t.elements() - next_);
      if (begin + static_cast<std::uint64_t>((next_ + n) * item) > written) return false;
      if (stop_.stop_requested()) throw cancelled("the check");
      while (pending_.size() >= most_) take();
      if (has_failed()) return false;
      work_.give([this, before = before_, after = after_, largest = largest_, &t, &found, module, first = next_, n] {
        std::vector<std::byte> a(static_cast<size_t>(n) * formats::size_of(t.dtype)), b(a.size());
        before->read(t, first, n, a);
        after->read(found, first, n, b);
        return module ? check_adapted(t, *module, *largest, first, a, b) : check_equal(t, first, a, b);
      });
      pending_.push_back({before_, after_, &t, module, n});
      next_ += n;
    }
    next_ = 0;
    ++result_.tensors;
    result_.adapted += module != nullptr;
    used_ += module != nullptr;
    return true;
  }

  // Bytes `before` and `after` of the values from `first` on.
  CheckedPiece check_adapted(const TensorInfo& t, const formats::AdapterModule& module,
                             const std::vector<float>& largest, std::int64_t first, std::span<const std::byte> before,
                             std::span<const std::byte> after) const {
    const std::int64_t cols = module.target.in;
    const auto rows = static_cast<std::int64_t>(before.size() / formats::size_of(t.dtype)) / cols;
    CheckedPiece out;
    out.wrong = AdaptedRows(module, largest, scaling_of(adapter_, module), t.dtype)
                    .check(first / cols, rows, before.data(), after.data(), out.sums);
    return out;
  }

  static CheckedPiece check_equal(const TensorInfo& t, std::int64_t first, std::span<const std::byte> before,
                                  std::span<const std::byte> after) {
    if (std::memcmp(before.data(), after.data(), before.size()) == 0) return {};
    const std::ptrdiff_t at = std::mismatch(before.begin(), before.end(), after.begin()).first - before.begin();
    return {.wrong = Difference{first + at / static_cast<std::int64_t>(formats::size_of(t.dtype))}};
  }

  // Adds the oldest piece, in order, so that the figures do not depend on timing.
  void take() {
    const PendingPiece piece = std::move(pending_.front());
    pending_.pop_front();
    const CheckedPiece checked = work_.take();
    sums_.rounding += checked.sums.rounding;
    sums_.effect += checked.sums.effect;
    result_.values += piece.count;
    adapted_values_ += piece.module ? piece.count : 0;
    done_ += piece.count * static_cast<std::int64_t>(formats::size_of(piece.tensor->dtype));
    if (checked.wrong)
      fail(difference_text(piece.after->path(), *piece.tensor, *checked.wrong, piece.module != nullptr));
  }

  static std::string difference_text(const fs::path& file, const TensorInfo& t, const Difference& wrong, bool adapted) {
    const std::int64_t cols = t.shape.empty() ? 1 : std::max<std::int64_t>(1, t.shape.back());
    const std::string place =
        t.name + "[" + std::to_string(wrong.index / cols) + ", " + std::to_string(wrong.index % cols) + "]";
    if (!adapted) return file.string() + ": " + place + " differs from the base model, though it has no adapter";
    return file.string() + ": " + place + " is " + number_text(wrong.found, 9) + ", expected " +
           number_text(wrong.expected, 9) + " (base weight + scale B A)";
  }

  const formats::PeftAdapter& adapter_;
  std::stop_token stop_;
  std::map<std::string, const formats::AdapterModule*> modules_;  // by name of the weight without prefix
  std::shared_ptr<const SafetensorsFile> before_, after_;         // of the current file
  size_t tensor_ = 0;                                             // of after_
  std::int64_t next_ = 0;                                         // value of that tensor
  std::shared_ptr<const std::vector<float>> largest_;             // of its module
  size_t used_ = 0;
  std::int64_t done_ = 0, adapted_values_ = 0;  // bytes; weights
  ErrorSums sums_;
  MergeCheck result_;
  size_t most_;  // pieces in work
  std::deque<PendingPiece> pending_;
  OrderedWork<CheckedPiece> work_;  // last: its threads use the other members
};

}  // namespace

MergeCheck check_weights(const fs::path& base, const formats::PeftAdapter& adapter, const fs::path& merged, int threads,
                         const CountProgress& progress, std::stop_token stop) {
  const std::vector<fs::path> files = formats::weight_files(base);
  std::error_code missing;
  std::int64_t total = 0;
  for (const fs::path& file : files) total += static_cast<std::int64_t>(fs::file_size(file, missing));
  WeightChecker checker(adapter, threads, stop);
  std::int64_t done = 0;
  for (const fs::path& file : files) {
    const fs::path written = merged / file.filename();
    const auto bytes = static_cast<std::int64_t>(fs::file_size(file, missing));
    // In steps, for progress.
    for (std::int64_t at = 0; at < bytes; at += kStepBytes) {
      if (stop.stop_requested()) throw cancelled("the check");
      if (progress) progress(static_cast<long>(done + at), static_cast<long>(total));
      checker.follow(file, written, static_cast<std::uint64_t>(at));
    }
    checker.follow(file, written, std::numeric_limits<std::uint64_t>::max());
    done += bytes;
  }
  MergeCheck check = checker.finish();
  if (progress) progress(static_cast<long>(total), static_cast<long>(total));
  return check;
}

CheckedMerge merge_checked(const fs::path& folder, const fs::path& base, const formats::PeftAdapter& adapter,
                           MergeOptions options, std::stop_token stop) {
  WeightChecker checker(adapter, options.threads, stop);
  const CountProgress both = std::move(options.progress);
  long all = 0;
  options.progress = [&](long done, long total) {
    all = 2 * total;
    if (both) both(done + static_cast<long>(checker.done()), all);
  };
  options.written = [&](const fs::path& before, const fs::path& file, std::uint64_t bytes) {
    checker.follow(before, file, bytes);
  };
  CheckedMerge out{.merged = merge_into(folder, base, adapter, options, std::move(stop)), .check = checker.finish()};
  if (both) both(all, all);
  return out;
}

Json to_json(const MergeCheck& check) {
  return {{"verdict", to_string(check.verdict)},
          {"reason", check.reason},
          {"tensors", check.tensors},
          {"adapted", check.adapted},
          {"values", check.values},
          {"rounding_rms", check.rounding_rms},
          {"effect_rms", check.effect_rms}};
}

std::string check_text(const MergeCheck& check) {
  if (check.verdict != ParityVerdict::passed)
    return "check of all weights " + std::string(to_string(check.verdict)) +
           (check.reason.empty() ? "" : ": " + check.reason);
  std::string text = "check of all weights passed: " + std::to_string(check.adapted) +
                     " adapted tensors equal base + scale B A, " + std::to_string(check.tensors - check.adapted) +
                     " others are unchanged";
  if (check.adapted > 0)
    text += "; the adapter changes weights by rms " + number_text(check.effect_rms) + ", rounding by " +
            number_text(check.rounding_rms);
  return text;
}

}  // namespace mw::train
