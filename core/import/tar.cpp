// SPDX-License-Identifier: Apache-2.0
#include "core/import/tar.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"

namespace mw::importing {
namespace {

using Header = std::array<char, kTarBlock>;

struct Field {
  size_t at, bytes;
};
constexpr Field kName{0, 100}, kMode{100, 8}, kUser{108, 8}, kGroup{116, 8}, kSize{124, 12}, kTime{136, 12},
    kSum{148, 8}, kType{156, 1}, kMagic{257, 8}, kPrefix{345, 155};
constexpr std::string_view kUstar("ustar\00000", 8);
constexpr std::uint64_t kMostOctal = 077777777777, kMostSize = 1ull << 44;

std::string_view field(const Header& header, Field f) {
  const std::string_view bytes(header.data() + f.at, f.bytes);
  return bytes.substr(0, bytes.find('\0'));
}

void put_octal(Header& header, Field f, std::uint64_t value) {
  for (size_t i = f.bytes - 1; i-- > 0; value >>= 3) header[f.at + i] = static_cast<char>('0' + (value & 7));
}

void put_size(Header& header, std::uint64_t bytes) {
  if (bytes <= kMostOctal) return put_octal(header, kSize, bytes);
  for (size_t i = kSize.bytes; i-- > 0; bytes >>= 8) header[kSize.at + i] = static_cast<char>(bytes & 0xff);
  header[kSize.at] = static_cast<char>(0x80);
}

// The sum of the bytes of the header with spaces in place of the sum.
std::uint64_t sum_of(const Header& header) {
  std::uint64_t sum = 0;
  for (size_t i = 0; i < header.size(); ++i)
    sum += i >= kSum.at && i < kSum.at + kSum.bytes ? ' ' : static_cast<unsigned char>(header[i]);
  return sum;
}

std::optional<std::uint64_t> octal(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return std::nullopt;
  return parse_number<std::uint64_t>(text.substr(first, text.find_last_not_of(' ') + 1 - first), 8);
}

std::optional<std::uint64_t> size_of_entry(const Header& header) {
  if (static_cast<unsigned char>(header[kSize.at]) != 0x80) return octal(field(header, kSize));
  std::uint64_t value = 0;
  for (size_t i = 1; i < kSize.bytes; ++i) {
    if (value >> 56) return std::nullopt;
    value = value << 8 | static_cast<unsigned char>(header[kSize.at + i]);
  }
  return value;
}

std::uint64_t padding_of(std::uint64_t bytes) {
  return (kTarBlock - bytes % kTarBlock) % kTarBlock;
}

bool is_zero(const Header& header) {
  return std::all_of(header.begin(), header.end(), [](char c) { return c == 0; });
}

}  // namespace

void refuse_bundle(const std::string& file, const std::string& message, const std::string& place,
                   const std::string& found, const std::string& expected) {
  throw Error("BUNDLE", message,
              {.file = file,
               .place = text_excerpt(valid_utf8(place)),
               .found = text_excerpt(valid_utf8(found)),
               .expected = expected});
}

bool is_archive_name(std::string_view name) {
  if (name.empty() || name.size() > kName.bytes) return false;
  for (const char c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
          c == '-' || c == '/'))
      return false;
  while (true) {
    const std::string_view part = name.substr(0, name.find('/'));
    if (part.empty() || part == "." || part == "..") return false;
    if (part.size() == name.size()) return true;
    name.remove_prefix(part.size() + 1);
  }
}

void TarWriter::begin(const std::string& name, std::uint64_t bytes) {
  end_entry();
  if (!is_archive_name(name))
    throw Error("BUNDLE", "a file cannot be stored under this name",
                {.found = text_excerpt(valid_utf8(name)), .expected = "at most 100 letters, digits, '.', '_' and '-'"});
  Header header{};
  std::copy(name.begin(), name.end(), header.begin());
  put_octal(header, kMode, 0644);
  put_octal(header, kUser, 0);
  put_octal(header, kGroup, 0);
  put_size(header, bytes);
  put_octal(header, kTime, 0);  // the same runs give the same bundle
  header[kType.at] = '0';
  std::copy(kUstar.begin(), kUstar.end(), header.begin() + kMagic.at);
  put_octal(header, {kSum.at, kSum.bytes - 1}, sum_of(header));
  header[kSum.at + kSum.bytes - 1] = ' ';
  sink_(std::as_bytes(std::span(header)));
  left_ = bytes;
  padding_ = padding_of(bytes);
}

