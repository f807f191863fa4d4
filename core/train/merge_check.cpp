// SPDX-License-Identifier: Apache-2.0
#include "core/train/merge_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "core/base/text.h"
#include "core/engine/kernels/vector.h"
#include "core/engine/runtime/device.h"
#include "core/formats/huggingface/hf_names.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/train/merge.h"

namespace mw::train {
namespace fs = std::filesystem;
namespace {

using formats::DType;
using formats::SafetensorsFile;
using formats::TensorInfo;

constexpr std::int64_t kPieceBytes =
    256 << 10;                         // read at once by a thread, from either file: both stay in its L2 cache
constexpr float kSumError = 0x1p-22F;  // of an f32 sum, relative to the sum of magnitudes, per 2 terms

struct Difference {
  std::int64_t index = 0;  // of the value in its tensor
  double found = 0, expected = 0;
};

// Sums over adapted weights.
struct ErrorSums {
  double rounding = 0, effect = 0;  // of squares
};

// The smallest distance between two values of the type near `value`.
float unit_in_last_place(DType dtype, float value) {
  const int bits = dtype == DType::f32 ? 23 : 7;
  int exponent = 0;
  std::frexp(value, &exponent);
  return std::ldexp(1.0F, std::max(exponent - 1, -126) - bits);
}

// Computes rows of base + scale B A by adding multiples of the rows of A one after the other, and compares them.
class AdaptedRows {
 public:
  AdaptedRows(const formats::AdapterModule& module, float scale, DType dtype)
      : module_(module), scale_(scale), dtype_(dtype), cols_(module.target.in) {
    for (int k = 0; k < module.rank; ++k) {
      const float* row = module.a.data() + k * cols_;
      float largest = 0;
      for (std::int64_t c = 0; c < cols_; ++c) largest = std::max(largest, std::abs(row[c]));
      largest_.push_back(largest);
    }
  }

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
    if (dtype_ == DType::f32)
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
    sums.effect += kernels_.dot(cols_, delta_.data(), delta_.data());
    widen_row(before, exact_);
    kernels_.add(cols_, delta_.data(), 1.0F, exact_.data());
    widen_row(after, found_);
    const auto wrong = first_wrong(row, bound);
    kernels_.add(cols_, exact_.data(), -1.0F, found_.data());
    sums.rounding += kernels_.dot(cols_, found_.data(), found_.data());
    return wrong;
  }

