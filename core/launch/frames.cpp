// SPDX-License-Identifier: Apache-2.0
#include "core/launch/frames.h"

#include "core/base/error.h"

namespace mw::launch {
namespace {

constexpr std::string_view kMark = "@mw ";
constexpr size_t kMostHead = 1 << 18, kMostBytes = 1 << 20;

[[noreturn]] void broken(const std::string& message, std::string_view found) {
  throw Error({.id = "LAUNCH-STREAM",
               .message = message,
               .found = valid_utf8(found.substr(0, 80)),
               .expected = "frames of Meshwright's remote.py"},
              Error::Kind::failed);
}

Json head_of(std::string_view line) try {
  Json head = parse_json(line.substr(kMark.size()), "frame");
  if (!head.is_object() || !head.contains("kind") || !head["kind"].is_string()) broken("a frame has no kind", line);
  return head;
} catch (const Error& error) {
  if (error.problem().id == "LAUNCH-STREAM") throw;
  broken("a frame cannot be read", line);
}

size_t size_of(const Json& head, std::string_view line) {
  const auto size = head.find("size");
  if (size == head.end()) return 0;
  if (!size->is_number_unsigned() || size->get<std::uint64_t>() > kMostBytes) broken("a frame has no valid size", line);
  return size->get<size_t>();
}

}  // namespace

void FrameReader::feed(std::string_view bytes, const OnFrame& on_frame) {
  buffer_.append(bytes);
  while (take(on_frame)) {
  }
}

bool FrameReader::take(const OnFrame& on_frame) {
  const size_t end = buffer_.find('\n');
  if (end == std::string::npos) {
    if (buffer_.size() <= kMostHead) return false;
    if (has_frame_) broken("a line is too long", buffer_);
    buffer_.clear();
    return false;
  }
  const std::string line = buffer_.substr(0, end);
  if (!line.starts_with(kMark)) {
    if (has_frame_) broken("there is data between frames", line);
    buffer_.erase(0, end + 1);
    return true;
  }
  has_frame_ = true;
  const Json head = head_of(line);
  const size_t size = size_of(head, line);
  if (buffer_.size() - end - 1 < size) return false;
  on_frame({head["kind"].get<std::string>(), head, std::string_view(buffer_).substr(end + 1, size)});
  buffer_.erase(0, end + 1 + size);
  return true;
}

}  // namespace mw::launch
