// SPDX-License-Identifier: Apache-2.0
#include "core/data/dataset/token_rows.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "core/base/error.h"
#include "core/base/rng.h"

namespace mw::data {
namespace {

static_assert(std::endian::native == std::endian::little, "the file holds numbers as this machine does");
static_assert(sizeof(TokenRecord) == 56);

constexpr char kMagic[8] = {'M', 'W', 'T', 'O', 'K', 'E', 'N', 'S'};
constexpr std::uint32_t kFileVersion = 1;
constexpr size_t kMostStoredProblems = 100;

// The end of the file. Everything else is found from it.
struct Footer {
  std::uint64_t rows = 0, blocks = 0;  // number
  std::uint64_t blocks_offset = 0, json_offset = 0, json_bytes = 0;
  std::uint32_t vocabulary = 0, unused = 0;
  Sha256Digest sum{};  // of the records, the offsets of the blocks, the JSON text and the fields above
  std::uint32_t version = kFileVersion, reserved = 0;
  char magic[8] = {};
};
static_assert(sizeof(Footer) == 96);

std::string_view bytes_of(const void* data, size_t size) {
  return {static_cast<const char*>(data), size};
}

std::uint32_t checksum(std::span<const std::byte> payload) {
  std::uint64_t sum = payload.size();
  for (size_t i = 0; i < payload.size(); i += 8) {
    std::uint64_t part = 0;
    std::memcpy(&part, payload.data() + i, std::min<size_t>(8, payload.size() - i));
    sum = mix64(sum ^ part);
  }
  return static_cast<std::uint32_t>(sum >> 32);
}

constexpr int kOffsetBits = 48;

std::uint16_t file_bits(FileNumber file) {
  return static_cast<std::uint16_t>(file.index | (file.held_out ? kMostFiles : 0));
}
FileNumber file_of(std::uint64_t bits) {
  return {.index = static_cast<std::uint16_t>(bits % kMostFiles), .held_out = (bits & kMostFiles) != 0};
}

Json problem_json(const Problem& p, FileNumber file) {
  return {{"id", p.id},       {"message", p.message},   {"place", p.place}, {"file", file_bits(file)},
          {"found", p.found}, {"expected", p.expected}, {"fix", p.fix}};
}

template <class T>
T read_as(std::span<const std::byte> content, std::uint64_t offset) {
  T value;
  std::memcpy(&value, content.data() + offset, sizeof value);
  return value;
}

}  // namespace

int id_bytes(int vocabulary) {
  return vocabulary <= 1 << 16 ? 2 : 4;
}

size_t id_bytes(const TokenRecord& record, int vocabulary) {
  return size_t{record.tokens} * static_cast<size_t>(id_bytes(vocabulary));
}

size_t loss_bytes(const TokenRecord& record) {
  return (size_t{record.tokens} + 7) / 8;
}

std::optional<std::int64_t> loss_within(const TokenRecord& record, std::int32_t tokens) {
  if (tokens >= static_cast<std::int32_t>(record.tokens)) return record.loss_tokens;
  if (record.loss_is_run == 0) return std::nullopt;
  return std::clamp<std::int64_t>(std::int64_t{tokens} - record.loss_start, 0, record.loss_tokens);
}

std::int64_t loss_within(const TokenRecord& record, std::span<const std::byte> bits, std::int32_t tokens) {
  if (const auto known = loss_within(record, tokens)) return *known;
  std::int64_t count = 0;
  for (std::int32_t i = 0; i < tokens; ++i)
    count += std::to_integer<int>(bits[static_cast<size_t>(i / 8)] >> (i % 8)) & 1;
  return count;
}

DataRow data_row(const TokenRecord& record, const DatasetOptions& options,
                 const std::function<std::int64_t(std::int32_t)>& loss_within) {
  DataRow row{.format = static_cast<options::Format>(record.format),
              .place = {.offset = record.offset & ((std::int64_t{1} << kOffsetBits) - 1),
                        .bytes = record.bytes,
                        .skip = record.skip,
                        .line = record.line,
                        .file = file_of(static_cast<std::uint64_t>(record.offset) >> kOffsetBits)},
              .row = record.row,
              .tokens = static_cast<std::int32_t>(record.tokens)};
  if (record.bad)
    row.state = RowState::bad;
  else
    decide_use(row, options, loss_within);
  return row;
}

TokenRows::TokenRows(const std::filesystem::path& file) : file_(file.string()) {
  fd_ = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd_ < 0) throw system_error("cannot open", file_, errno);
  try {
    struct stat st {};
    if (::fstat(fd_, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0) damaged("the file");
    void* mapped = ::mmap(nullptr, static_cast<size_t>(st.st_size), PROT_READ, MAP_SHARED, fd_, 0);
    if (mapped == MAP_FAILED) throw system_error("cannot map", file_, errno);
    content_ = {static_cast<const std::byte*>(mapped), static_cast<size_t>(st.st_size)};
    ::madvise(mapped, content_.size(), MADV_RANDOM);  // records lie between tokens, which are not read through the map
    open();
  } catch (...) {
    close();
    throw;
  }
}

TokenRows::TokenRows(std::vector<std::byte> content) : memory_(std::move(content)), content_(memory_) {
  open();
}

void TokenRows::close() {
  if (fd_ < 0) return;
  if (!content_.empty()) ::munmap(const_cast<std::byte*>(content_.data()), content_.size());
  ::close(fd_);
}

void TokenRows::damaged(const std::string& place) const {
  throw Error("DATA-CACHE", "the stored tokens are damaged",
              {.file = file_, .place = place, .fix = "delete the file; it is made again from the data"},
              Error::Kind::failed);
}

void TokenRows::open() {
  if (content_.size() < sizeof(Footer)) damaged("footer");
  const std::uint64_t footer_at = content_.size() - sizeof(Footer);
  const auto footer = read_as<Footer>(content_, footer_at);
  if (std::memcmp(footer.magic, kMagic, sizeof kMagic) != 0 || footer.version != kFileVersion) damaged("footer");
  const auto fits = [&](std::uint64_t begin, std::uint64_t count, std::uint64_t each, std::uint64_t end) {
    return begin <= end && count == (end - begin) / each && (end - begin) % each == 0;
  };
  if (footer.vocabulary > std::uint32_t{1} << 30 || footer.rows > content_.size() / sizeof(TokenRecord) ||
      footer.blocks != (footer.rows + TokenRowsWriter::kBlockRows - 1) / TokenRowsWriter::kBlockRows ||
      !fits(footer.json_offset, footer.json_bytes, 1, footer_at) ||
      !fits(footer.blocks_offset, footer.blocks, sizeof(std::uint64_t), footer.json_offset))
    damaged("footer");
  rows_ = static_cast<std::int64_t>(footer.rows);
  vocabulary_ = static_cast<int>(footer.vocabulary);
  blocks_.resize(footer.blocks);
  if (!blocks_.empty())
    std::memcpy(blocks_.data(), content_.data() + footer.blocks_offset, blocks_.size() * sizeof blocks_[0]);
  Sha256 sum;
  std::uint64_t left = footer.rows;
  for (const std::uint64_t block : blocks_) {
    const std::uint64_t records = std::min<std::uint64_t>(left, TokenRowsWriter::kBlockRows);
    if (block > footer.blocks_offset || records * sizeof(TokenRecord) > footer.blocks_offset - block) damaged("blocks");
    sum.add(bytes_of(content_.data() + block, records * sizeof(TokenRecord)));
    left -= records;
  }
  const std::string_view json = bytes_of(content_.data() + footer.json_offset, footer.json_bytes);
  sum.add(bytes_of(blocks_.data(), blocks_.size() * sizeof(std::uint64_t))).add(json);
  sum.add(bytes_of(&footer, offsetof(Footer, sum)));
  if (sum.finish() != footer.sum) damaged("checksum");
  check_records();
  try {
    const Json document = parse_json(json, file_);
    properties_ = member(document, "properties", file_);
    for (const Json& p : list_member(document, "problems", file_)) {
      const Json* file = find_member(p, "file");
      problem_files_.push_back(file && file->is_number_unsigned() ? file_of(file->get<std::uint64_t>()) : FileNumber());
      problems_.push_back({.id = string_member(p, "id", file_),
                           .message = string_member(p, "message", file_),
                           .place = string_member(p, "place", file_),
                           .found = string_member(p, "found", file_),
                           .expected = string_member(p, "expected", file_),
                           .fix = string_member(p, "fix", file_)});
    }
  } catch (const Error&) {
    damaged("properties");
  }
}

// Payload and number of every record, so that the other members need not check them.
void TokenRows::check_records() const {
  for (std::int64_t i = 0; i < rows_; ++i) {
    const TokenRecord r = record(i);
    const std::uint64_t end = blocks_[static_cast<size_t>(i / TokenRowsWriter::kBlockRows)];
    const std::uint64_t bytes = id_bytes(r, vocabulary_) + loss_bytes(r);
    if (r.payload > end || bytes > end - r.payload || r.loss_tokens > r.tokens || r.tokens > (1u << 30) ||
        r.format > static_cast<std::uint8_t>(options::Format::text) || r.loss_start > r.tokens - r.loss_tokens)
      damaged("record " + std::to_string(i));
  }
}

TokenRecord TokenRows::record(std::int64_t index) const {
  const auto block = static_cast<size_t>(index / TokenRowsWriter::kBlockRows);
  const auto within = static_cast<std::uint64_t>(index % TokenRowsWriter::kBlockRows);
  return read_as<TokenRecord>(content_, blocks_[block] + within * sizeof(TokenRecord));
}

std::span<const std::byte> TokenRows::part(std::uint64_t offset, size_t bytes, std::vector<std::byte>& buffer) const {
  if (fd_ < 0) return content_.subspan(offset, bytes);
  buffer.resize(bytes);
  for (size_t done = 0; done < bytes;) {
    const ssize_t n = ::pread(fd_, buffer.data() + done, bytes - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw system_error("cannot read", file_, errno);
    if (n == 0) damaged("the end of the file");
    done += static_cast<size_t>(n);
  }
  return buffer;
}

std::vector<Problem> TokenRows::problems(const DatasetOptions& options) const {
  std::vector<Problem> problems = problems_;
  if (problems.empty()) return problems;
  for (size_t i = 0; i < problems.size(); ++i) problems[i].file = data_file(options, problem_files_[i]).string();
  return problems;
}

DataRow TokenRows::row(std::int64_t index, const DatasetOptions& options) const {
  const TokenRecord r = record(index);
  return data_row(r, options, [&](std::int32_t tokens) -> std::int64_t {
    if (const auto known = loss_within(r, tokens)) return *known;
    std::vector<std::byte> buffer;
    return loss_within(r, part(r.payload + id_bytes(r, vocabulary_), loss_bytes(r), buffer), tokens);
  });
}

void TokenRows::read(std::int64_t index, std::int32_t tokens, std::vector<int>& ids,
                     std::vector<std::uint8_t>& loss) const {
  const TokenRecord r = record(index);
  std::vector<std::byte> buffer;
  const std::span<const std::byte> bytes = part(r.payload, id_bytes(r, vocabulary_) + loss_bytes(r), buffer);
  if (checksum(bytes) != r.checksum) damaged("row " + std::to_string(r.row));
  const auto n = static_cast<size_t>(std::clamp<std::int64_t>(tokens, 0, r.tokens));
  ids.resize(n);
  loss.resize(n);
  const bool is_short = id_bytes(vocabulary_) == 2;
  for (size_t i = 0; i < n; ++i) {
    const std::uint32_t id = is_short ? read_as<std::uint16_t>(bytes, 2 * i) : read_as<std::uint32_t>(bytes, 4 * i);
    if (id >= static_cast<std::uint32_t>(vocabulary_)) damaged("row " + std::to_string(r.row));
    ids[i] = static_cast<int>(id);
  }
  const std::span<const std::byte> bits = bytes.subspan(id_bytes(r, vocabulary_));
  for (size_t i = 0; i < n; ++i) loss[i] = std::to_integer<std::uint8_t>(bits[i / 8] >> (i % 8)) & 1;
}

TokenRowsWriter::TokenRowsWriter(Append append, int vocabulary) : append_(std::move(append)), vocabulary_(vocabulary) {}

void TokenRowsWriter::put(const void* data, size_t bytes) {
  if (bytes == 0) return;
  append_(std::as_bytes(std::span(static_cast<const char*>(data), bytes)));
  written_ += bytes;
}

void TokenRowsWriter::add(const ScannedRow& row) {
  const std::vector<int>& ids = row.example.ids;
  const std::vector<std::uint8_t>& loss = row.example.loss;
  TokenRecord record{.payload = written_,
                     .row = row.example.row,
                     .offset = row.position.offset | std::int64_t{file_bits(row.position.file)} << kOffsetBits,
                     .bytes = row.position.bytes,
                     .skip = row.position.skip,
                     .line = row.position.line,
                     .tokens = static_cast<std::uint32_t>(ids.size()),
                     .loss_tokens = static_cast<std::uint32_t>(std::count(loss.begin(), loss.end(), 1)),
                     .format = static_cast<std::uint8_t>(row.format),
                     .bad = row.state == RowState::bad,
                     .has_prompt = !row.example.prompt.empty()};
  const auto start = std::find(loss.begin(), loss.end(), 1);
  if (start != loss.end() && std::count(start, start + std::min<std::ptrdiff_t>(record.loss_tokens, loss.end() - start),
                                        1) == record.loss_tokens) {
    record.loss_is_run = 1;
    record.loss_start = static_cast<std::uint32_t>(start - loss.begin());
  }
  const size_t bits = id_bytes(record, vocabulary_);
  const auto each = static_cast<size_t>(id_bytes(vocabulary_));
  payload_.assign(bits + loss_bytes(record), std::byte{0});
  for (size_t i = 0; i < ids.size(); ++i) {
    std::memcpy(payload_.data() + each * i, &ids[i], each);  // the lower bytes come first
    if (loss[i]) payload_[bits + i / 8] |= std::byte{1} << (i % 8);
  }
  record.checksum = checksum(payload_);
  records_.push_back(record);
  put(payload_.data(), payload_.size());
  if (row.state == RowState::bad && problems_.size() < kMostStoredProblems) {
    problems_.push_back(row.problem);
    problem_files_.push_back(row.position.file);
  }
  ++rows_;
  if (std::ssize(records_) == kBlockRows) end_block();
}

void TokenRowsWriter::end_block() {
  const std::uint64_t offset = written_;
  sum_.add(bytes_of(records_.data(), records_.size() * sizeof(TokenRecord)));
  put(records_.data(), records_.size() * sizeof(TokenRecord));
  records_.clear();
  blocks_.push_back(offset);
}

void TokenRowsWriter::finish(const Json& properties) {
  if (!records_.empty()) end_block();
  Json document{{"properties", properties}, {"problems", Json::array()}};
  for (size_t i = 0; i < problems_.size(); ++i)
    document["problems"].push_back(problem_json(problems_[i], problem_files_[i]));
  const std::string json = dump_utf8(document);
  Footer footer{.rows = static_cast<std::uint64_t>(rows_),
                .blocks = blocks_.size(),
                .blocks_offset = written_,
                .json_offset = written_ + blocks_.size() * sizeof(std::uint64_t),
                .json_bytes = json.size(),
                .vocabulary = static_cast<std::uint32_t>(vocabulary_)};
  std::memcpy(footer.magic, kMagic, sizeof kMagic);
  footer.sum = sum_.add(bytes_of(blocks_.data(), blocks_.size() * sizeof(std::uint64_t)))
                   .add(json)
                   .add(bytes_of(&footer, offsetof(Footer, sum)))
                   .finish();
  put(blocks_.data(), blocks_.size() * sizeof(std::uint64_t));
  put(json.data(), json.size());
  put(&footer, sizeof footer);
}

}  // namespace mw::data
