// SPDX-License-Identifier: Apache-2.0
// Opens and reads input files given by the user: regular files within a size limit, UTF-8. All readers of foreign files
// use it, so that a device, a named pipe or a huge file is an error instead of a hang or an allocation failure.
// Thread-safe.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace mw {

inline constexpr std::uint64_t kMaxJsonFile = 64ull << 20;  // experiments, configurations, indices
inline constexpr std::uint64_t kMaxTokenizerFile = 256ull << 20;

// `inherited` accepts pipes that the process was started with: /dev/stdin, or /dev/fd/N of `<(command)`.
enum class Pipes { refuse, inherited };

// Returns a file descriptor, which the caller closes. Throws SYSTEM if the file cannot be opened, FILE-KIND for a
// folder, device, socket or named pipe, and FILE-LFS for a Git LFS pointer.
int open_input(const std::filesystem::path& file, Pipes pipes = Pipes::refuse);

// The first bytes of a file, to detect its format; at most `bytes`, empty if it cannot be read.
std::string read_beginning(const std::filesystem::path& file, size_t bytes);

// Contents of a UTF-8 file of at most `max_bytes`, without the byte order mark.
std::string read_text(const std::filesystem::path& file, std::uint64_t max_bytes);

// Skips a UTF-8 byte order mark. Throws TEXT-ENCODING, naming `source`, for a UTF-16 or UTF-32 byte order mark.
std::string_view without_byte_order_mark(std::string_view text, const std::string& source);

}  // namespace mw
