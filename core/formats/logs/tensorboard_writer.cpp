// SPDX-License-Identifier: Apache-2.0
#include "core/formats/logs/tensorboard_writer.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/formats/logs/tensorboard.h"

namespace mw::formats {
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
