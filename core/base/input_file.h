// SPDX-License-Identifier: Apache-2.0
// Opening and reading what a user names as input: regular files only, within a limit, UTF-8. Everything that reads a
// file of others opens it here, so that a device, a named pipe or a huge file is one clear error and never blocks or
// fills the memory. Any thread.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace mw {

inline constexpr std::uint64_t kMaxJsonFile = 64ull << 20;  // experiments, configurations, indices
inline constexpr std::uint64_t kMaxTokenizerFile = 256ull << 20;

// A pipe is an input where the process was started with it: /dev/stdin, or /dev/fd/N of `<(command)`.
enum class Pipes { refuse, inherited };

// A descriptor that the caller closes. Throws SYSTEM if it cannot be opened, FILE-KIND for a folder, a device, a socket
// or a named pipe, and FILE-LFS for a Git LFS pointer.
int open_input(const std::filesystem::path& file, Pipes pipes = Pipes::refuse);

// At most the first `bytes` of a file, to tell what it is; empty if it cannot be read.
std::string read_beginning(const std::filesystem::path& file, size_t bytes);

// A whole text file of at most `max_bytes`, without its byte order mark.
std::string read_text(const std::filesystem::path& file, std::uint64_t max_bytes);

// Skips UTF-8's byte order mark. Throws TEXT-ENCODING, naming `source`, for text that begins as UTF-16 or UTF-32 does.
std::string_view without_byte_order_mark(std::string_view text, const std::string& source);

}  // namespace mw
