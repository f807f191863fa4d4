// SPDX-License-Identifier: Apache-2.0
// Merges an adapter into the weights of its base model and writes a Hugging Face folder with the same files. Values are
// rounded once, from f32. Every thread reads, computes and writes pieces of a file of half a megabyte, while the disk
// reads ahead and writes behind them. Needs memory for the adapter and a few pieces.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/base/units.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/formats/peft/peft_adapter.h"
#include "core/train/model.h"
#include "core/train/parity.h"

namespace mw::train {

struct MergedFiles {
  long tensors = 0, merged = 0;  // in the files; changed by the adapter
  Bytes written;
  std::vector<std::string> files;  // names in the folder
};
// alpha / rank, or alpha / sqrt(rank) of rank-stabilised adapters.
float scaling_of(const formats::PeftAdapter& adapter, const formats::AdapterModule& module);
// Gives rows of W + scaling B A the lengths that DoRA trained for the outputs from `first_row` on.
void scale_rows(const formats::AdapterModule& module, std::int64_t first_row, std::span<float> rows);
// Throws MERGE unless `out` is missing or empty and another folder than `base`.
void require_merge_target(const std::filesystem::path& base, const std::filesystem::path& out);
// The first `bytes` bytes of `file`, made from `base_file`, can be read; they may not be on disk yet. The file has its
// final size.
using WrittenBytes =
    std::function<void(const std::filesystem::path& base_file, const std::filesystem::path& file, std::uint64_t bytes)>;
struct MergeOptions {
  int threads = 0;           // 0: all cores
  CountProgress progress{};  // in bytes
  WrittenBytes written{};    // after every piece, on the calling thread
};
// Writes into `folder`, which must exist and is incomplete until the function returns: use a StagedFolder. All files
// are on disk then. Throws MERGE, CHECKPOINT, ADAPTER, or cancelled() after a stop.
MergedFiles merge_into(const std::filesystem::path& folder, const std::filesystem::path& base,
                       const formats::PeftAdapter& adapter, const MergeOptions& options, std::stop_token stop = {});

// Checks a merged folder value by value: every adapted weight against base + scale B A, computed in another way than
// merge_into() does, every other tensor bit for bit. Reads the files again through the file system: it finds a wrong
// value, place, scale, name or shape, and bytes that were not written. Bytes that are still in the page cache are not
// read from the disk, so a disk that loses what it acknowledged is not found. Needs memory for the adapter and a few
// rows per thread.

// The rms values are over all adapted weights: of what rounding to the type of the file changed, and of what the
// adapter changed. Both are 0 unless the check passed.
struct MergeCheck {
  ParityVerdict verdict = ParityVerdict::not_run;
  std::string reason{};  // the first difference: file, tensor, place, found, expected; or why it did not run
  long tensors = 0, adapted = 0;
  std::int64_t values = 0;
  double rounding_rms = 0, effect_rms = 0;
};

// A weight passes if it is within half a unit in its last place, and the error bound of an f32 sum, of the exact value.
// `progress` counts bytes. Throws cancelled() after a stop, and the Errors of files of `base`.
MergeCheck check_weights(const std::filesystem::path& base, const formats::PeftAdapter& adapter,
                         const std::filesystem::path& merged, int threads, const CountProgress& progress = {},
                         std::stop_token stop = {});

struct CheckedMerge {
  MergedFiles merged;
  MergeCheck check;
};
// merge_into() and check_weights() at once: checks every piece of a file as soon as it is written. options.written is
// not used. `progress` counts both. Throws as both do.
CheckedMerge merge_checked(const std::filesystem::path& folder, const std::filesystem::path& base,
                           const formats::PeftAdapter& adapter, MergeOptions options, std::stop_token stop = {});

Json to_json(const MergeCheck& check);
std::string check_text(const MergeCheck& check);  // one line

}  // namespace mw::train
