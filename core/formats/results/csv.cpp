// SPDX-License-Identifier: Apache-2.0
#include "core/formats/results/csv.h"

#include <algorithm>
#include <set>

#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/json.h"

namespace mw::formats {
namespace {

[[noreturn]] void bad(const std::string& file, int line, const std::string& message, const std::string& found,
                      const std::string& expected) {
  throw Error("BENCH", message,
              {.file = file,
               .place = "line " + std::to_string(line),
               .found = valid_utf8(found).substr(0, 80),
               .expected = expected});
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : text_(text), file_(file) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;  // byte order mark written by spreadsheets
  }
  bool end() const { return at_ >= text_.size(); }

  CsvTable::Row row() {
    CsvTable::Row row{.line = line_, .cells = {}};
    for (;;) {
      row.cells.push_back(cell());
      if (end()) return row;
      const char c = text_[at_++];
      if (c == ',') continue;
      if (c == '\r' && !end() && text_[at_] == '\n') ++at_;
      ++line_;
      return row;
    }
  }

 private:
  std::string cell() {
    if (end() || text_[at_] != '"') {
      const size_t stop = std::min(text_.find_first_of(",\r\n", at_), text_.size());
      std::string plain(text_.substr(at_, stop - at_));
      at_ = stop;
      return plain;
    }
    const int first_line = line_;
    std::string quoted;
    for (++at_;; ++at_) {
      if (end()) bad(file_, first_line, "a quoted field is not closed", quoted.substr(0, 40), "a closing \"");
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] == '"') {
        if (at_ + 1 >= text_.size() || text_[at_ + 1] != '"') break;
        ++at_;
      }
      quoted += text_[at_];
    }
    ++at_;
    if (!end() && std::string_view(",\r\n").find(text_[at_]) == std::string_view::npos)
      bad(file_, line_, "there is text after a quoted field", std::string(text_.substr(at_, 20)),
          "a comma or the end of the line");
    return quoted;
  }

  std::string_view text_;
  const std::string& file_;
  size_t at_ = 0;
  int line_ = 1;
};

bool is_empty(const CsvTable::Row& row) {
  return row.cells.size() == 1 && row.cells[0].empty();
}

}  // namespace

CsvTable read_csv(std::string_view text, const std::string& file) {
  Reader reader(text, file);
  CsvTable table;
  while (!reader.end()) {
    CsvTable::Row row = reader.row();
    if (is_empty(row)) continue;
    if (table.header.empty()) {
      table.header = std::move(row.cells);
      std::set<std::string> names;
      for (const std::string& name : table.header)
        if (!names.insert(name).second)
          bad(file, row.line, "the name of a column occurs twice", name, "each name once");
      continue;
    }
    if (row.cells.size() != table.header.size())
      bad(file, row.line, "the number of fields differs from the header", counted(row.cells.size(), "field"),
          std::to_string(table.header.size()) + "");
    table.rows.push_back(std::move(row));
  }
  if (table.header.empty()) bad(file, 1, "the file is empty", "", "a line with the names of the columns");
  return table;
}

}  // namespace mw::formats
