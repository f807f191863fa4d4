// SPDX-License-Identifier: Apache-2.0
#include "core/data/dataset/row_reader.h"

#include <algorithm>
#include <cstring>

#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"

namespace mw::data {
namespace {

struct TableField {
  std::string text;
  size_t at = 0;  // of its first byte in the record
};

Error record_error(const std::string& message, const std::string& file, std::string place, std::string found,
                   std::string expected, std::string fix) {
  return Error("DATA-ROW", message,
               {.file = file,
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
      throw Error("DATA-FORMAT", "two columns of the table have the same name",
                  {.file = file,
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
                       counted(fields.size(), "field"), std::to_string(columns),
                       "put fields that contain the delimiter or a line break in quotation marks");
  Json row = Json::object();
  for (size_t i = 0; i < columns; ++i) row[syntax.columns[i]] = std::move(fields[i].text);
  return row;
}

namespace {

constexpr size_t kBuffer = 1 << 16;
constexpr size_t kDetect = 1 << 20;  // bytes examined to detect the layout

bool is_space(int c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

Error row_error(const std::string& message, const std::string& file, long line, std::string found = {},
                const std::string& expected = {}) {
  return Error(
      "DATA-ROW", message,
      {.file = file, .place = "line " + std::to_string(line), .found = std::move(found), .expected = expected});
}

void strip_line_end(std::string& line) {
  if (line.ends_with('\n')) line.pop_back();
  if (line.ends_with('\r')) line.pop_back();
}

}  // namespace

ByteReader::ByteReader(const std::filesystem::path& file, Sha256* sum) : file_(file, sum), buffer_(kBuffer, '\0') {
  if (!fill()) return;
  at_ = filled_ - without_byte_order_mark({buffer_.data(), filled_}, name()).size();
  position_ = static_cast<long>(at_);
}

bool ByteReader::fill() {
  at_ = 0;
  filled_ = file_.read(buffer_);
  return filled_ > 0;
}

int ByteReader::peek() {
  if (at_ == filled_ && !fill()) return kEnd;
  return static_cast<unsigned char>(buffer_[at_]);
}

int ByteReader::get() {
  const int c = peek();
  if (c == kEnd) return c;
  ++at_;
  ++position_;
  line_ += c == '\n';
  return c;
}

bool ByteReader::append_line(std::string& out) {
  if (peek() == kEnd) return false;
  const size_t before = out.size();
  do {
    const char* start = buffer_.data() + at_;
    const auto* end = static_cast<const char*>(std::memchr(start, '\n', filled_ - at_));
    const size_t n = end ? static_cast<size_t>(end - start) + 1 : filled_ - at_;
    if (out.size() - before + n > kMaxRowBytes)
      throw row_error("the line is too long", name(), line_, {}, "at most " + std::to_string(kMaxRowBytes) + " bytes");
    out.append(start, n);
    at_ += n;
    position_ += static_cast<long>(n);
    if (end) {
      ++line_;
      break;
    }
  } while (peek() != kEnd);
  return true;
}

bool ByteReader::line(std::string& out) {
  out.clear();
  if (!append_line(out)) return false;
  strip_line_end(out);
  return true;
}

void ByteReader::seek(long position, long line) {
  file_.seek(position);
  at_ = filled_ = 0;
  position_ = position;
  line_ = line;
}

RawRow read_row_at(const std::filesystem::path& file, long offset, size_t bytes, long line) {
  ByteReader in(file);
  in.seek(offset, line);
  RawRow row{.text = {}, .line = line, .offset = offset};
  row.text.reserve(bytes);
  while (row.text.size() < bytes && in.peek() != ByteReader::kEnd) row.text.push_back(static_cast<char>(in.get()));
  return row;
}

RowSyntax row_syntax(const std::filesystem::path& file) {
  return is_table(file) ? RowReader(file).syntax() : RowSyntax();
}

bool is_table(const std::filesystem::path& file) {
  const std::string extension = data_extension(file);
  return extension == ".csv" || extension == ".tsv";
}

RowReader::Layout RowReader::detect(const std::filesystem::path& file) {
  if (is_table(file)) return Layout::table;
  ByteReader in(file);
  while (is_space(in.peek())) in.get();
  if (in.peek() == '[') return Layout::array;
  const std::string extension = data_extension(file);
  if (in.peek() != '{' || extension == ".jsonl" || extension == ".ndjson") return Layout::lines;
  // Distinguish one object over several lines from one object per line.
  std::string first;
  while (in.peek() != ByteReader::kEnd && in.peek() != '\n' && first.size() < kDetect)
    first.push_back(static_cast<char>(in.get()));
  if (in.peek() != '\n' || !Json::accept(first)) return Layout::object;
  while (is_space(in.peek())) in.get();
  return in.peek() == ByteReader::kEnd ? Layout::object : Layout::lines;
}

RowReader::RowReader(const std::filesystem::path& file, Sha256* sum) : in_(file, sum), layout_(detect(file)) {
  if (layout_ == Layout::table) read_header();
}

void RowReader::fail(const std::string& message, const std::string& expected) const {
  throw row_error(message, in_.name(), in_.line_number(), {}, expected);
}

void RowReader::skip_space() {
  while (is_space(in_.peek())) in_.get();
}

bool RowReader::next(RawRow& row) {
  if (layout_ == Layout::table) return next_record(row);
  return layout_ == Layout::lines ? next_line(row) : next_element(row);
}

void RowReader::read_header() {
  syntax_.delimiter = data_extension(in_.name()) == ".tsv" ? '\t' : ',';
  RawRow header;
  if (next_record(header)) syntax_ = table_syntax(header.text, data_extension(in_.name()), in_.name(), header.line);
}

bool RowReader::next_record(RawRow& row) {
  for (;;) {
    row.line = in_.line_number();
    row.offset = in_.position();
    row.text.clear();
    RecordEnd end(syntax_.delimiter);
    size_t examined = 0;
    do {
      examined = row.text.size();
      const bool more = examined <= kMaxRowBytes && in_.append_line(row.text);
      if (more) continue;
      if (examined == 0) return false;
      const std::string place = place_in_record(row.text, end.open_quote(), row.line);
      throw Error("DATA-ROW", "a quoted field has no end",
                  {.file = in_.name(),
                   .place = place,
                   .expected = "a closing quotation mark within " + std::to_string(kMaxRowBytes >> 20) + " MiB",
                   .fix = "close the field, and double quotation marks within it"});
    } while (!end.is_complete(row.text, examined));
    strip_line_end(row.text);
    if (row.text.find_first_not_of(" \r") != std::string::npos) return true;
  }
}

bool RowReader::next_line(RawRow& row) {
  for (;;) {
    row.line = in_.line_number();
    row.offset = in_.position();
    if (!in_.line(row.text)) return false;
    if (row.text.find_first_not_of(" \t\r") != std::string::npos) return true;
  }
}

bool RowReader::next_element(RawRow& row) {
  if (done_) return false;
  if (!open_) {
    skip_space();
    if (layout_ == Layout::object)
      enter_object();
    else
      in_.get();
    open_ = true;
  }
  skip_space();
  if (!first_ && in_.peek() == ',') {
    in_.get();
    skip_space();
  } else if (in_.peek() == ']') {
    in_.get();
    done_ = true;
    if (layout_ == Layout::object) finish_object();
    skip_space();
    if (in_.peek() != ByteReader::kEnd) fail("unexpected text after the end of the list");
    return false;
  } else if (!first_) {
    fail("the separator between two rows is missing", "a comma or the end of the list");
  }
  first_ = false;
  row.line = in_.line_number();
  row.offset = in_.position();
  row.text.clear();
  value(&row.text);
  if (row.text.empty()) fail("a row is empty", "an object");
  return true;
}

void RowReader::string(std::string* text) {
  for (bool first = true;; first = false) {
    int c = in_.get();
    if (c == ByteReader::kEnd) fail("the file ends inside a string");
    if (text) text->push_back(static_cast<char>(c));
    if (c == '"' && !first) return;
    if (c == '\\') {
      c = in_.get();
      if (c != ByteReader::kEnd && text) text->push_back(static_cast<char>(c));
    }
    if (text && text->size() > kMaxRowBytes) fail("the row is too long");
  }
}

void RowReader::value(std::string* text) {
  int depth = 0;
  for (;;) {
    const int c = in_.peek();
    if (c == ByteReader::kEnd) fail("the file ends inside a row", "the end of the list");
    if (depth == 0 && (c == ',' || c == ']' || c == '}')) return;
    if (c == '"') {
      string(text);
      continue;
    }
    depth += (c == '{' || c == '[') - (c == '}' || c == ']');
    in_.get();
    if (text) text->push_back(static_cast<char>(c));
    if (text && text->size() > kMaxRowBytes) fail("the row is too long");
  }
}

// Reads up to and including the [ of the member with the rows.
void RowReader::enter_object() {
  in_.get();
  for (;;) {
    skip_space();
    if (in_.peek() != '"') fail("the object contains no list of rows", "one member that is an array of objects");
    string(nullptr);
    skip_space();
    if (in_.get() != ':') fail("not valid JSON", "a colon");
    skip_space();
    if (in_.peek() == '[') {
      in_.get();
      return;
    }
    value(nullptr);
    if (in_.peek() == ',') in_.get();
  }
}

void RowReader::finish_object() {
  for (;;) {
    skip_space();
    const int c = in_.get();
    if (c == '}') return;
    if (c != ',') fail("not valid JSON", "a comma or the end of the object");
    skip_space();
    if (in_.peek() != '"') fail("not valid JSON", "a key");
    string(nullptr);
    skip_space();
    if (in_.get() != ':') fail("not valid JSON", "a colon");
    skip_space();
    if (in_.peek() == '[') fail("the object contains more than one list", "one member that is an array of objects");
    value(nullptr);
  }
}

Json parse_row(const RawRow& row, const RowSyntax& syntax, const std::string& file) {
  const auto fail = [&](const std::string& message, std::string found, const std::string& expected) {
    throw row_error(message, file, row.line, std::move(found), expected);
  };
  if (const size_t bad = first_invalid_utf8(row.text); bad != std::string::npos)
    fail("the row is not valid UTF-8", "byte " + std::to_string(bad + 1) + " of the row", "UTF-8 text");
  if (syntax.delimiter != 0) return parse_record(row.text, syntax, file, row.line);
  Json value;
  try {
    value = parse_json(row.text, file);
  } catch (const Error& e) {  // its line numbers are relative to the row
    Problem p = e.problem();
    p.id = "DATA-ROW";
    p.found = excerpt(p.found);  // may have been cut within a character
    long line = row.line;
    std::string column;
    if (p.place.starts_with("line ")) {
      line += std::strtol(p.place.c_str() + 5, nullptr, 10) - 1;
      column = p.place.substr(std::min(p.place.find(','), p.place.size()));
    }
    p.place = "line " + std::to_string(line) + column;
    throw Error(std::move(p));
  }
  if (!value.is_object()) fail("the row is not an object", excerpt(row.text, 40), "{...}");
  return value;
}

}  // namespace mw::data