void TarWriter::write(std::span<const std::byte> bytes) {
  if (bytes.size() > left_)
    throw Error("BUNDLE", "a file grew while it was read", {.expected = "files that do not change"},
                Error::Kind::failed);
  left_ -= bytes.size();
  sink_(bytes);
}

void TarWriter::add(const std::string& name, std::string_view content) {
  begin(name, content.size());
  write(std::as_bytes(std::span(content)));
}

void TarWriter::end_entry() {
  if (left_ > 0)
    throw Error("BUNDLE", "a file shrank while it was read", {.expected = "files that do not change"},
                Error::Kind::failed);
  const Header zeros{};
  sink_(std::as_bytes(std::span(zeros)).first(padding_));
  padding_ = 0;
}

void TarWriter::finish() {
  end_entry();
  const Header zeros{};
  for (int i = 0; i < 2; ++i) sink_(std::as_bytes(std::span(zeros)));
}

void TarReader::fill(std::span<char> out) {
  for (size_t done = 0; done < out.size();) {
    const size_t n = source_(out.subspan(done));
    if (n == 0) refuse_bundle(file_, "the bundle is incomplete", "", "its end", "all of its entries");
    done += n;
  }
}

std::optional<TarReader::Entry> TarReader::next() {
  std::array<char, 1 << 16> unused{};
  while (read(unused) > 0) {
  }
  fill(std::span(unused).first(padding_));
  padding_ = 0;
  Header header{};
  fill(header);
  if (is_zero(header)) {
    fill(header);
    if (!is_zero(header) || source_(header) != 0)
      refuse_bundle(file_, "the bundle continues after its end", "", "more data", "no data");
    return std::nullopt;
  }
  const auto sum = octal(field(header, kSum));
  if (std::string_view(header.data() + kMagic.at, 5) != "ustar" || sum != sum_of(header))
    refuse_bundle(file_, "an entry of the bundle is damaged", "", "a header without a valid checksum",
                  "a ustar header");
  Entry entry{.name = std::string(field(header, kName)), .bytes = 0};
  if (header[kType.at] != '0' || !field(header, kPrefix).empty())
    refuse_bundle(file_, "the bundle has an entry that is no plain file", entry.name,
                  "type " + std::string(1, header[kType.at]), "files that `meshwright bundle` wrote");
  if (!is_archive_name(entry.name))
    refuse_bundle(file_, "the bundle has an entry with a forbidden name", "", entry.name,
                  "a relative name of letters, digits, '.', '_' and '-'");
  if (!names_.insert(entry.name).second)
    refuse_bundle(file_, "the bundle has two entries with one name", "", entry.name, "one of each");
  const auto bytes = size_of_entry(header);
  if (!bytes || *bytes > kMostSize)
    refuse_bundle(file_, "the size of an entry is invalid", entry.name, bytes ? std::to_string(*bytes) : "no number",
                  "at most " + std::to_string(kMostSize) + " bytes");
  entry.bytes = left_ = *bytes;
  padding_ = padding_of(*bytes);
  return entry;
}

size_t TarReader::read(std::span<char> out) {
  const std::span<char> part = out.first(std::min<std::uint64_t>(out.size(), left_));
  if (part.empty()) return 0;
  const size_t n = source_(part);
  if (n == 0) refuse_bundle(file_, "the bundle is incomplete", "", "its end", "all of its entries");
  left_ -= n;
  return n;
}

std::string TarReader::content(const Entry& entry, std::uint64_t most) {
  if (entry.bytes > most)
    refuse_bundle(file_, "an entry of the bundle is too large", entry.name, std::to_string(entry.bytes) + " bytes",
                  "at most " + std::to_string(most));
  std::string text;
  std::array<char, 1 << 16> piece{};  // grows with what is there, not with what the header claims
  for (size_t n = read(piece); n > 0; n = read(piece)) text.append(piece.data(), n);
  return text;
}

}  // namespace mw::importing
