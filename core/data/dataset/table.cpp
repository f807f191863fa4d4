// SPDX-License-Identifier: Apache-2.0
#include "core/data/dataset/table.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/utf8.h"

namespace mw::data {
namespace {

struct TableField {
  std::string text;
  size_t at = 0;  // of its first byte in the record
};

Error record_error(const std::string& message, const std::string& file, std::string place, std::string found,
                   std::string expected, std::string fix) {
  return Error({.id = "DATA-ROW",
                .message = message,
                .file = file,
                .place = std::move(place),
                .found = std::move(found),
                .expected = std::move(expected),
                .fix = std::move(fix)});
}

// The fields of a record, of which the header has no more than one for each of its bytes.
std::vector<TableField> split_record(std::string_view record, char delimiter, const std::string& file, long line) {
  std::vector<TableField> fields;
  for (size_t at = 0;;) {
    TableField field{.text = {}, .at = at};
    size_t end = at;
    if (at < record.size() && record[at] == '"') {
      for (++end;; ++end) {
        const size_t quote = record.find('"', end);
        if (quote == std::string_view::npos)
          throw record_error("a quoted field has no end", file, place_in_record(record, at, line), {},
                             "a closing quotation mark", "close the field, and double quotation marks within it");
        field.text += record.substr(end, quote - end);
        end = quote + 1;
        if (end == record.size() || record[end] != '"') break;
        field.text += '"';
      }
      if (end < record.size() && record[end] != delimiter)
        throw record_error("a quoted field continues after its closing quotation mark", file,
                           place_in_record(record, end, line), excerpt(std::string(record.substr(end, 20))),
                           "the delimiter or the end of the record", "double the quotation marks within the field");
    } else {
      end = std::min(record.find(delimiter, at), record.size());
      field.text = record.substr(at, end - at);
    }
    fields.push_back(std::move(field));
    if (end == record.size()) return fields;
    at = end + 1;
  }
}

// Delimiters outside quotes.
std::ptrdiff_t delimiters_in(std::string_view header, char delimiter) {
  bool quoted = false;
  return std::count_if(header.begin(), header.end(), [&](char c) {
    quoted ^= c == '"';
    return !quoted && c == delimiter;
  });
}

char delimiter_of(std::string_view header, std::string_view extension) {
  if (extension == ".tsv") return '\t';
  for (const char delimiter : {',', ';', '\t'})
    if (delimiters_in(header, delimiter) > 0) return delimiter;
  return ',';
}

}  // namespace

bool RecordEnd::is_complete(std::string_view record, size_t from) {
  for (size_t at = from; at < record.size();) {
    if (in_ == In::field_start) {
      in_ = record[at] == '"' ? In::quotes : In::field;
      if (in_ == In::quotes) open_quote_ = at++;
    } else if (in_ == In::field) {
      const size_t end = record.find(delimiter_, at);
      if (end == std::string_view::npos) return true;
      at = end + 1;
      in_ = In::field_start;
    } else {
      const size_t quote = record.find('"', at);
      if (quote == std::string_view::npos) return false;
      const bool doubled = quote + 1 < record.size() && record[quote + 1] == '"';
      at = quote + (doubled ? 2 : 1);
      if (!doubled) in_ = In::field;
    }
  }
  return in_ != In::quotes;
}

std::string place_in_record(std::string_view record, size_t at, long line) {
  const std::string_view before = record.substr(0, at);
  const size_t start = before.rfind('\n');
  return "line " + std::to_string(line + std::count(before.begin(), before.end(), '\n')) + ", column " +
         std::to_string(start == std::string_view::npos ? at + 1 : at - start);
}

RowSyntax table_syntax(std::string_view header, std::string_view extension, const std::string& file, long line) {
  RowSyntax syntax{.delimiter = delimiter_of(header, extension)};
  for (TableField& field : split_record(header, syntax.delimiter, file, line)) {
    if (first_invalid_utf8(field.text) != std::string::npos)
      throw record_error("the header of the table is not valid UTF-8", file, place_in_record(header, field.at, line),
                         excerpt(field.text), "UTF-8 text", "convert the file: iconv -t UTF-8");
    if (std::find(syntax.columns.begin(), syntax.columns.end(), field.text) != syntax.columns.end())
      throw Error({.id = "DATA-FORMAT",
                   .message = "two columns of the table have the same name",
                   .file = file,
                   .place = place_in_record(header, field.at, line),
                   .found = excerpt(field.text),
                   .expected = "a header with different names",
                   .fix = "rename one of them in the first line"});
    syntax.columns.push_back(std::move(field.text));
  }
  return syntax;
}

Json parse_record(std::string_view record, const RowSyntax& syntax, const std::string& file, long line) {
  std::vector<TableField> fields = split_record(record, syntax.delimiter, file, line);
  const size_t columns = syntax.columns.size();
  if (fields.size() != columns)
    throw record_error("the row and the header have different numbers of fields", file,
                       place_in_record(record, fields.size() > columns ? fields[columns].at : record.size(), line),
                       std::to_string(fields.size()) + " fields", std::to_string(columns),
                       "put fields that contain the delimiter or a line break in quotation marks");
  Json row = Json::object();
  for (size_t i = 0; i < columns; ++i) row[syntax.columns[i]] = std::move(fields[i].text);
  return row;
}

}  // namespace mw::data
