// SPDX-License-Identifier: Apache-2.0
#include "core/data/dataset.h"

#include <algorithm>

#include "core/base/rng.h"
#include "core/data/encode.h"
#include "core/data/record.h"
#include "core/data/rows.h"
#include "core/data/utf8.h"

namespace mw::data {
namespace {

constexpr size_t kMaxProblems = 100;
constexpr std::uint64_t kSplitStream = 0x73706c6974;  // the identity of the numbers that choose the held-out rows

class Loader {
 public:
  Loader(const DatasetOptions& options, const Tokenizer& tokenizer, std::stop_token stop, const Progress& progress)
      : options_(options), tokenizer_(tokenizer), stop_(std::move(stop)), progress_(progress) {
    if (options.max_len < 2)
      throw Error({.id = "DATA-LEN",
                   .message = "rows cannot be that short",
                   .place = "data.max_len",
                   .found = std::to_string(options.max_len),
                   .expected = "at least 2"});
  }

  Dataset load() {
    if (is_running_text())
      read_running_text();
    else
      read_rows();
    refuse_empty();
    return std::move(data_);
  }

 private:
  DatasetReport& report() { return data_.report; }

  // .txt, .md and anything that does not start like JSON.
  bool is_running_text() const {
    const auto extension = options_.path.extension();
    if (options_.format != Format::automatic && options_.format != Format::text) return false;
    if (extension == ".txt" || extension == ".md") return true;
    if (extension == ".jsonl" || extension == ".ndjson" || extension == ".json") return false;
    ByteReader in(options_.path);
    while (in.peek() == ' ' || in.peek() == '\t' || in.peek() == '\r' || in.peek() == '\n') in.get();
    return in.peek() != '{' && in.peek() != '[';
  }

  void tick(long done, long total) const {
    if (stop_.stop_requested()) throw cancelled("reading " + options_.path.string());
    if (progress_) progress_(done, total);
  }

  // A bad row stops the reading or is counted, as asked.
  void bad_row(Problem problem, long line) {
    if (problem.file.empty()) problem.file = options_.path.string();
    const std::string where = "line " + std::to_string(line);
    if (problem.place.empty())
      problem.place = where;
    else if (!problem.place.starts_with("line "))
      problem.place = where + ", " + problem.place;
    if (options_.on_error == OnError::stop) throw Error(std::move(problem));
    ++report().skipped_bad;
    if (report().problems.size() < kMaxProblems) report().problems.push_back(std::move(problem));
  }

  void read_rows() {
    RowReader reader(options_.path);
    RawRow raw;
    bool known = false;
    for (std::int64_t row = 0; reader.next(raw); ++row) {
      if (row % 64 == 0) tick(reader.position(), reader.size());
      ++report().rows;
      try {
        const Json json = parse_row(raw, options_.path.string());
        if (!known) {
          report().format = first_format(json, raw.line);
          known = true;
        }
        Example example = encode_record(read_record(json, report().format, options_), options_, tokenizer_);
        example.row = row;
        keep(std::move(example));
      } catch (const Error& e) {
        // What no later row can mend stops in any case.
        if (e.kind() != Error::Kind::bad_input || e.problem().id == "DATA-FORMAT" || e.problem().place == "data.chat")
          throw;
        bad_row(e.problem(), raw.line);
      }
    }
    tick(reader.size(), reader.size());
  }
  Format first_format(const Json& row, long line) const {
    try {
      return detect_format(row, options_);
    } catch (const Error& e) {
      Problem p = e.problem();
      p.file = options_.path.string();
      p.found = "in line " + std::to_string(line) + " " + p.found;
      throw Error(std::move(p));
    }
  }

  void keep(Example example) {
    const auto limit = static_cast<size_t>(options_.max_len);
    const auto has_loss = [&] { return std::find(example.loss.begin(), example.loss.end(), 1) != example.loss.end(); };
    if (!has_loss()) {
      ++report().no_loss;
      return;
    }
    if (example.ids.size() > limit) {
      if (options_.overlong == Overlong::drop) {
        ++report().dropped_long;
        return;
      }
      example.ids.resize(limit);
      example.loss.resize(limit);
      if (!has_loss()) {  // the answer was behind the cut
        ++report().no_loss;
        return;
      }
      ++report().truncated;
    }
    ++report().kept;
    report().tokens += static_cast<std::int64_t>(example.ids.size());
    report().loss_tokens += std::count(example.loss.begin(), example.loss.end(), 1);
    const Rng draw{kSplitStream, options_.seed, static_cast<std::uint64_t>(example.row)};
    const bool held_out = draw.uniform_at(0) < options_.eval_fraction;
    (held_out ? data_.eval : data_.train).push_back(std::move(example));
  }

