// SPDX-License-Identifier: Apache-2.0
// LevelDB's log blocks with W&B's header and its Record messages; chunks are checked by CRC-32/IEEE of type and
// payload.
#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/formats/logs/protobuf.h"
#include "core/formats/logs/readers.h"

namespace mw::formats {
namespace {

constexpr size_t kBlock = 32 << 10, kHeader = 7;
constexpr std::uint64_t kMostDatastore = 4ull << 30;

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

// "train/loss" of {"key"} or {"nested_key": ["train", "loss"]}; value in JSON.
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

void take_history(std::string_view message, RunLog& log) {
  std::vector<std::pair<std::string, double>> row;
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
    const SortedJson value = SortedJson::parse(item.value, nullptr, false);
    if (!value.is_number()) continue;
    if (item.key == "_step") step = static_cast<long>(std::clamp(value.get<double>(), 0.0, 9e18));
    if (item.key == "_timestamp") wall = value.get<double>();
    if (item.key == "_runtime") log.seconds = std::max(log.seconds, value.get<double>());
    if (!item.key.starts_with("_")) row.emplace_back(item.key, value.get<double>());
  }
  for (const auto& [key, value] : row) log.scalars.push_back({usual_name(key), std::max(0L, step), value, wall});
}

void take_record(std::string_view record, RunLog& log) {
  ProtoReader reader(record);
  while (const auto f = reader.next()) {
    if (f->number == 3 && f->wire == 2) take_history(f->bytes, log);
    log.finished |= f->number == 18;  // exit
  }
  if (reader.damaged()) log.notes.push_back("a record could not be read and was left out");
}

}  // namespace

RunLog read_wandb(const std::filesystem::path& file) {
  const std::string bytes = read_file(file, kMostDatastore);
  RunLog log{.name = file.parent_path().filename().string(), .tool = "W&B", .scalars = {}, .notes = {}};
  if (bytes.size() < kHeader || !bytes.starts_with(":W&B"))
    throw Error(
        {.id = "LOG", .message = "not an offline file of W&B", .file = file.string(), .expected = ":W&B at its begin"});
  std::string record;
  for (size_t at = kHeader; at + kHeader <= bytes.size();) {
    const size_t left = kBlock - at % kBlock;
    if (left < kHeader) {  // the rest of a block is padding
      at += left;
      continue;
    }
    std::uint32_t crc = 0;
    std::uint16_t length = 0;
    std::memcpy(&crc, bytes.data() + at, 4);
    std::memcpy(&length, bytes.data() + at + 4, 2);
    const int type = bytes[at + 6];
    if (length > bytes.size() - at - kHeader) break;  // not all of it is written yet
    const auto checked = std::string_view(bytes).substr(at + 6, size_t{1} + length);
    if (type < 1 || type > 4 || crc32(checked) != crc) {
      log.notes.push_back(file.filename().string() + ": damaged from byte " + std::to_string(at) + " on");
      break;
    }
    if (type == 1 || type == 2) record.clear();
    record += checked.substr(1);
    if (type == 1 || type == 4) {
      take_record(record, log);
      record.clear();  // a last piece without a first is a record of its own, whatever came before
    }
    at += kHeader + length;
  }
  return log;
}

}  // namespace mw::formats
