// SPDX-License-Identifier: Apache-2.0
#include "core/data/dataset/scan.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "core/base/rng.h"
#include "core/base/utf8.h"
#include "core/data/dataset/encode.h"
#include "core/data/dataset/record.h"
#include "core/data/dataset/row_reader.h"

namespace mw::data {
namespace {

constexpr std::uint64_t kSplitStream = 0x73706c6974;  // random stream that selects the held-out rows

void check(const DatasetOptions& options) {
  if (options.max_len < 2)
    throw Error({.id = "DATA-LEN",
                 .message = "the maximum row length is too small",
                 .place = "data.max_len",
                 .found = std::to_string(options.max_len),
                 .expected = "at least 2"});
  const auto extension = options.path.extension();
  if (extension == ".csv" || extension == ".tsv" || extension == ".parquet")
    throw Error(
        {.id = "DATA-FORMAT",
         .message = "this file format is not supported",
         .file = options.path.string(),
         .place = "data.path",
         .found = "a " + extension.string() + " file",
         .expected = "JSON Lines (.jsonl), JSON or text",
         .fix = "convert it to JSON Lines: python -c \"import pandas as p; p.read_" +
                (extension == ".parquet" ? std::string("parquet('DATA.parquet')") : std::string("csv('DATA.csv')")) +
                ".to_json('DATA.jsonl', orient='records', lines=True)\""});
}

// .txt, .md and files that do not start like JSON.
bool is_running_text(const DatasetOptions& options) {
  const auto extension = options.path.extension();
  if (options.format != Format::automatic && options.format != Format::text) return false;
  if (extension == ".txt" || extension == ".md") return true;
  if (extension == ".jsonl" || extension == ".ndjson" || extension == ".json") return false;
  ByteReader in(options.path);
  while (in.peek() == ' ' || in.peek() == '\t' || in.peek() == '\r' || in.peek() == '\n') in.get();
  return in.peek() != '{' && in.peek() != '[';
}

// Sets state, split and number of used tokens of an encoded row.
void decide_use(ScannedRow& row, const DatasetOptions& options) {
  const std::vector<std::uint8_t>& loss = row.example.loss;
  const size_t length = loss.size(), limit = static_cast<size_t>(options.max_len);
  const auto has_loss = [&](size_t n) {
    return std::find(loss.begin(), loss.begin() + static_cast<std::ptrdiff_t>(n), 1) !=
           loss.begin() + static_cast<std::ptrdiff_t>(n);
  };
  if (!has_loss(length))
    row.state = RowState::no_loss;
  else if (length <= limit)
    row.state = RowState::ok;
  else if (options.overlong == Overlong::drop)
    row.state = RowState::too_long;
  else
    row.state = has_loss(limit) ? RowState::truncated : RowState::no_loss;  // truncation may remove the answer
  if (row.state != RowState::ok && row.state != RowState::truncated) return;
  row.used = std::min(length, limit);
  row.split = split_of(options, row.example.row);
}

ScannedRow bad_row(Problem problem, const DatasetOptions& options, long line) {
  if (problem.file.empty()) problem.file = options.path.string();
  const std::string where = "line " + std::to_string(line);
  if (problem.place.empty())
    problem.place = where;
  else if (!problem.place.starts_with("line "))
    problem.place = where + ", " + problem.place;
  ScannedRow row;
  row.state = RowState::bad;
  row.example.row = -1;
  row.problem = std::move(problem);
  return row;
}

Format first_format(const Json& json, const DatasetOptions& options, long line) {
  try {
    return detect_format(json, options);
  } catch (const Error& e) {
    Problem p = e.problem();
    p.file = options.path.string();
    p.found = "in line " + std::to_string(line) + " " + p.found;
    throw Error(std::move(p));
  }
}

RowPosition position_of(const RawRow& raw) {
  return {.offset = raw.offset,
          .bytes = static_cast<std::uint32_t>(raw.text.size()),
          .skip = 0,
          .line = static_cast<std::uint32_t>(raw.line)};
}

// Replaces an automatic `format` by the format of the first valid row.
ScannedRow scan_row(const RawRow& raw, std::int64_t number, Format& format, const DatasetOptions& options,
                    const Tokenizer& tokenizer) {
  ScannedRow row;
  try {
    const Json json = parse_row(raw, options.path.string());
    if (format == Format::automatic) format = first_format(json, options, raw.line);
    row.example = encode_record(read_record(json, format, options), options, tokenizer);
    row.example.row = number;
    decide_use(row, options);
  } catch (const Error& e) {
    // These faults concern all rows.
    if (e.kind() != Error::Kind::bad_input || e.problem().id == "DATA-FORMAT" || e.problem().place == "data.chat")
      throw;
    row = bad_row(e.problem(), options, raw.line);
    row.example.row = number;
  }
  row.format = format;
  row.position = position_of(raw);
  return row;
}

// Cuts the tokens of one running text into rows. The text is encoded in blocks that end after a line, if possible after
// a blank line, to bound the memory; no token crosses a block boundary.
class RunningText {
 public:
  RunningText(const DatasetOptions& options, const Tokenizer& tokenizer, const RowSink& sink)
      : options_(options), tokenizer_(tokenizer), sink_(sink), in_(options.path) {}

