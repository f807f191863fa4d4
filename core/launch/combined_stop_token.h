// SPDX-License-Identifier: Apache-2.0
// A stop token that is requested when one of two others is. Thread-safe.
#pragma once
#include <stop_token>

namespace mw::launch {

class CombinedStopToken {
 public:
  CombinedStopToken(const std::stop_token& first, const std::stop_token& second)
      : first_callback_(first, Stop{source_}), second_callback_(second, Stop{source_}) {}
  CombinedStopToken(const CombinedStopToken&) = delete;
  CombinedStopToken& operator=(const CombinedStopToken&) = delete;
  std::stop_token token() const { return source_.get_token(); }

 private:
  struct Stop {
    std::stop_source source;
    void operator()() { source.request_stop(); }
  };
  std::stop_source source_;
  std::stop_callback<Stop> first_callback_, second_callback_;
};

}  // namespace mw::launch