  std::optional<Difference> first_wrong(std::int64_t row, float bound) {
    if (dtype_ == DType::bf16) {  // nearly always equal bits
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
  const float scale_;
  const DType dtype_;
  const std::int64_t cols_;
  std::vector<float> largest_;  // magnitude in each row of A
  std::vector<float> delta_, exact_, found_, again_;
  std::vector<std::uint16_t> rounded_;
};

class WeightChecker {
 public:
  WeightChecker(const formats::Adapter& adapter, int threads, const Progress& progress, std::stop_token stop)
      : adapter_(adapter), device_(Bytes(0), thread_count(threads)), progress_(progress), stop_(std::move(stop)) {
    for (const formats::AdapterModule& m : adapter.modules)
      modules_.emplace(std::string(formats::suffix_of(m.target)) + ".weight", &m);
  }

  MergeCheck run(const fs::path& base, const fs::path& merged) {
    std::vector<std::unique_ptr<SafetensorsFile>> files;
    for (const fs::path& file : formats::weight_files(base)) files.push_back(std::make_unique<SafetensorsFile>(file));
    for (const auto& file : files)
      for (const TensorInfo& t : file->tensors()) total_ += static_cast<std::int64_t>(t.end - t.begin);
    if (progress_) progress_(0, static_cast<long>(total_));
    result_.verdict = ParityVerdict::passed;
    for (const auto& before : files) {
      if (!compare_files(*before, merged / before->path().filename())) break;
    }
    if (result_.verdict == ParityVerdict::passed && used_ != modules_.size())
      fail(merged.string() + ": " + std::to_string(modules_.size() - used_) + " adapted weights are in no file");
    if (result_.verdict == ParityVerdict::passed && adapted_values_ > 0) {
      result_.rounding_rms = std::sqrt(sums_.rounding / static_cast<double>(adapted_values_));
      result_.effect_rms = std::sqrt(sums_.effect / static_cast<double>(adapted_values_));
    }
    return std::move(result_);
  }

 private:
  bool fail(std::string reason) {
    result_.verdict = ParityVerdict::failed;
    result_.reason = std::move(reason);
    return false;
  }

  bool compare_files(const SafetensorsFile& before, const fs::path& file) {
    std::unique_ptr<SafetensorsFile> after;
    try {
      after = std::make_unique<SafetensorsFile>(file);
    } catch (const Error& error) {
      return fail(error.what());
    }
    if (after->tensors().size() != before.tensors().size())
      return fail(file.string() + ": has " + std::to_string(after->tensors().size()) + " tensors, expected " +
                  std::to_string(before.tensors().size()));
    for (const TensorInfo& t : before.tensors()) {
      const TensorInfo* found = after->find(t.name);
      if (!found) return fail(file.string() + ": tensor " + t.name + " is missing");
      if (found->shape != t.shape || found->dtype_name != t.dtype_name)
        return fail(file.string() + ": tensor " + t.name + " is " + found->dtype_name + " " +
                    formats::shape_text(found->shape) + ", expected " + t.dtype_name + " " +
                    formats::shape_text(t.shape));
      if (!compare_tensor(before, t, *after, *found)) return false;
    }
    return true;
  }

  const formats::AdapterModule* module_of(const TensorInfo& t) const {
    if (formats::is_tower(t.name)) return nullptr;
    const auto at = modules_.find(std::string(formats::without_prefix(t.name)));
    return at == modules_.end() ? nullptr : at->second;
  }

  bool compare_tensor(const SafetensorsFile& before, const TensorInfo& t, const SafetensorsFile& after,
                      const TensorInfo& found) {
    const formats::AdapterModule* module = module_of(t);
    if (module && t.shape != std::vector<std::int64_t>{module->target.out, module->target.in})
      return fail(before.path().string() + ": tensor " + t.name + " has the shape " + formats::shape_text(t.shape) +
                  ", which the adapter does not fit");
    const auto wrong =
        module ? compare_adapted(before, t, after, found, *module) : compare_equal(before, t, after, found);
    if (stop_.stop_requested()) throw cancelled("the check");
    ++result_.tensors;
    result_.adapted += module != nullptr;
    result_.values += t.elements();
    used_ += module != nullptr;
    adapted_values_ += module ? t.elements() : 0;
    done_ += static_cast<std::int64_t>(t.end - t.begin);
    if (progress_) progress_(static_cast<long>(done_), static_cast<long>(total_));
    return !wrong || fail(difference_text(after.path(), t, *wrong, module != nullptr));
  }

  static std::string difference_text(const fs::path& file, const TensorInfo& t, const Difference& wrong, bool adapted) {
    const std::int64_t cols = t.shape.empty() ? 1 : std::max<std::int64_t>(1, t.shape.back());
    const std::string place =
        t.name + "[" + std::to_string(wrong.index / cols) + ", " + std::to_string(wrong.index % cols) + "]";
    if (!adapted) return file.string() + ": " + place + " differs from the base model, though it has no adapter";
    return file.string() + ": " + place + " is " + number_text(wrong.found, 9) + ", expected " +
           number_text(wrong.expected, 9) + " (base weight + scale B A)";
  }

  // Compares pieces of `unit` values on all threads with what make() returns on each, called as
  // compare(first unit, units, bytes before, bytes after, sums). Returns the first difference.
  template <class Make>
  std::optional<Difference> over_pieces(const SafetensorsFile& before, const TensorInfo& t,
                                        const SafetensorsFile& after, const TensorInfo& found, std::int64_t unit,
                                        Make make) {
    const auto item = static_cast<std::int64_t>(formats::size_of(t.dtype));
    const std::int64_t units = t.elements() / unit, piece = std::max<std::int64_t>(1, kPieceBytes / (unit * item));
    std::mutex mutex;
    std::optional<Difference> first;
    std::map<std::int64_t, ErrorSums> parts;  // added in order, so that the figures do not depend on timing
    device_.pool.parallel_for(units, 1, [&](std::int64_t begin, std::int64_t end) {
      auto compare = make();
      ErrorSums sums;
      std::optional<Difference> wrong;
      std::vector<std::byte> a, b;
      for (std::int64_t at = begin; at < end && !wrong && !stop_.stop_requested(); at += piece) {
        const std::int64_t n = std::min(piece, end - at);
        a.resize(static_cast<size_t>(n * unit * item));
        b.resize(a.size());
        before.read(t, at * unit, n * unit, a);
        after.read(found, at * unit, n * unit, b);
        wrong = compare(at, n, a.data(), b.data(), sums);
      }
      const std::lock_guard lock(mutex);
      if (wrong && (!first || wrong->index < first->index)) first = wrong;
      parts[begin] = sums;
    });
    for (const auto& [begin, sums] : parts) {
      sums_.rounding += sums.rounding;
      sums_.effect += sums.effect;
    }
    return first;
  }

  std::optional<Difference> compare_equal(const SafetensorsFile& before, const TensorInfo& t,
                                          const SafetensorsFile& after, const TensorInfo& found) {
    const auto item = static_cast<std::int64_t>(formats::size_of(t.dtype));
    const auto compare = [item](std::int64_t first, std::int64_t n, const std::byte* a, const std::byte* b,
                                ErrorSums&) -> std::optional<Difference> {
      const std::int64_t bytes = n * item;
      if (std::memcmp(a, b, static_cast<size_t>(bytes)) == 0) return std::nullopt;
      return Difference{first + (std::mismatch(a, a + bytes, b).first - a) / item};
    };
    return over_pieces(before, t, after, found, 1, [&] { return compare; });
  }

  std::optional<Difference> compare_adapted(const SafetensorsFile& before, const TensorInfo& t,
                                            const SafetensorsFile& after, const TensorInfo& found,
                                            const formats::AdapterModule& module) {
    return over_pieces(before, t, after, found, module.target.in, [&] {
      return [rows = AdaptedRows(module, scaling_of(adapter_, module), t.dtype)](
                 std::int64_t first, std::int64_t n, const std::byte* a, const std::byte* b, ErrorSums& sums) mutable {
        return rows.check(first, n, a, b, sums);
      };
    });
  }

  const formats::Adapter& adapter_;
  engine::Device device_;
  const Progress& progress_;
  std::stop_token stop_;
  std::map<std::string, const formats::AdapterModule*> modules_;  // by name of the weight without prefix
  size_t used_ = 0;
  std::int64_t total_ = 0, done_ = 0, adapted_values_ = 0;  // bytes, bytes, weights
  ErrorSums sums_;
  MergeCheck result_;
};

}  // namespace

MergeCheck check_weights(const fs::path& base, const formats::Adapter& adapter, const fs::path& merged, int threads,
                         const Progress& progress, std::stop_token stop) {
  return WeightChecker(adapter, threads, progress, std::move(stop)).run(base, merged);
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
