// SPDX-License-Identifier: Apache-2.0
// Streams the rows of a JSONL file, a JSON array, or a JSON object with one array of rows, holding one row at a time.
// One thread per reader. Throws Error naming file and line.
#pragma once
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "core/base/json.h"

namespace mw::data {

inline constexpr size_t kMaxRowBytes = 64u << 20;

// Bytes with line numbers; a UTF-8 byte order mark at the start is skipped.
class ByteReader {
 public:
  static constexpr int kEnd = -1;
  explicit ByteReader(const std::filesystem::path& file);
  int peek();
  int get();
  bool line(std::string& out);                // without its end ("\n" or "\r\n"); false at the end of the file
  void seek(long position, long line);        // `line` is the one that starts or goes on there
  long line_number() const { return line_; }  // 1-based, of the next byte
  long position() const { return position_; }
  long size() const { return size_; }
  const std::string& name() const { return name_; }

 private:
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  bool fill();

  std::string name_, buffer_;
  std::unique_ptr<std::FILE, Close> file_;
  size_t at_ = 0, filled_ = 0;
  long line_ = 1, position_ = 0, size_ = 0;
};

struct RawRow {
  std::string text;  // one JSON value, byte for byte
  long line = 0;     // where it starts, 1-based
  long offset = 0;   // and in bytes
};
// A row that was read before, from where it was then.
RawRow read_row_at(const std::filesystem::path& file, long offset, size_t bytes, long line);

class RowReader {
 public:
  explicit RowReader(const std::filesystem::path& file);
  bool next(RawRow& row);  // false after the last
  long position() const { return in_.position(); }
  long size() const { return in_.size(); }

 private:
  enum class Layout { lines, array, object };
  static Layout detect(const std::filesystem::path& file);
  bool next_line(RawRow& row);
  bool next_element(RawRow& row);
  void value(std::string* text);  // one balanced value, up to the , ] or } after it
  void string(std::string* text);
  void enter_object();
  void finish_object();
  void skip_space();
  [[noreturn]] void fail(const std::string& message, const std::string& expected = {}) const;

  ByteReader in_;
  Layout layout_;
  bool open_ = false, done_ = false, first_ = true;
};

// The row as JSON. Throws Error with the line in the file: malformed, not UTF-8, or not an object.
Json parse_row(const RawRow& row, const std::string& file);

}  // namespace mw::data
