// SPDX-License-Identifier: Apache-2.0
#include "core/serve/http/incremental_detokenizer.h"

#include <algorithm>
#include <span>

#include "core/base/json.h"

namespace mw::serve {
namespace {

constexpr std::string_view kReplacement = "\uFFFD";
constexpr size_t kMostHeldTokens = 4;  // bytes of the longest character: what is no character by then never will be
constexpr size_t kLongestWindow = 64;  // where only pieces without text come

}  // namespace

std::string IncrementalDetokenizer::decoded(bool last) {
  const std::string before = tokenizer_.decode(std::span(ids_).first(shown_));
  const std::string now = tokenizer_.decode(ids_);
  const bool half = now.ends_with(kReplacement) && ids_.size() - shown_ < kMostHeldTokens;
  if (half && !last) return {};
  // A run of bytes that was text and with more of them is none: what has been sent stays, the rest stands by itself.
  std::string text = valid_utf8(now.starts_with(before) ? now.substr(before.size())
                                                        : tokenizer_.decode(std::span(ids_).subspan(shown_)));
  // What was shown last stays: how a piece is spelt depends on whether text comes before it, not on what is further
  // back.
  if (!text.empty() || ids_.size() > kLongestWindow)
    ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(shown_));
  shown_ = ids_.size();
  return text;
}

std::string IncrementalDetokenizer::release(bool last) {
  size_t stop = std::string::npos;
  for (const std::string& s : stops_) stop = std::min(stop, held_.find(s));
  if (stop != std::string::npos) {
    stopped_ = true;
    std::string text = held_.substr(0, stop);
    held_.clear();
    return text;
  }
  size_t keep = 0;  // longest end of the text that begins a stop string
  for (const std::string& s : stops_)
    for (size_t n = std::min(s.size() - 1, held_.size()); n > keep && !last; --n)
      if (held_.ends_with(std::string_view(s).substr(0, n))) keep = n;
  // Stop strings are valid UTF-8, so what begins one begins a character.
  std::string text = held_.substr(0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return text;
}

std::string IncrementalDetokenizer::add(int token) {
  if (stopped_) return {};
  ids_.push_back(token);
  held_ += decoded(false);
  return release(false);
}

std::string IncrementalDetokenizer::finish() {
  if (stopped_) return {};
  if (ids_.size() > shown_) held_ += decoded(true);
  return release(true);
}

}  // namespace mw::serve
