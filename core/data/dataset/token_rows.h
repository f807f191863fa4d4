// SPDX-License-Identifier: Apache-2.0
// The tokens of all rows of a data file in a compact form: ids of 2 or 4 bytes, one bit of loss per token, and one
// record per row. Written once from first to last row with little memory. Of a file, the records are mapped into
// memory, and the tokens of a row are read when they are needed: mapped tokens would count as memory of the process.
#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/base/json.h"
#include "core/base/sha256.h"
#include "core/data/dataset/scan.h"

namespace mw::data {

// One row as the file holds it, before max_len, overlong and the split, which DataRow adds.
struct TokenRecord {
  std::uint64_t payload = 0;  // offset of its ids, which its loss bits follow
  std::int64_t row = 0;       // DataRow::row
  std::int64_t offset = 0;    // RowPosition, with its file in the upper 16 bits
  std::uint32_t bytes = 0, skip = 0, line = 0;
  std::uint32_t tokens = 0, loss_tokens = 0;
  std::uint32_t checksum = 0;  // of the payload
  std::uint8_t format = 0, bad = 0, has_prompt = 0;
  std::uint8_t loss_is_run = 0;  // 1: the loss is on the tokens from loss_start on, so that its bits need not be read
  std::uint32_t loss_start = 0;
};

// Immutable; thread-safe.
class TokenRows {
 public:
  // Throws DATA-CACHE if the content is not complete and sound. Only the payloads are not read here: read() compares
  // each with its checksum.
  explicit TokenRows(const std::filesystem::path& file);  // which may be deleted meanwhile
  explicit TokenRows(std::vector<std::byte> content);
  ~TokenRows() { close(); }
  TokenRows(const TokenRows&) = delete;
  TokenRows& operator=(const TokenRows&) = delete;

  std::int64_t size() const { return rows_; }
  TokenRecord record(std::int64_t index) const;
  // State, split and used tokens with these options, which may differ from those of the scan in max_len (not for
  // running text), overlong, eval_fraction and seed.
  DataRow row(std::int64_t index, const DatasetOptions& options) const;
  // The first `tokens` ids and their loss. Throws DATA-CACHE for a damaged payload.
  void read(std::int64_t index, std::int32_t tokens, std::vector<int>& ids, std::vector<std::uint8_t>& loss) const;
  std::vector<Problem> problems(const DatasetOptions& options) const;  // of the first bad rows, at most 100
  const Json& properties() const { return properties_; }               // as given to TokenRowsWriter::finish()
  std::int64_t bytes() const { return static_cast<std::int64_t>(content_.size()); }

 private:
  void open();
  void close();
  void check_records() const;
  // Bytes of the payloads, in `buffer` if they are in a file.
  std::span<const std::byte> part(std::uint64_t offset, size_t bytes, std::vector<std::byte>& buffer) const;
  [[noreturn]] void damaged(const std::string& place) const;

  std::string file_;  // for errors; empty: in memory
  int fd_ = -1;
  std::vector<std::byte> memory_;
  std::span<const std::byte> content_;
  std::int64_t rows_ = 0;
  int vocabulary_ = 0;
  std::vector<std::uint64_t> blocks_;      // offset of the records of each block
  std::vector<Problem> problems_;          // without file
  std::vector<FileNumber> problem_files_;  // of each
  Json properties_;
};

// Writes the rows of a scan in their order. One thread.
class TokenRowsWriter {
 public:
  static constexpr std::int64_t kBlockRows = 4096;
  using Append = std::function<void(std::span<const std::byte>)>;
  TokenRowsWriter(Append append, int vocabulary);
  void add(const ScannedRow& row);
  // Offsets of the records of the complete blocks.
  const std::vector<std::uint64_t>& blocks() const { return blocks_; }
  void finish(const Json& properties);

 private:
  void end_block();
  void put(const void* data, size_t bytes);

  Append append_;
  int vocabulary_;
  std::int64_t rows_ = 0;
  std::uint64_t written_ = 0;
  std::vector<TokenRecord> records_;  // of the block
  std::vector<std::uint64_t> blocks_;
  std::vector<Problem> problems_;
  std::vector<FileNumber> problem_files_;
  std::vector<std::byte> payload_;
  Sha256 sum_;  // of records, blocks and properties
};

// The parts of a payload.
int id_bytes(int vocabulary);
size_t id_bytes(const TokenRecord& record, int vocabulary);
size_t loss_bytes(const TokenRecord& record);
// Tokens with loss among the first `tokens`, if the record alone says so; else count them in its loss bits.
std::optional<std::int64_t> loss_within(const TokenRecord& record, std::int32_t tokens);
std::int64_t loss_within(const TokenRecord& record, std::span<const std::byte> bits, std::int32_t tokens);

// As TokenRows::row().
DataRow data_row(const TokenRecord& record, const DatasetOptions& options,
                 const std::function<std::int64_t(std::int32_t)>& loss_within);

}  // namespace mw::data
