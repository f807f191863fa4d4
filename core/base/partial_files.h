// SPDX-License-Identifier: Apache-2.0
// Temporary names of unfinished output: "<name>.part-<pid>" while a file or folder is written, and "<name>.old-<pid>"
// while a folder is replaced on a file system that cannot swap two. A killed process leaves them behind. A part is
// stale if no process has this id and nothing holds its lock (the id of a writer in another container is unknown here).
#pragma once
#include <filesystem>

namespace mw {

std::filesystem::path part_path(const std::filesystem::path& target);  // the part of this process
void lock_part(int descriptor);                                        // until the descriptor is closed
void sync_folder_of(const std::filesystem::path& target);              // makes a rename in this folder durable

// Remove the stale parts of one target, or of all targets directly in a folder. An ".old-" folder whose target is
// missing is renamed back to it. Failures to remove are ignored.
void remove_stale_parts_of(const std::filesystem::path& target) noexcept;
void remove_stale_parts_in(const std::filesystem::path& folder) noexcept;

}  // namespace mw
