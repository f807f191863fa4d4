// SPDX-License-Identifier: Apache-2.0
#include "core/data/dataset/row_reader.h"

#include <cstring>

#include "core/base/error.h"
#include "core/base/input_file.h"
#include "core/base/utf8.h"

namespace mw::data {
namespace {

constexpr size_t kBuffer = 1 << 16;
constexpr size_t kDetect = 1 << 20;  // bytes examined to detect the layout

bool is_space(int c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

Error row_error(const std::string& message, const std::string& file, long line, std::string found = {},
                const std::string& expected = {}) {
  return Error({.id = "DATA-ROW",
                .message = message,
                .file = file,
                .place = "line " + std::to_string(line),
                .found = std::move(found),
                .expected = expected});
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
      throw Error({.id = "DATA-ROW",
                   .message = "a quoted field has no end",
                   .file = in_.name(),
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
