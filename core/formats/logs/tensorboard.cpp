// SPDX-License-Identifier: Apache-2.0
// TFRecord framing and Event messages (tensorboard/compat/proto, tensorboard/data/server/tf_record.rs).
#include "core/formats/logs/tensorboard.h"

#include <unistd.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/protobuf.h"
#include "core/formats/orbax/bytes.h"
#include "core/formats/safetensors/safetensors.h"

namespace mw::formats {
namespace {

constexpr std::uint64_t kMostRecord = 256u << 20;

template <class T>
T little(const std::byte* at) {
  T value{};
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::string_view text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

enum Type { kFloat = 1, kDouble = 2, kInt32 = 3, kInt64 = 9, kBfloat16 = 14, kHalf = 19 };

// The first value of little-endian content.
std::optional<double> first_of(std::uint64_t type, std::string_view content) {
  const auto* at = reinterpret_cast<const std::byte*>(content.data());
  const auto has = [&](size_t n) { return content.size() >= n; };
  if (type == kFloat && has(4)) return little<float>(at);
  if (type == kDouble && has(8)) return little<double>(at);
  if (type == kInt32 && has(4)) return little<std::int32_t>(at);
  if (type == kInt64 && has(8)) return static_cast<double>(little<std::int64_t>(at));
  if (type == kBfloat16 && has(2)) return from_bf16(little<std::uint16_t>(at));
  if (type == kHalf && has(2)) return from_f16(little<std::uint16_t>(at));
  return std::nullopt;
}

// The value of a tensor with one element, in any encoding.
std::optional<double> tensor_value(std::string_view message) {
  std::uint64_t type = 0;
  std::optional<double> value;
  std::string_view content;
  ProtoReader reader(message);
  while (const auto f = reader.next()) {
    if (f->number == 1 && f->wire == 0) type = f->value;
    if (f->number == 4 && f->wire == 2) content = f->bytes;
    if (f->number == 5) value = f->wire == 5 ? std::optional<double>(f->as_float()) : first_of(kFloat, f->bytes);
    if (f->number == 6) value = f->wire == 1 ? std::optional<double>(f->as_double()) : first_of(kDouble, f->bytes);
    if ((f->number == 7 || f->number == 10) && f->wire == 0)
      value = static_cast<double>(std::bit_cast<std::int64_t>(f->value));
  }
  if (reader.damaged()) return std::nullopt;
  return value ? value : first_of(type, content);
}

// The plugin of a tag: "scalars", "histograms", "text" ...; empty if unknown.
std::string plugin_of(std::string_view metadata) {
  std::string name;
  ProtoReader reader(metadata);
  while (const auto f = reader.next()) {
    if (f->number == 4 && f->wire == 0 && f->value == 1) return "scalars";  // data_class
    if (f->number != 1 || f->wire != 2) continue;
    ProtoReader plugin(f->bytes);
    while (const auto p = plugin.next())
      if (p->number == 1 && p->wire == 2) name = valid_utf8(p->bytes);
  }
  return name;
}

struct Summaries {
  std::vector<std::string>& scalar_tags;  // only the first value of a tag has metadata
  std::map<std::string, std::set<std::string>>& others;
  std::vector<Scalar>& out;

  // Tags of histograms, images and texts.
  void note_other(const std::string& kind, const std::string& tag) {
    constexpr size_t kMostKinds = 16, kMostTags = 1000;
    if (others.size() == kMostKinds && !others.contains(kind)) return;
    if (std::set<std::string>& tags = others[kind]; tags.size() < kMostTags) tags.insert(tag);
  }

  void value(std::string_view message, long step, double wall) {
    std::string tag;
    std::optional<double> simple;
    std::string_view tensor;
    std::string kind;
    ProtoReader reader(message);
    while (const auto f = reader.next()) {
      if (f->number == 1 && f->wire == 2) tag = valid_utf8(f->bytes);
      if (f->number == 2 && f->wire == 5) simple = f->as_float();
      if (f->number == 4 && f->wire == 2) kind = "images";
      if (f->number == 5 && f->wire == 2) kind = "histograms";
      if (f->number == 6 && f->wire == 2) kind = "audio";
      if (f->number == 8 && f->wire == 2) tensor = f->bytes;
      if (f->number == 9 && f->wire == 2) kind = plugin_of(f->bytes);
    }
    const bool scalars = kind == "scalars";
    const bool known = std::find(scalar_tags.begin(), scalar_tags.end(), tag) != scalar_tags.end();
    if (scalars && !known) scalar_tags.push_back(tag);
    if (!simple && !tensor.empty() && (scalars || known)) simple = tensor_value(tensor);
    if (simple && !tag.empty()) out.push_back({usual_name(tag), step, *simple, wall});
    if (!simple && !kind.empty() && !scalars) note_other(kind, tag);
  }

  bool event(std::string_view message) {
    long step = 0;
    double wall = 0;
    std::vector<std::string_view> summaries;
    ProtoReader reader(message);
    while (const auto f = reader.next()) {
      if (f->number == 1 && f->wire == 1) wall = f->as_double();
      if (f->number == 2 && f->wire == 0) step = static_cast<long>(std::bit_cast<std::int64_t>(f->value));
      if (f->number == 4 && f->wire == 2) note_other("graphs", "graph");
      if (f->number == 5 && f->wire == 2) summaries.push_back(f->bytes);
    }
    for (const std::string_view summary : summaries) {
      ProtoReader values(summary);
      while (const auto v = values.next())
        if (v->number == 1 && v->wire == 2) value(v->bytes, step, wall);
    }
    return !reader.damaged();
  }
};

}  // namespace

std::uint32_t masked_crc32c(std::span<const std::byte> bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

std::vector<Scalar> TensorboardFile::read_more() {
  std::vector<Scalar> scalars;
  const PreadFile file(file_);
  Summaries summaries{scalar_tags_, others_, scalars};
  Blob record;
  while (!broken_ && file.size() - std::min(file.size(), offset_) >= 12) {
    std::byte head[12];
    file.read(offset_, head);
    const auto length = little<std::uint64_t>(head);
    if (masked_crc32c(std::span(head).first(8)) != little<std::uint32_t>(head + 8) || length > kMostRecord) {
      broken_ = true;
      notes_.push_back(file_.filename().string() + ": damaged after byte " + std::to_string(offset_));
      break;
    }
    if (file.size() - offset_ - 12 < length + 4) break;  // the record is incomplete
    record.resize(static_cast<size_t>(length) + 4);
    file.read(offset_ + 12, record);
    const auto data = std::span<const std::byte>(record).first(static_cast<size_t>(length));
    const bool good = masked_crc32c(data) == little<std::uint32_t>(record.data() + length);
    if (!good || !summaries.event(text(data)))
      notes_.push_back(file_.filename().string() + ": the record at byte " + std::to_string(offset_) +
                       " is damaged and was skipped");
    offset_ += length + 16;
  }
  return scalars;
}

namespace {

// A protocol buffer message. Fields with default values are left out, as proto3 does.
class ProtoMessage {
 public:
  void add_varint(std::uint64_t field, std::uint64_t value) {
    if (value == 0) return;
    put_varint(field << 3);
    put_varint(value);
  }
  void add_double(std::uint64_t field, double value) {
    put_varint(field << 3 | 1);
    put_little(std::bit_cast<std::uint64_t>(value), 8);
  }
  void add_float(std::uint64_t field, float value) {
    put_varint(field << 3 | 5);
    put_little(std::bit_cast<std::uint32_t>(value), 4);
  }
  void add_bytes(std::uint64_t field, std::string_view bytes) {
    put_varint(field << 3 | 2);
    put_varint(bytes.size());
    bytes_ += bytes;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void put_varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  void put_little(std::uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes_ += static_cast<char>(value >> (8 * i));
  }
  std::string bytes_;
};

std::string little_endian(std::uint64_t value, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

std::span<const std::byte> as_bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

std::filesystem::path new_event_file(const std::filesystem::path& folder, double wall_time) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {'h', 'o', 's', 't'};
  const std::string name = "events.out.tfevents." + std::to_string(std::llround(wall_time)) + "." + host.data() + "." +
                           std::to_string(::getpid()) + ".";
  for (int n = 0;; ++n)
    if (std::filesystem::path file = folder / (name + std::to_string(n)); !path_exists(file)) return file;
}

TensorboardWriter::TensorboardWriter(const std::filesystem::path& file, double wall_time, long first_step)
    : file_(file, OutputFile::Create::must_be_new) {
  ProtoMessage version;
  version.add_double(1, wall_time);
  version.add_bytes(3, "brain.Event:2");
  write_record(version.bytes());
  ProtoMessage log, start;
  log.add_varint(1, 1);  // SessionLog.START
  start.add_double(1, wall_time);
  start.add_varint(2, static_cast<std::uint64_t>(first_step));
  start.add_bytes(7, log.bytes());
  write_record(start.bytes());
}

void TensorboardWriter::add_scalar(const std::string& tag, long step, double value, double wall_time) {
  ProtoMessage scalar, summary, event;
  scalar.add_bytes(1, valid_utf8(tag));
  scalar.add_float(2, static_cast<float>(value));
  summary.add_bytes(1, scalar.bytes());
  event.add_double(1, wall_time);
  event.add_varint(2, static_cast<std::uint64_t>(step));
  event.add_bytes(5, summary.bytes());
  write_record(event.bytes());
}

// The length and the message, each followed by its checksum.
void TensorboardWriter::write_record(std::string_view message) {
  const std::string length = little_endian(message.size(), 8);
  std::string record = length + little_endian(masked_crc32c(as_bytes_of(length)), 4);
  record += message;
  record += little_endian(masked_crc32c(as_bytes_of(message)), 4);
  file_.write(as_bytes_of(record));
}

}  // namespace mw::formats
