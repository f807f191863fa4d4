// SPDX-License-Identifier: Apache-2.0
// Checks a merged folder value by value: every adapted weight against base + scale B A, computed in another way than
// merge_into() does, every other tensor bit for bit. Reads the files again through the file system: it finds a wrong
// value, place, scale, name or shape, and bytes that were not written. Bytes that are still in the page cache are not
// read from the disk, so a disk that loses what it acknowledged is not found. Needs memory for the adapter and a few
// rows per thread.
#pragma once
#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>

#include "core/base/json.h"
#include "core/formats/peft/peft_adapter.h"
#include "core/train/merge.h"
#include "core/train/model.h"
#include "core/train/parity.h"

namespace mw::train {

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
MergeCheck check_weights(const std::filesystem::path& base, const formats::Adapter& adapter,
                         const std::filesystem::path& merged, int threads, const Progress& progress = {},
                         std::stop_token stop = {});

struct CheckedMerge {
  MergeResult merged;
  MergeCheck check;
};
// merge_into() and check_weights() at once: checks every piece of a file as soon as it is written. options.written is
// not used. `progress` counts both. Throws as both do.
CheckedMerge merge_checked(const std::filesystem::path& folder, const std::filesystem::path& base,
                           const formats::Adapter& adapter, MergeOptions options, std::stop_token stop = {});

Json to_json(const MergeCheck& check);
std::string check_text(const MergeCheck& check);  // one line

}  // namespace mw::train
