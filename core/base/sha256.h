// SPDX-License-Identifier: Apache-2.0
// SHA-256 of bytes and files, computed by OpenSSL's libcrypto with the processor's SHA instructions where it has them.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace mw {

using Sha256Digest = std::array<unsigned char, 32>;

class Sha256 {  // one computation at a time; one thread
 public:
  Sha256();
  Sha256& add(std::string_view bytes);
  Sha256& add_number(std::uint64_t number);   // as 8 bytes, the least significant first
  Sha256& add_field(std::string_view bytes);  // with its length, so that neighbouring fields cannot be confused
  Sha256Digest finish();                      // starts anew

 private:
  struct Free {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, Free> context_;
};

std::string hex(const Sha256Digest& digest);  // 64 lower-case digits

struct FileDigest {
  std::uint64_t bytes = 0;
  Sha256Digest sha256{};
};
FileDigest sha256_of_file(const std::filesystem::path& file);  // throws SYSTEM or FILE-KIND

}  // namespace mw
