// SPDX-License-Identifier: Apache-2.0
// Records of CSV and TSV files: RFC 4180, with fields that may also contain quotation marks after their first
// character. Thread-safe.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"

namespace mw::data {

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

}  // namespace mw::data
