// SPDX-License-Identifier: Apache-2.0
#include "core/formats/orbax/bytes.h"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

namespace mw::formats {
namespace {

constexpr const char* kDamaged = "copy the checkpoint again or choose another step: it is damaged or incomplete";
constexpr std::uint32_t kPolynomial = 0x82f63b78;  // Castagnoli, reflected

// Table k is the checksum of a byte followed by k zero bytes; eight tables process eight bytes at once.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;
constexpr Tables make_tables() {
  Tables t{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? kPolynomial : 0);
    t[0][i] = crc;
  }
  for (size_t k = 1; k < t.size(); ++k)
    for (size_t i = 0; i < 256; ++i) t[k][i] = (t[k - 1][i] >> 8) ^ t[0][t[k - 1][i] & 0xff];
  return t;
}
constexpr Tables kTables = make_tables();

template <class T>
T little(std::span<const std::byte> bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace

void fail_orbax(const std::filesystem::path& file, const std::string& message, const std::string& found,
                const std::string& expected, const std::string& fix, const std::string& place) {
  throw Error("ORBAX", message,
              {.file = file.string(), .place = place, .found = found, .expected = expected, .fix = fix});
}

std::uint32_t crc32c(std::span<const std::byte> bytes) {
  std::uint32_t crc = 0xffffffff;
  while (bytes.size() >= 8) {
    const auto v = little<std::uint64_t>(bytes) ^ crc;
    crc = 0;
    for (size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][(v >> (8 * k)) & 0xff];
    bytes = bytes.subspan(8);
  }
  for (const std::byte b : bytes) crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<std::uint32_t>(b)) & 0xff];
  return crc ^ 0xffffffff;
}

void Cursor::fail(const std::string& message, const std::string& found, const std::string& expected) const {
  fail_orbax(file_, message, found, expected, kDamaged, what_ + ", byte " + std::to_string(at_));
}

std::span<const std::byte> Cursor::take(size_t size) {
  if (size > left())
    fail("the data ends too early", std::to_string(left()) + " bytes", std::to_string(size) + " bytes");
  const auto part = bytes_.subspan(at_, size);
  at_ += size;
  return part;
}

std::uint8_t Cursor::u8() {
  return static_cast<std::uint8_t>(take(1)[0]);
}

std::uint32_t Cursor::u32() {
  return little<std::uint32_t>(take(4));
}

std::uint32_t Cursor::u32_big() {
  const std::uint32_t v = u32();
  return (v >> 24) | ((v >> 8) & 0xff00) | ((v << 8) & 0xff0000) | (v << 24);
}

std::uint64_t Cursor::u64() {
  return little<std::uint64_t>(take(8));
}

std::uint64_t Cursor::varint(std::uint64_t most) {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const std::uint8_t byte = u8();
    if (shift == 63 && byte > 1) fail("a number does not fit into 64 bits");
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  if (value > most) fail("a number is too large", std::to_string(value), "at most " + std::to_string(most));
  return value;
}

std::string_view Cursor::text(size_t size) {
  const auto part = take(size);
  return {reinterpret_cast<const char*>(part.data()), part.size()};
}

void Cursor::finish() const {
  if (left() > 0) fail("there are unexpected bytes at the end", std::to_string(left()), "0");
}

size_t Cursor::count(size_t item_bytes, std::uint64_t most) {
  const std::uint64_t n = varint(most);
  if (item_bytes > 0 && n > left() / item_bytes)
    fail("the count exceeds the remaining bytes", std::to_string(n), "at most " + std::to_string(left() / item_bytes));
  return static_cast<size_t>(n);
}

std::vector<std::uint64_t> Cursor::varints(size_t n, std::uint64_t most) {
  if (n > left()) fail("the count exceeds the remaining bytes", std::to_string(n), std::to_string(left()));
  std::vector<std::uint64_t> all(n);
  for (std::uint64_t& v : all) v = varint(most);
  return all;
}

