// SPDX-License-Identifier: Apache-2.0
#include "core/data/dataset/scan.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <optional>
#include <thread>

#include "core/base/counted.h"
#include "core/base/ordered_work.h"
#include "core/base/rng.h"
#include "core/base/text.h"
#include "core/data/dataset/record.h"
#include "core/data/dataset/row_reader.h"

namespace mw::data {
namespace {

constexpr long kChunk = 1 << 18;                      // bytes of rows that one thread encodes at a time
constexpr std::uint64_t kSplitStream = 0x73706c6974;  // random stream that selects the held-out rows

// The command that converts a Parquet file. It passes the names as arguments, because the shell and Python quote
// differently.
std::string conversion_of(const std::filesystem::path& file) {
  std::filesystem::path parquet = file;
  const bool compressed = lower_case(file.extension().string()) != ".parquet";
  if (compressed) parquet.replace_extension();
  std::filesystem::path lines = parquet;
  lines.replace_extension(".jsonl");
  return std::string(compressed ? "decompress it, then convert" : "convert") +
         " it to JSON Lines: python -c \"import pandas, sys; pandas.read_parquet(sys.argv[1])"
         ".to_json(sys.argv[2], orient='records', lines=True)\" " +
         shell_quoted(parquet.string()) + " " + shell_quoted(lines.string());
}

void check(const DatasetOptions& options) {
  if (options.max_len < 2)
    throw Error("DATA-LEN", "the maximum row length is too small",
                {.place = "data.max_len", .found = std::to_string(options.max_len), .expected = "at least 2"});
  if (data_extension(options.path) == ".parquet")
    throw Error("DATA-FORMAT", "Parquet files are not supported",
                {.file = options.path.string(),
                 .place = "data.path",
                 .found = "a .parquet file",
                 .expected = "JSON Lines (.jsonl), JSON, CSV, TSV or text",
                 .fix = conversion_of(options.path)});
}

// Sets state, split and number of used tokens of an encoded row.
void decide_use(ScannedRow& row, const DatasetOptions& options) {
  const std::vector<std::uint8_t>& loss = row.example.loss;
  DataRow decided{.place = row.position, .row = row.example.row, .tokens = static_cast<std::int32_t>(loss.size())};
  decide_use(decided, options, [&](std::int32_t n) { return std::count(loss.begin(), loss.begin() + n, 1); });
  row.state = decided.state;
  row.split = decided.split;
  row.used = static_cast<size_t>(decided.used);
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

options::Format first_format(const Json& json, const DatasetOptions& options, long line) {
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

// A file of the dataset and the options with its path.
struct FileOptions {
  DatasetOptions options;
  FileNumber number;
};
FileOptions file_options(const DatasetOptions& options, const NumberedFile& file) {
  FileOptions one{.options = options, .number = file.number};
  one.options.path = file.path;
  check(one.options);
  return one;
}

// Replaces an automatic `format` by the format of the first valid row.
ScannedRow scan_row(const RawRow& raw, const RowSyntax& syntax, std::int64_t number, options::Format& format,
                    const FileOptions& file, const Tokenizer& tokenizer) {
  const DatasetOptions& options = file.options;
  ScannedRow row;
  try {
    const Json json = parse_row(raw, syntax, options.path.string());
    if (format == options::Format::automatic) format = first_format(json, options, raw.line);
    row.example = encode_record(read_record(json, format, options), options, tokenizer);
    row.example.row = number;
    row.position.file = file.number;
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
  row.position.file = file.number;
  return row;
}

// Chunks in work at a time: enough for all threads while the results are taken.
size_t most_pending(int threads) {
  return static_cast<size_t>(2 * threads + 1);
}

// No threads for a file that is read in a moment.
int threads_for(long bytes) {
  return bytes < kChunk ? 0 : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// Cuts the tokens of one running text into rows. The text is encoded in blocks that end after a line, if possible after
// a blank line, to bound the memory; no token crosses a block boundary.
class RunningText {
 public:
  RunningText(const FileOptions& file, std::int64_t first_row, const Tokenizer& tokenizer, const RowSink& sink,
              Sha256* sum = nullptr)
      : options_(file.options),
        number_(file.number),
        tokenizer_(tokenizer),
        sink_(sink),
        in_(options_.path, sum),
        row_(first_row) {}

  long size() const { return in_.size(); }
  std::int64_t next_row() const { return row_; }
  void seek(const RowPosition& position, std::int64_t row) {
    in_.seek(static_cast<long>(position.offset), static_cast<long>(position.line));
    skip_ = position.skip;
    row_ = row;
  }

  // Calls `continue_reading` with the offset after a block before its rows; stops if it returns false.
  void read(const std::function<bool(long)>& continue_reading, int threads) {
    OrderedWork<EncodedBlock> work(threads);
    for (bool more = true;;) {
      while (more && work.pending() < most_pending(threads)) {
        TextBlock block;
        more = read_block(block);
        work.give([this, block = std::move(block)]() mutable {
          EncodedBlock encoded{.block = {}, .ids = tokenizer_.encode(block.text)};
          block.text = {};
          encoded.block = std::move(block);
          return encoded;
        });
      }
      EncodedBlock encoded = work.take();
      const bool last = !more && work.pending() == 0;
      if (!continue_reading(encoded.block.end)) return;
      take_block(std::move(encoded));
      emit_rows(last ? 1 : row_length());
      if (last) return;
    }
  }

 private:
  struct TextBlock {
    RowPosition position;
    std::string text;
    std::vector<ScannedRow> bad_lines;
    long end = 0, end_line = 0;  // stored position and line after the block
  };
  struct EncodedBlock {
    TextBlock block;
    std::vector<int> ids;
  };
  struct BlockStart {
    RowPosition position;
    std::int64_t first = 0;  // index of its first token in the text
  };
  size_t row_length() const { return static_cast<size_t>(options_.max_len) - 1; }  // without bos
  RowPosition here() const {
    return {.offset = in_.position(), .line = static_cast<std::uint32_t>(in_.line_number()), .file = number_};
  }

  // False at the end of the file; the block may then be empty.
  bool read_block(TextBlock& block) {
    constexpr size_t kBlock = 1 << 16, kLargest = 1 << 20;
    block.position = here();
    bool more = true;
    for (;;) {
      const RowPosition at = here();
      if (!(more = in_.line(line_))) break;
      if (const size_t bad = first_invalid_utf8(line_); bad != std::string::npos) {
        block.bad_lines.push_back(bad_line({.id = "DATA-ROW",
                                            .message = "the line is not valid UTF-8",
                                            .found = "byte " + std::to_string(bad + 1) + " of the line",
                                            .expected = "UTF-8 text"},
                                           at, static_cast<long>(at.line)));
        continue;
      }
      block.text += line_;
      block.text += '\n';
      if ((block.text.size() >= kBlock && trim(line_).empty()) || block.text.size() >= kLargest) break;
    }
    block.end = in_.stored_position();
    block.end_line = in_.line_number();
    return more;
  }

  ScannedRow bad_line(Problem problem, const RowPosition& position, long line) const {
    ScannedRow row = bad_row(std::move(problem), options_, line);
    row.position = position;
    return row;
  }

  void take_block(EncodedBlock encoded) {
    const TextBlock& block = encoded.block;
    std::vector<int>& more = encoded.ids;
    blocks_.push_back({block.position, taken_ + static_cast<std::int64_t>(ids_.size())});
    for (ScannedRow& bad : encoded.block.bad_lines) sink_(std::move(bad));
    if (std::erase(more, tokenizer_.bos()) > 0) {  // bos may occur only at the start of a row
      sink_(bad_line({.id = "TOK-1",
                      .message = "the text contains the beginning-of-text token",
                      .found = tokenizer_.piece(tokenizer_.bos()),
                      .fix = "remove it from the data"},
                     block.position, block.end_line));
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
  FileNumber number_;
  const Tokenizer& tokenizer_;
  const RowSink& sink_;
  ByteReader in_;
  std::string line_;
  std::deque<BlockStart> blocks_;  // blocks with tokens in ids_, and the current one
  std::vector<int> ids_;           // tokens that are not yet in a row
  std::int64_t taken_ = 0;         // number of tokens before ids_
  std::int64_t row_;
  size_t skip_ = 0;
};

// Encodes the rows of JSON or of a table on all cores, in chunks.
class RowScan {
 public:
  RowScan(const FileOptions& file, std::int64_t first_row, const Tokenizer& tokenizer, Sha256* sum)
      : file_(file),
        tokenizer_(tokenizer),
        reader_(file.options.path, sum),
        format_(file.options.format),
        row_(first_row) {}

  long size() const { return reader_.size(); }
  std::int64_t next_row() const { return row_; }

  // Calls tick(offset, size) before each chunk of rows.
  template <class Tick>
  void read(const RowSink& sink, const Tick& tick) {
    detect_format(sink, tick);
    const int threads = threads_for(size());
    OrderedWork<ScannedChunk> work(threads);
    const auto most = static_cast<long>(most_pending(threads)) * kChunk;  // bounds the memory for very large rows
    std::exception_ptr unreadable;                                        // reported after the rows before it
    for (bool more = true;;) {
      while (more && pending_ < most) {
        RawChunk chunk;
        more = read_chunk(chunk, unreadable);
        pending_ += chunk.bytes;
        work.give([this, chunk = std::move(chunk)] { return scanned(chunk); });
      }
      if (work.pending() == 0) break;
      ScannedChunk chunk = work.take();
      pending_ -= chunk.bytes;
      tick(chunk.end, size());
      for (ScannedRow& row : chunk.rows) sink(std::move(row));
      if (chunk.failure) std::rethrow_exception(chunk.failure);
    }
    if (unreadable) std::rethrow_exception(unreadable);
  }

 private:
  struct RawChunk {
    std::vector<RawRow> rows;
    std::int64_t first = 0;   // number of the first row
    long bytes = 0, end = 0;  // of the rows; stored position after the chunk
  };
  struct ScannedChunk {
    std::vector<ScannedRow> rows;
    long bytes = 0, end = 0;
    std::exception_ptr failure;  // a fault of all rows, found after `rows`
  };
  // The first valid row determines the format.
  template <class Tick>
  void detect_format(const RowSink& sink, const Tick& tick) {
    RawRow raw;
    while (format_ == options::Format::automatic && reader_.next(raw)) {
      if (row_ % 64 == 0) tick(reader_.stored_position(), size());
      sink(scan_row(raw, reader_.syntax(), row_++, format_, file_, tokenizer_));
    }
  }

  // False at the end of the file, or where it cannot be read on.
  bool read_chunk(RawChunk& chunk, std::exception_ptr& unreadable) {
    chunk.first = row_;
    RawRow raw;
    try {
      while (chunk.bytes < kChunk) {
        const bool more = reader_.next(raw);
        chunk.end = reader_.stored_position();
        if (!more) return false;
        chunk.bytes += static_cast<long>(raw.text.size());
        chunk.rows.push_back(std::move(raw));
        ++row_;
      }
      return true;
    } catch (const Error&) {
      unreadable = std::current_exception();
      return false;
    }
  }

  ScannedChunk scanned(const RawChunk& chunk) const {
    ScannedChunk out;
    out.bytes = chunk.bytes;
    out.end = chunk.end;
    out.rows.reserve(chunk.rows.size());
    options::Format format = format_;
    try {
      for (const RawRow& raw : chunk.rows)
        out.rows.push_back(
            scan_row(raw, reader_.syntax(), chunk.first + std::ssize(out.rows), format, file_, tokenizer_));
    } catch (const Error&) {
      out.failure = std::current_exception();
    }
    return out;
  }

  const FileOptions& file_;
  const Tokenizer& tokenizer_;
  RowReader reader_;
  options::Format format_;
  std::int64_t row_;  // number of the next row
  long pending_ = 0;  // bytes of the chunks in work
};

// .txt, .md and files that do not start like JSON.
bool is_running_text(const std::filesystem::path& file, options::Format format) {
  const std::string extension = data_extension(file);
  if (format != options::Format::automatic && format != options::Format::text) return false;
  if (extension == ".txt" || extension == ".md") return true;
  if (extension == ".jsonl" || extension == ".ndjson" || extension == ".json") return false;
  if (is_table(file)) return false;
  ByteReader in(file);
  while (in.peek() == ' ' || in.peek() == '\t' || in.peek() == '\r' || in.peek() == '\n') in.get();
  return in.peek() != '{' && in.peek() != '[';
}

// Reads one file; returns the number of the next row.
std::int64_t scan_file(const FileOptions& file, std::int64_t first_row, const Tokenizer& tokenizer,
                       const CountProgress& tick, const RowSink& sink, Sha256* sum) {
  if (is_running_text(file.options.path, file.options.format)) {
    RunningText text(file, first_row, tokenizer, sink, sum);
    const auto ticking = [&](long done) {
      tick(done, text.size());
      return true;
    };
    text.read(ticking, threads_for(text.size()));
    return text.next_row();
  }
  RowScan scan(file, first_row, tokenizer, sum);
  tick(0, scan.size());
  scan.read(sink, tick);
  tick(scan.size(), scan.size());
  return scan.next_row();
}

}  // namespace

bool is_running_text(const DatasetOptions& options) {
  const std::vector<NumberedFile> files = data_files(options);
  return std::any_of(files.begin(), files.end(),
                     [&](const NumberedFile& file) { return is_running_text(file.path, options.format); });
}

Split split_of(const DatasetOptions& options, std::int64_t row, FileNumber file) {
  if (!options.eval_path.empty()) return file.held_out ? Split::held_out : Split::train;
  const Rng draw{kSplitStream, options.seed, static_cast<std::uint64_t>(row)};
  return draw.uniform_at(0) < options.random_share_held_out() ? Split::held_out : Split::train;
}

void scan_rows(const DatasetOptions& options, const Tokenizer& tokenizer, std::stop_token stop,
               const CountProgress& progress, const RowSink& sink, Sha256* sum) {
  const std::vector<NumberedFile> files = data_files(options);
  long before = 0, total = 0, now = 0;  // bytes
  std::error_code missing;              // reported by reading
  for (const NumberedFile& file : files)
    if (const auto bytes = std::filesystem::file_size(file.path, missing); !missing) total += static_cast<long>(bytes);
  const auto tick = [&](long done, long) {
    if (stop.stop_requested()) throw cancelled("reading " + options.path.string());
    now = before + done;
    if (progress) progress(now, total);
  };
  std::int64_t row = 0;
  for (const NumberedFile& file : files) {
    const FileOptions one = file_options(options, file);
    row = scan_file(one, row, tokenizer, tick, sink, sum);
    before = now;
  }
}

DataRow data_row(const ScannedRow& scanned) {
  return {.state = scanned.state,
          .split = scanned.split,
          .format = scanned.format,
          .place = scanned.position,
          .row = scanned.example.row,
          .tokens = static_cast<std::int32_t>(scanned.example.ids.size()),
          .used = static_cast<std::int32_t>(scanned.used),
          .loss_tokens = static_cast<std::int32_t>(loss_tokens(scanned))};
}

void decide_use(DataRow& row, const DatasetOptions& options,
                const std::function<std::int64_t(std::int32_t)>& loss_within) {
  row.used = 0;
  row.split = Split::train;
  row.loss_tokens = static_cast<std::int32_t>(loss_within(row.tokens));
  if (row.loss_tokens == 0)
    row.state = RowState::no_loss;
  else if (row.tokens <= options.max_len)
    row.state = RowState::ok;
  else if (options.overlong == options::Overlong::drop)
    row.state = RowState::too_long;
  else  // truncation may remove the answer
    row.state = loss_within(options.max_len) > 0 ? RowState::truncated : RowState::no_loss;
  if (row.state != RowState::ok && row.state != RowState::truncated) return;
  row.used = std::min(row.tokens, options.max_len);
  row.split = split_of(options, row.row, row.place.file);
  if (row.state == RowState::truncated) row.loss_tokens = static_cast<std::int32_t>(loss_within(row.used));
}

void add_to_report(const DataRow& row, DatasetReport& report) {
  if (row.format != options::Format::automatic) report.format = row.format;
  if (row.row >= 0) ++report.rows;
  report.skipped_bad += row.state == RowState::bad;
  report.no_loss += row.state == RowState::no_loss;
  report.dropped_long += row.state == RowState::too_long;
  report.truncated += row.state == RowState::truncated;
  report.dropped_repeated += row.state == RowState::repeated;
  report.dropped_held_out += row.state == RowState::in_held_out;
  if (row.used == 0) return;
  ++report.kept;
  report.tokens += row.used;
  report.loss_tokens += row.loss_tokens;
}

void refuse_empty(const DatasetOptions& options, const DatasetReport& r, std::int64_t held_out) {
  if (r.kept > held_out) return;
  std::string found = counted(r.rows, "row");
  const auto add = [&](std::int64_t n, const std::string& what) {
    if (n > 0) found += ", " + std::to_string(n) + " " + what;
  };
  add(r.dropped_long, "longer than " + counted(options.max_len, "token"));
  add(r.skipped_bad, "malformed");
  add(r.no_loss, "without tokens that carry loss");
  add(r.dropped_held_out, "dropped because the held-out rows contain them");
  add(held_out, "held out for evaluation");
  if (!r.problems.empty()) found += "; first: " + r.problems.front().place + ": " + r.problems.front().message;
  throw Error(
      "DATA-EMPTY", "the data has no usable row to train on",
      {.file = options.path.string(),
       .place = "data.path",
       .found = found,
       .expected = "at least one row",
       .fix = r.dropped_long > 0       ? "raise data.max_len or set data.overlong to truncate"
              : r.dropped_held_out > 0 ? "remove the training rows from the evaluation file, or set data.dedup to false"
                                       : "check the file and data.format"});
}

std::int64_t loss_tokens(const ScannedRow& row) {
  const auto& loss = row.example.loss;
  const size_t n = row.used > 0 ? row.used : loss.size();
  return std::count(loss.begin(), loss.begin() + static_cast<std::ptrdiff_t>(n), 1);
}

ScannedRow rescan_row(const DatasetOptions& options, const Tokenizer& tokenizer, const ScannedRow& known) {
  const RowPosition& position = known.position;
  const FileOptions file = file_options(options, {position.file, data_file(options, position.file)});
  if (position.bytes > 0) {
    options::Format format = known.format;
    const RawRow raw = read_row_at(file.options.path, static_cast<long>(position.offset), position.bytes,
                                   static_cast<long>(position.line));
    return scan_row(raw, row_syntax(file.options.path), known.example.row, format, file, tokenizer);
  }
  std::optional<ScannedRow> found;
  const RowSink sink = [&](ScannedRow row) {
    const bool bad = row.state == RowState::bad;
    if (found || bad != (known.state == RowState::bad) || (bad && row.position.line != position.line)) return;
    found = std::move(row);
    found->position = position;
  };
  RunningText text(file, known.example.row, tokenizer, sink);
  text.seek(position, known.example.row);
  text.read([&](long) { return !found; }, 0);
  if (found) return std::move(*found);
  throw Error("DATA-CHANGED", "the file has changed and does not contain the row any more",
              {.file = file.options.path.string(),
               .place = "line " + std::to_string(position.line),
               .fix = "read the file again"});
}

}  // namespace mw::data
