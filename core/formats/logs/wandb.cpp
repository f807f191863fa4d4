// SPDX-License-Identifier: Apache-2.0
// LevelDB log blocks with W&B's header and Record messages; chunks have a CRC-32/IEEE of type and payload.
#include "core/formats/logs/wandb.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/protobuf.h"
#include "core/formats/logs/log_readers.h"
#include "core/formats/safetensors/safetensors.h"

namespace mw::formats {
namespace {

constexpr size_t kBlock = 32 << 10, kHeader = 7;
constexpr std::uint64_t kMostDatastore = 1ull << 30;  // bytes

std::uint32_t crc32(std::string_view bytes) {
  static const auto kTable = [] {
    std::array<std::uint32_t, 256> t{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0xedb88320u : 0);
      t[i] = crc;
    }
    return t;
  }();
  std::uint32_t crc = 0xffffffff;
  for (const char c : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return ~crc;
}

// Field numbers of wandb/proto/wandb_internal.proto, equal in versions 0.12 to 0.31.
enum RecordField : std::uint32_t { kHistory = 2, kSummary = 3, kStats = 7, kOutputRaw = 13, kExit = 18 };

// "train/loss" of {"key"}, "eval.loss" of {"nested_key": ["eval", "loss"]}; the value as JSON text.
struct Item {
  std::string key, value;
};
Item item_of(std::string_view message) {
  Item item;
  std::string nested;
  ProtoReader reader(message);
  while (const auto f = reader.next()) {
    if (f->wire != 2) continue;
    if (f->number == 1) item.key = valid_utf8(f->bytes);
    if (f->number == 2) nested += (nested.empty() ? "" : ".") + valid_utf8(f->bytes);
    if (f->number == 16) item.value = std::string(f->bytes);
  }
  if (item.key.empty()) item.key = nested;
  return item;
}

// Non-finite numbers become these strings, which W&B's server uses as well.
SortedJson value_of(const std::string& text) {
  constexpr PythonNumbers kAsText{.nan = "\"NaN\"", .minus_infinity = "\"-Infinity\"", .infinity = "\"Infinity\""};
  const bool words = text.find("NaN") != std::string::npos || text.find("Infinity") != std::string::npos;
  return SortedJson::parse(words ? without_python_numbers(text, kAsText) : text, nullptr, false);
}

std::optional<double> number_in(const SortedJson& value) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (value.is_number()) return value.get<double>();
  if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (value == "Infinity") return kInfinity;
  if (value == "-Infinity") return -kInfinity;
  return std::nullopt;
}

// One row of the history: numbers by name, and names of other values.
struct Row {
  std::vector<std::pair<std::string, double>> numbers;
  std::vector<std::string> media;  // names of objects with a _type: histograms, images, tables
  std::vector<std::string> others;

  // A nested value is one object up to version 0.17 and one item per member later; both give "eval.loss".
  void add(const std::string& name, const SortedJson& value, int depth = 0) {
    constexpr int kMostDepth = 16;
    constexpr std::string_view kType = "._type";
    if (value.is_object() && value.contains("_type")) {
      media.push_back(name);
    } else if (value.is_object() && depth < kMostDepth) {
      for (const auto& [key, member] : value.items()) add(name + "." + key, member, depth + 1);
    } else if (name.ends_with(kType)) {
      media.push_back(name.substr(0, name.size() - kType.size()));
    } else if (const auto number = number_in(value)) {
      numbers.emplace_back(name, *number);
    } else {
      others.push_back(name);
    }
  }
  bool in_media(const std::string& name) const {
    return std::any_of(media.begin(), media.end(), [&](const std::string& m) { return name.starts_with(m + "."); });
  }
};

// Other contents of a file, for the message that it has no scalars.
struct Contents {
  size_t rows = 0, summaries = 0, system_rows = 0, console = 0;
  std::set<std::string> media, others;