  void seek(const RowPosition& position, std::int64_t row) {
    in_.seek(static_cast<long>(position.offset), static_cast<long>(position.line));
    skip_ = position.skip;
    row_ = row;
  }

  // Calls `continue_reading` before each block; stops if it returns false.
  void read(const std::function<bool(const ByteReader&)>& continue_reading) {
    constexpr size_t kBlock = 1 << 16, kLargest = 1 << 20;
    start_block();
    for (;;) {
      const RowPosition here = {.offset = in_.position(), .line = static_cast<std::uint32_t>(in_.line_number())};
      if (!in_.line(line_)) break;
      if (const size_t bad = first_invalid_utf8(line_); bad != std::string::npos) {
        emit_bad_row({.id = "DATA-ROW",
                      .message = "the line is not valid UTF-8",
                      .found = "byte " + std::to_string(bad + 1) + " of the line",
                      .expected = "UTF-8 text"},
                     here, static_cast<long>(here.line));
        continue;
      }
      block_ += line_;
      block_ += '\n';
      if ((block_.size() < kBlock || !trim(line_).empty()) && block_.size() < kLargest) continue;
      if (!continue_reading(in_)) return;
      encode_block();
      emit_rows(row_length());
      start_block();
    }
    encode_block();
    emit_rows(1);
    continue_reading(in_);
  }

 private:
  struct Block {
    RowPosition position;
    std::int64_t first = 0;  // index of its first token in the text
  };
  size_t row_length() const { return static_cast<size_t>(options_.max_len) - 1; }  // without bos

  void start_block() {
    blocks_.push_back({{.offset = in_.position(), .line = static_cast<std::uint32_t>(in_.line_number())},
                       taken_ + static_cast<std::int64_t>(ids_.size())});
  }

  void emit_bad_row(Problem problem, const RowPosition& position, long line) {
    ScannedRow row = bad_row(std::move(problem), options_, line);
    row.position = position;
    sink_(std::move(row));
  }

  void encode_block() {
    std::vector<int> more = tokenizer_.encode(block_);
    block_.clear();
    if (std::erase(more, tokenizer_.bos()) > 0) {  // bos may occur only at the start of a row
      emit_bad_row({.id = "TOK-1",
                    .message = "the text contains the beginning-of-text token",
                    .found = tokenizer_.piece(tokenizer_.bos()),
                    .fix = "remove it from the data"},
                   blocks_.back().position, in_.line_number());
    }
    const size_t skipped = std::min(skip_, more.size());
    skip_ -= skipped;
    taken_ += static_cast<std::int64_t>(skipped);
    ids_.insert(ids_.end(), more.begin() + static_cast<std::ptrdiff_t>(skipped), more.end());
  }