  // Encoded in blocks that end after a line end (after a blank line where one comes), so that a file of any size
  // needs little memory; a token never lies across a block's end.
  void read_running_text() {
    constexpr size_t kBlock = 1 << 16, kLargest = 1 << 20;
    report().format = Format::text;
    ByteReader in(options_.path);
    std::string block, line;
    std::vector<int> ids;
    for (;;) {
      const long number = in.line_number();
      if (!in.line(line)) break;
      if (const size_t bad = first_invalid_utf8(line); bad != std::string::npos) {
        bad_row({.id = "DATA-ROW",
                 .message = "not valid UTF-8",
                 .found = "byte " + std::to_string(bad + 1) + " of the line",
                 .expected = "UTF-8 text"},
                number);
        continue;
      }
      block += line;
      block += '\n';
      const bool blank = trim(line).empty();
      if ((block.size() >= kBlock && blank) || block.size() >= kLargest) {
        tick(in.position(), in.size());
        encode_block(block, in.line_number(), ids);
      }
    }
    encode_block(block, in.line_number(), ids);
    emit_chunks(ids, 1);
    tick(in.size(), in.size());
  }
  void encode_block(std::string& block, long line, std::vector<int>& ids) {
    std::vector<int> more = tokenizer_.encode(block);
    if (std::erase(more, tokenizer_.bos()) > 0)  // kept out, so that bos stands at the start of an example only
      bad_row({.id = "TOK-1",
               .message = "the text holds the beginning-of-text token",
               .found = tokenizer_.piece(tokenizer_.bos()),
               .fix = "remove it from the data"},
              line);
    block.clear();
    ids.insert(ids.end(), more.begin(), more.end());
    emit_chunks(ids, static_cast<size_t>(options_.max_len) - 1);
  }
  // Takes examples off the front of `ids` while at least `least` tokens are there.
  void emit_chunks(std::vector<int>& ids, size_t least) {
    size_t at = 0;
    while (ids.size() - at >= least) {
      const size_t n = std::min(ids.size() - at, static_cast<size_t>(options_.max_len) - 1);
      Example example;
      example.row = report().rows++;
      example.ids.push_back(tokenizer_.bos());
      example.ids.insert(example.ids.end(), ids.begin() + static_cast<std::ptrdiff_t>(at),
                         ids.begin() + static_cast<std::ptrdiff_t>(at + n));
      example.loss.assign(example.ids.size(), 1);
      example.loss[0] = 0;
      keep(std::move(example));
      at += n;
    }
    ids.erase(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(at));
  }

  void refuse_empty() {
    if (!data_.train.empty()) return;
    const DatasetReport& r = report();
    std::string found = std::to_string(r.rows) + " rows";
    const auto add = [&](std::int64_t n, const std::string& what) {
      if (n > 0) found += ", " + std::to_string(n) + " " + what;
    };
    add(r.dropped_long, "longer than " + std::to_string(options_.max_len) + " tokens");
    add(r.skipped_bad, "malformed");
    add(r.no_loss, "without anything to learn");
    add(static_cast<std::int64_t>(data_.eval.size()), "held out for evaluation");
    if (!r.problems.empty()) found += "; first: " + r.problems.front().place + ": " + r.problems.front().message;
    throw Error({.id = "DATA-EMPTY",
                 .message = "no usable row to train on",
                 .file = options_.path.string(),
                 .place = "data.path",
                 .found = found,
                 .expected = "at least one row",
                 .fix = r.dropped_long > 0 ? "raise data.max_len or set data.overlong to truncate"
                                           : "check the file and data.format"});
  }

  const DatasetOptions& options_;
  const Tokenizer& tokenizer_;
  std::stop_token stop_;
  const Progress& progress_;
  Dataset data_;
};

}  // namespace

Dataset load_dataset(const DatasetOptions& options, const Tokenizer& tokenizer, std::stop_token stop,
                     const Progress& progress) {
  return Loader(options, tokenizer, std::move(stop), progress).load();
}

}  // namespace mw::data
