// SPDX-License-Identifier: Apache-2.0
#include "core/base/sha256.h"

#include <openssl/evp.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <vector>

#include "core/base/error.h"
#include "core/base/files.h"

namespace mw {
namespace {

constexpr size_t kFileChunk = size_t{1} << 20;

EVP_MD_CTX* context_of(void* context) {
  return static_cast<EVP_MD_CTX*>(context);
}

// These calls fail only for lack of memory: SHA-256 is always available.
void require(int result) {
  if (result != 1) throw std::bad_alloc();
}

}  // namespace

void Sha256::Free::operator()(void* context) const {
  EVP_MD_CTX_free(context_of(context));
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  require(context_ != nullptr);
  require(EVP_DigestInit_ex2(context_of(context_.get()), EVP_sha256(), nullptr));
}

Sha256& Sha256::add(std::string_view bytes) {
  require(EVP_DigestUpdate(context_of(context_.get()), bytes.data(), bytes.size()));
  return *this;
}

Sha256& Sha256::add_number(std::uint64_t number) {
  char bytes[8];
  for (char& byte : bytes) {
    byte = static_cast<char>(number & 0xff);
    number >>= 8;
  }
  return add({bytes, sizeof bytes});
}

Sha256& Sha256::add_field(std::string_view bytes) {
  return add_number(bytes.size()).add(bytes);
}

Sha256Digest Sha256::finish() {
  Sha256Digest digest;
  require(EVP_DigestFinal_ex(context_of(context_.get()), digest.data(), nullptr));
  require(EVP_DigestInit_ex2(context_of(context_.get()), nullptr, nullptr));
  return digest;
}

std::string hex(const Sha256Digest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

FileDigest sha256_of_file(const std::filesystem::path& file) {
  struct Closed {
    int fd;
    ~Closed() { ::close(fd); }
  } const input{open_input(file)};
  FileDigest out;
  Sha256 sha;
  std::vector<char> chunk(kFileChunk);
  for (;;) {
    const ssize_t count = ::read(input.fd, chunk.data(), chunk.size());
    if (count == 0) break;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw system_error("cannot read the file", file.string(), errno);
    sha.add({chunk.data(), static_cast<size_t>(count)});
    out.bytes += static_cast<std::uint64_t>(count);
  }
  out.sha256 = sha.finish();
  return out;
}

}  // namespace mw
