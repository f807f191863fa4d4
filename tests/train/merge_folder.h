// SPDX-License-Identifier: GPL-3.0-or-later
// merge_into() into a folder that is missing or empty and appears as a whole.
#pragma once
#include "core/base/files.h"
#include "core/train/merge.h"

namespace mw::train {

inline MergedFiles merge(const std::filesystem::path& base, const formats::PeftAdapter& adapter,
                         const std::filesystem::path& out, int threads, const CountProgress& progress = {},
                         std::stop_token stop = {}) {
  require_merge_target(base, out);
  StagedFolder staged(out);
  MergedFiles result =
      merge_into(staged.path(), base, adapter, {.threads = threads, .progress = progress}, std::move(stop));
  staged.commit();
  return result;
}

}  // namespace mw::train
