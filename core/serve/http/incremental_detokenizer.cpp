// SPDX-License-Identifier: Apache-2.0
#include "core/serve/http/incremental_detokenizer.h"

#include <algorithm>
#include <span>

#include "core/base/json.h"

namespace mw::serve {
namespace {

constexpr std::string_view kReplacement = "\uFFFD";
constexpr size_t kMaxHeldTokens = 4;  // bytes of the longest UTF-8 character: more tokens cannot complete one
constexpr size_t kMaxWindow = 64;     // tokens kept as context while no text comes

}  // namespace

std::string IncrementalDetokenizer::decode(bool last) {
  const std::string before = tokenizer_.decode(std::span(ids_).first(decoded_));
  const std::string now = tokenizer_.decode(ids_);
  const bool is_incomplete = now.ends_with(kReplacement) && ids_.size() - decoded_ < kMaxHeldTokens;
  if (is_incomplete && !last) return {};
  // More bytes can invalidate a run of bytes that was valid text. Text that was returned stays; the rest is decoded
  // alone.
  std::string text = valid_utf8(now.starts_with(before) ? now.substr(before.size())
                                                        : tokenizer_.decode(std::span(ids_).subspan(decoded_)));
  // Keeps the last decoded ids, because the text of a token depends on whether text precedes it.
  if (!text.empty() || ids_.size() > kMaxWindow)
    ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(decoded_));
  decoded_ = ids_.size();
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
  size_t keep = 0;  // length of the longest suffix that is a prefix of a stop string
  for (const std::string& s : stops_)
    for (size_t n = std::min(s.size() - 1, held_.size()); n > keep && !last; --n)
      if (held_.ends_with(std::string_view(s).substr(0, n))) keep = n;
  // Stop strings are valid UTF-8, so this does not split a character.
  std::string text = held_.substr(0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return text;
}

std::string IncrementalDetokenizer::add(int token) {
  if (stopped_) return {};
  const bool is_marker = std::find(markers_.begin(), markers_.end(), token) != markers_.end();
  if (is_marker) held_ += decode(true);
  ids_.push_back(token);
  if (is_marker) held_ += tokenizer_.piece(token);
  held_ += decode(false);
  return release(false);
}

std::string IncrementalDetokenizer::finish() {
  if (stopped_) return {};
  if (ids_.size() > decoded_) held_ += decode(true);
  return release(true);
}

}  // namespace mw::serve