  // Emits rows from the front while at least `min_tokens` tokens remain.
  void emit_rows(size_t min_tokens) {
    size_t at = 0;
    while (ids_.size() - at >= min_tokens) {
      const size_t n = std::min(ids_.size() - at, row_length());
      const auto from = ids_.begin() + static_cast<std::ptrdiff_t>(at);
      ScannedRow row;
      row.example.row = row_++;
      row.example.ids.push_back(tokenizer_.bos());
      row.example.ids.insert(row.example.ids.end(), from, from + static_cast<std::ptrdiff_t>(n));
      row.example.loss.assign(row.example.ids.size(), 1);
      row.example.loss[0] = 0;
      const std::int64_t first = taken_ + static_cast<std::int64_t>(at);
      while (blocks_.size() > 1 && blocks_[1].first <= first) blocks_.pop_front();
      row.position = blocks_.front().position;
      row.position.skip = static_cast<std::uint32_t>(first - blocks_.front().first);
      decide_use(row, options_);
      sink_(std::move(row));
      at += n;
    }
    ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(at));
    taken_ += static_cast<std::int64_t>(at);
  }

  const DatasetOptions& options_;
  const Tokenizer& tokenizer_;
  const RowSink& sink_;
  ByteReader in_;
  std::string block_, line_;
  std::deque<Block> blocks_;  // blocks with tokens in ids_, and the current one
  std::vector<int> ids_;      // tokens that are not yet in a row
  std::int64_t taken_ = 0;    // number of tokens before ids_
  std::int64_t row_ = 0;
  size_t skip_ = 0;
};

}  // namespace

Split split_of(const DatasetOptions& options, std::int64_t row) {
  const Rng draw{kSplitStream, options.seed, static_cast<std::uint64_t>(row)};
  return draw.uniform_at(0) < options.eval_fraction ? Split::held_out : Split::train;
}

void scan_rows(const DatasetOptions& options, const Tokenizer& tokenizer, std::stop_token stop,
               const Progress& progress, const RowSink& sink) {
  check(options);
  const auto tick = [&](long done, long total) {
    if (stop.stop_requested()) throw cancelled("reading " + options.path.string());
    if (progress) progress(done, total);
  };
  if (is_running_text(options)) {
    RunningText(options, tokenizer, sink).read([&](const ByteReader& in) {
      tick(in.position(), in.size());
      return true;
    });
    return;
  }
  RowReader reader(options.path);
  RawRow raw;
  Format format = options.format;
  for (std::int64_t row = 0; reader.next(raw); ++row) {
    if (row % 64 == 0) tick(reader.position(), reader.size());
    sink(scan_row(raw, row, format, options, tokenizer));
  }
  tick(reader.size(), reader.size());
}

void add_to_report(const ScannedRow& row, DatasetReport& report) {
  if (row.format != Format::automatic) report.format = row.format;
  if (row.example.row >= 0) ++report.rows;
  report.skipped_bad += row.state == RowState::bad;
  report.no_loss += row.state == RowState::no_loss;
  report.dropped_long += row.state == RowState::too_long;
  report.truncated += row.state == RowState::truncated;
  if (row.used == 0) return;
  ++report.kept;
  report.tokens += static_cast<std::int64_t>(row.used);
  report.loss_tokens += loss_tokens(row);
}

std::int64_t loss_tokens(const ScannedRow& row) {
  const auto& loss = row.example.loss;
  const size_t n = row.used > 0 ? row.used : loss.size();
  return std::count(loss.begin(), loss.begin() + static_cast<std::ptrdiff_t>(n), 1);
}

ScannedRow rescan_row(const DatasetOptions& options, const Tokenizer& tokenizer, const ScannedRow& known) {
  check(options);
  const RowPosition& position = known.position;
  if (position.bytes > 0) {
    Format format = known.format;
    const RawRow raw =
        read_row_at(options.path, static_cast<long>(position.offset), position.bytes, static_cast<long>(position.line));
    return scan_row(raw, known.example.row, format, options, tokenizer);
  }
  std::optional<ScannedRow> found;
  const RowSink sink = [&](ScannedRow row) {
    const bool bad = row.state == RowState::bad;
    if (found || bad != (known.state == RowState::bad) || (bad && row.position.line != position.line)) return;
    found = std::move(row);
    found->position = position;
  };
  RunningText text(options, tokenizer, sink);
  text.seek(position, known.example.row);
  text.read([&](const ByteReader&) { return !found; });
  if (found) return std::move(*found);
  throw Error({.id = "DATA-CHANGED",
               .message = "the file has changed and does not contain the row any more",
               .file = options.path.string(),
               .place = "line " + std::to_string(position.line),
               .fix = "read the file again"});
}

}  // namespace mw::data
