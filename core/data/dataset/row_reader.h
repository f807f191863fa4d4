// SPDX-License-Identifier: Apache-2.0
// Streams the rows of a JSONL file, a JSON array, a JSON object with one array of rows, or a CSV or TSV table; holds
// one row at a time. Errors name file and line. Use each reader on one thread.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"
#include "core/base/sha256.h"
#include "core/data/dataset/data_file.h"

namespace mw::data {

// Records of CSV and TSV files: RFC 4180, with fields that may also contain quotation marks after their first
// character. Thread-safe.

// The way in which the text of a row is parsed.
struct RowSyntax {
  char delimiter = 0;                  // 0: a row is a JSON object
  std::vector<std::string> columns{};  // of a table, in the order of its header
};

// Finds the end of a record that is read line by line.
class RecordEnd {
 public:
  explicit RecordEnd(char delimiter) : delimiter_(delimiter) {}
  // Examines record[from..], where `from` is the end of the text examined before. False: a quoted field is still open,
  // and the record continues with the next line.
  bool is_complete(std::string_view record, size_t from);
  size_t open_quote() const { return open_quote_; }  // its index in the record

 private:
  enum class In { field_start, field, quotes };
  char delimiter_;
  In in_ = In::field_start;
  size_t open_quote_ = 0;
};

// Place of record[at] for an error, where the record starts in `line` of its file: "line 3, column 7".
std::string place_in_record(std::string_view record, size_t at, long line);

// The columns that the header of a table names, and the delimiter: a tab, a comma or, in a CSV file without commas, the
// semicolon or tab that its header has. Throws DATA-FORMAT for a header with a repeated name.
RowSyntax table_syntax(std::string_view header, std::string_view extension, const std::string& file, long line);

// A row as an object of strings. Throws DATA-ROW with line and column if the quotes or the number of fields are wrong.
Json parse_record(std::string_view record, const RowSyntax& syntax, const std::string& file, long line);

inline constexpr size_t kMaxRowBytes = 64u << 20;

// Reads bytes and counts lines; skips a UTF-8 byte order mark.
class ByteReader {
 public:
  static constexpr int kEnd = -1;
  // As DataFile.
  explicit ByteReader(const std::filesystem::path& file, Sha256* sum = nullptr);
  int peek();
  int get();
  bool line(std::string& out);                // without "\n" or "\r\n"; false at the end of the file
  bool append_line(std::string& out);         // as it is, including its end; false at the end of the file
  void seek(long position, long line);        // `line` is the line number at `position`
  long line_number() const { return line_; }  // of the next byte, from 1
  long position() const { return position_; }
  // For the progress, out of size(): of a compressed file, its bytes that are read.
  long stored_position() const { return file_.is_compressed() ? file_.stored_position() : position_; }
  long size() const { return file_.stored_bytes(); }
  const std::string& name() const { return file_.name(); }

 private:
  bool fill();

  DataFile file_;
  std::string buffer_;
  size_t at_ = 0, filled_ = 0;
  long line_ = 1, position_ = 0;
};

struct RawRow {
  std::string text;  // one JSON value or record of a table, unchanged
  long line = 0;     // of its first byte, from 1
  long offset = 0;   // of its first byte
};
// Reads one row again, given its position from an earlier pass.
RawRow read_row_at(const std::filesystem::path& file, long offset, size_t bytes, long line);
// The syntax of the file's rows; reads the header of a table.
RowSyntax row_syntax(const std::filesystem::path& file);

bool is_table(const std::filesystem::path& file);  // by its extension

class RowReader {
 public:
  explicit RowReader(const std::filesystem::path& file, Sha256* sum = nullptr);
  bool next(RawRow& row);  // false after the last
  const RowSyntax& syntax() const { return syntax_; }
  long stored_position() const { return in_.stored_position(); }
  long size() const { return in_.size(); }

 private:
  enum class Layout { lines, array, object, table };
  static Layout detect(const std::filesystem::path& file);
  bool next_line(RawRow& row);
  bool next_element(RawRow& row);
  bool next_record(RawRow& row);
  void read_header();
  void value(std::string* text);  // one balanced value, up to the next , ] or }
  void string(std::string* text);
  void enter_object();
  void finish_object();
  void skip_space();
  [[noreturn]] void fail(const std::string& message, const std::string& expected = {}) const;

  ByteReader in_;
  Layout layout_;
  RowSyntax syntax_;
  bool open_ = false, done_ = false, first_ = true;
};

// Throws DATA-ROW with the line in the file if the row is malformed, not UTF-8, or not an object.
Json parse_row(const RawRow& row, const RowSyntax& syntax, const std::string& file);

}  // namespace mw::data