namespace {

struct Packed {
  std::span<const std::byte> bytes;
  std::uint64_t most;
  const std::string &file, &what;
  [[noreturn]] void fail(const std::string& message, const std::string& found = "",
                         const std::string& expected = "") const {
    fail_orbax(file, message, found, expected, kDamaged, what);
  }
  [[noreturn]] void too_long(std::uint64_t found) const {
    fail("the decompressed data exceeds the limit", std::to_string(found) + " bytes",
         "at most " + std::to_string(most) + " bytes");
  }
};

// Decompresses a frame with a stated size, which must be plausible for the compressed size.
Blob unpack_sized(const Packed& p, std::uint64_t stated_size) {
  constexpr std::uint64_t kMostRatio = 1 << 16;  // blocks of 128 KiB in 4 bytes
  if (stated_size > p.most) p.too_long(stated_size);
  if (stated_size / kMostRatio > p.bytes.size())
    p.fail("the stated size is implausible", std::to_string(p.bytes.size()) + " bytes", std::to_string(stated_size));
  const size_t frame = ZSTD_findFrameCompressedSize(p.bytes.data(), p.bytes.size());
  if (ZSTD_isError(frame)) p.fail("the data cannot be decompressed", ZSTD_getErrorName(frame), "a zstd frame");
  if (frame != p.bytes.size())
    p.fail("there are unexpected bytes after the frame", std::to_string(p.bytes.size() - frame), "0");
  Blob out(static_cast<size_t>(stated_size));
  const size_t n = ZSTD_decompress(out.data(), out.size(), p.bytes.data(), p.bytes.size());
  if (ZSTD_isError(n)) p.fail("the data cannot be decompressed", ZSTD_getErrorName(n), "a zstd frame");
  out.resize(n);
  return out;
}

// Decompresses a frame without a stated size. The window, which the frame chooses, is limited to bound memory.
Blob unpack_stream(const Packed& p) {
  const std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream(ZSTD_createDStream(), ZSTD_freeDStream);
  ZSTD_DCtx_setParameter(stream.get(), ZSTD_d_windowLogMax, p.bytes.size() < (1u << 20) ? 23 : 27);
  ZSTD_inBuffer in{p.bytes.data(), p.bytes.size(), 0};
  Blob out;
  size_t used = 0, left = 1;
  while (left != 0) {
    if (used == out.size()) {
      if (used > p.most) p.too_long(used);
      const std::uint64_t grown =
          std::max<std::uint64_t>(std::max<std::uint64_t>(p.bytes.size() * 4, 1u << 16), out.size() * 2);
      out.resize(static_cast<size_t>(std::min<std::uint64_t>(grown, p.most + 1)));
    }
    ZSTD_outBuffer to{out.data(), out.size(), used};
    const size_t before = in.pos;
    left = ZSTD_decompressStream(stream.get(), &to, &in);
    if (ZSTD_isError(left)) p.fail("the data cannot be decompressed", ZSTD_getErrorName(left), "a zstd frame");
    if (left != 0 && to.pos == used && in.pos == before)
      p.fail("the data ends too early", std::to_string(p.bytes.size()) + " bytes");
    used = to.pos;
  }
  if (in.pos != p.bytes.size())
    p.fail("there are unexpected bytes after the frame", std::to_string(p.bytes.size() - in.pos), "0");
  if (used > p.most) p.too_long(used);
  out.resize(used);
  return out;
}

}  // namespace

Blob unzstd(std::span<const std::byte> bytes, std::uint64_t most, const std::string& file, const std::string& what) {
  const Packed packed{bytes, most, file, what};
  // The library may accept frames of zstd before 0.8, whose window is not limited.
  constexpr std::array<unsigned char, 4> kMagic{0x28, 0xb5, 0x2f, 0xfd};
  if (bytes.size() < kMagic.size() || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    packed.fail("the data is not a zstd frame", "", "the bytes 28 b5 2f fd");
  const unsigned long long stated_size = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
  if (stated_size == ZSTD_CONTENTSIZE_ERROR) packed.fail("the data cannot be decompressed", "", "a zstd frame");
  return stated_size == ZSTD_CONTENTSIZE_UNKNOWN ? unpack_stream(packed) : unpack_sized(packed, stated_size);
}

}  // namespace mw::formats
