// SPDX-License-Identifier: Apache-2.0
// Unfinished output: "<name>.part-<pid>" while a file or folder is written, and "<name>.old-<pid>" for the moment in
// which a folder is replaced where the file system cannot swap two. A process that is killed leaves them behind; a part
// is stale when no process has that id and nothing holds its lock (a writer in another container has no id here).
#pragma once
#include <filesystem>

namespace mw {

std::filesystem::path part_of(const std::filesystem::path& target);  // of this process
void mark_in_use(int descriptor);  // locks a part as long as this process has the descriptor open
void sync_folder_of(const std::filesystem::path& target);  // so that a rename in it survives a power failure

// Remove stale parts: of one target, or of everything directly in a folder. An ".old-" folder whose target is missing
// is renamed back to it. Never throw: what cannot be removed stays.
void remove_stale_parts_of(const std::filesystem::path& target) noexcept;
void remove_stale_parts_in(const std::filesystem::path& folder) noexcept;

}  // namespace mw
