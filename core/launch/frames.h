// SPDX-License-Identifier: Apache-2.0
// What resources/launch/remote.py answers with: a line "@mw {json}", then as many bytes as its "size" says. What a
// login prints before the first one is skipped; after it, anything else is an Error LAUNCH-STREAM (failed). One thread.
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
  bool take(const OnFrame& on_frame);  // one frame, or one line before the first
  std::string buffer_;
  bool begun_ = false;
};

}  // namespace mw::launch
