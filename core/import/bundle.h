// SPDX-License-Identifier: Apache-2.0
// A bundle: ended runs of a store as one file NAME.meshwright.tar.zst that another store imports. It holds bundle.json
// (format, version, names, dates, tags), and of each run its experiment, its events and, if asked for, its checkpoints.
// Reading trusts nothing in it. Use on the store's thread.
#pragma once
#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <vector>

#include "core/store/store.h"

namespace mw::importing {

inline constexpr const char* kBundleExtension = ".meshwright.tar.zst";

enum class BundledCheckpoints { none, all };
struct BundleContents {
  std::vector<store::RunId> runs{};        // bundled, or imported
  std::vector<std::string> names{};        // by run
  std::vector<std::uint64_t> events_of{};  // by run
  std::uint64_t files = 0, bytes = 0;      // of checkpoints
};

// Replaces `out` atomically. Throws RUN-UNKNOWN, and BUNDLE for another extension or a run that has not ended.
BundleContents write_bundle(const store::Store& store, const std::vector<store::RunId>& runs,
                            const std::filesystem::path& out, BundledCheckpoints checkpoints,
                            const std::stop_token& stop = {});

bool is_bundle(const std::filesystem::path& file);  // by content
// Reads everything without keeping it. Throws BUNDLE, or DATA-COMPRESSED for damaged compression.
BundleContents check_bundle(const std::filesystem::path& file);
// Adds the runs of a bundle as new runs with their names, dates and tags. An error leaves none of them.
BundleContents import_bundle(store::Store& store, const std::filesystem::path& file);

}  // namespace mw::importing
