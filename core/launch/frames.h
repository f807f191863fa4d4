// SPDX-License-Identifier: Apache-2.0
// Parses the frames of resources/launch/remote.py: a line "@mw {json}", then "size" bytes. Skips the output of a login
// before the first frame; throws LAUNCH-STREAM (failed) for other data after it. Use on one thread.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "core/base/json.h"

namespace mw::launch {

struct Frame {
  std::string kind;
  Json head;
  std::string_view bytes;  // valid during the call
};
using OnFrame = std::function<void(const Frame&)>;

class FrameReader {
 public:
  void feed(std::string_view bytes, const OnFrame& on_frame);

 private:
  bool take(const OnFrame& on_frame);  // consumes one frame, or one line before the first frame
  std::string buffer_;
  bool has_frame_ = false;
};

}  // namespace mw::launch