  void add_names(const Row& row) {
    constexpr size_t kMostNames = 100;
    for (const std::string& name : row.media)
      if (media.size() < kMostNames) media.insert(name);
    for (const std::string& name : row.others)
      if (others.size() < kMostNames && !row.in_media(name) && !name.starts_with("_")) others.insert(name);
  }
  std::vector<std::string> list() const {
    std::vector<std::string> all;
    const auto add = [&](size_t n, const char* what, const std::string& names) {
      if (n > 0) all.push_back(std::to_string(n) + " " + what + (names.empty() ? "" : " (" + names + ")"));
    };
    add(rows, "rows of history", "");
    add(media.size(), "histograms, images or tables", join_names(media));
    add(others.size(), "values that are not numbers", join_names(others));
    add(summaries, "updates of the summary", "");
    add(system_rows, "rows of system metrics", "");
    add(console, "pieces of console output", "");
    return all;
  }
};

void add_history(std::string_view message, RunLog& log, Contents& contents) {
  Row row;
  long step = -1;
  double wall = 0;
  ProtoReader reader(message);
  while (const auto f = reader.next()) {
    if (f->number == 2 && f->wire == 2) {
      ProtoReader number(f->bytes);
      while (const auto n = number.next())
        if (n->number == 1 && n->wire == 0) step = static_cast<long>(n->value);
    }
    if (f->number != 1 || f->wire != 2) continue;
    const Item item = item_of(f->bytes);
    const SortedJson value = value_of(item.value);
    if (item.key == "_step" && value.is_number()) step = static_cast<long>(std::clamp(value.get<double>(), 0.0, 9e18));
    if (item.key == "_timestamp" && value.is_number()) wall = value.get<double>();
    if (item.key == "_runtime" && value.is_number()) log.seconds = std::max(log.seconds, value.get<double>());
    if (!item.key.starts_with("_")) row.add(item.key, value);
  }
  ++contents.rows;
  contents.add_names(row);
  for (const auto& [key, value] : row.numbers)
    if (!row.in_media(key)) log.scalars.push_back({usual_name(key), std::max(0L, step), value, wall});
}

void add_record(std::string_view record, RunLog& log, Contents& contents) {
  ProtoReader reader(record);
  while (const auto f = reader.next()) {
    if (f->number == kHistory && f->wire == 2) add_history(f->bytes, log, contents);
    contents.summaries += f->number == kSummary;
    contents.system_rows += f->number == kStats;
    contents.console += f->number == kOutputRaw;
    log.finished |= f->number == kExit;
  }
  if (reader.damaged()) log.notes.push_back("a record could not be read and was skipped");
}

}  // namespace

struct WandbFile::State {
  std::filesystem::path file;
  RunLog log;
  Contents contents{};
  std::string record{};      // chunks of an incomplete record
  std::uint64_t offset = 0;  // of the first byte that was not read
  bool damaged = false;
};

WandbFile::WandbFile(std::filesystem::path file)
    : state_(std::make_unique<State>(
          State{.file = std::move(file), .log = {.name = {}, .tool = "W&B", .scalars = {}, .notes = {}}})) {
  state_->log.name = state_->file.parent_path().filename().string();
}
WandbFile::~WandbFile() = default;

const RunLog& WandbFile::log() const {
  return state_->log;
}

std::vector<Scalar> WandbFile::read_more() {
  State& s = *state_;
  const PreadFile file(s.file);
  if (file.size() > kMostDatastore)
    throw Error("LOG", "the file of W&B is too large",
                {.file = s.file.string(),
                 .found = std::to_string(file.size()) + " bytes",
                 .expected = "at most " + std::to_string(kMostDatastore)});
  if (s.damaged || file.size() <= s.offset || file.size() < kHeader) return {};
  std::string bytes(static_cast<size_t>(file.size() - s.offset), '\0');
  file.read(s.offset, std::as_writable_bytes(std::span(bytes)));
  size_t at = 0;
  if (s.offset == 0) {
    if (!bytes.starts_with(":W&B"))
      throw Error("LOG", "the file is not an offline file of W&B",
                  {.file = s.file.string(), .expected = "\":W&B\" at the start"});
    at = kHeader;
  }
  while (at + kHeader <= bytes.size()) {
    const size_t left = kBlock - (s.offset + at) % kBlock;
    if (left < kHeader) {  // padding at the end of a block
      at += left;
      continue;
    }
    std::uint32_t crc = 0;
    std::uint16_t length = 0;
    std::memcpy(&crc, bytes.data() + at, 4);
    std::memcpy(&length, bytes.data() + at + 4, 2);
    const int type = static_cast<unsigned char>(bytes[at + 6]);
    if (length > bytes.size() - at - kHeader) break;  // the record is incomplete
    const auto checked = std::string_view(bytes).substr(at + 6, size_t{1} + length);
    if (type < 1 || type > 4 || crc32(checked) != crc) {
      s.log.notes.push_back(s.file.filename().string() + ": damaged after byte " + std::to_string(s.offset + at));
      s.damaged = true;
      break;
    }
    if (type == 1 || type == 2) s.record.clear();
    s.record += checked.substr(1);
    if (type == 1 || type == 4) {
      add_record(s.record, s.log, s.contents);
      s.record.clear();  // a last chunk without a first one starts a new record
    }
    at += kHeader + length;
  }
  s.offset += std::min(at, bytes.size());
  s.log.contents = s.contents.list();
  return std::exchange(s.log.scalars, {});
}

RunLog read_wandb(const std::filesystem::path& file) {
  WandbFile reader(file);
  std::vector<Scalar> scalars = reader.read_more();
  RunLog log = reader.log();
  log.scalars = std::move(scalars);
  if (PreadFile(file).size() >= kHeader) return log;
  throw Error("LOG", "the file is not an offline file of W&B",
              {.file = file.string(), .expected = "\":W&B\" at the start"});
}

}  // namespace mw::formats
