// SPDX-License-Identifier: Apache-2.0
#include "core/serve/http/answer_reader.h"

#include <algorithm>
#include <utility>

namespace mw::serve {
namespace {

struct Found {
  size_t at = std::string::npos;
  std::string_view marker;
};
Found find_first(const std::string& text, const std::vector<std::string_view>& markers) {
  Found out;
  for (const std::string_view marker : markers)
    if (const size_t at = text.find(marker); at < out.at) out = {at, marker};
  return out;
}

// Length of the longest end of `text` that may be the beginning of a marker.
size_t marker_start(std::string_view text, const std::vector<std::string_view>& markers) {
  size_t keep = 0;
  for (const std::string_view marker : markers)
    for (size_t n = std::min(marker.size() - 1, text.size()); n > keep; --n)
      if (text.ends_with(marker.substr(0, n))) keep = n;
  return keep;
}

}  // namespace

void append(AnswerPart& whole, AnswerPart part) {
  whole.content += part.content;
  whole.reasoning += part.reasoning;
  for (ToolCall& call : part.calls) whole.calls.push_back(std::move(call));
}

AnswerReader::AnswerReader(const AnswerFormat& format, AnswerReading reading)
    : format_(format), reading_(std::move(reading)) {
  reading_.reads_calls = reading_.reads_calls && format_.notation != CallNotation::none;
  if (reading_.begins_with_thought && format_.has_thoughts()) place_ = Place::thought;
  if (reading_.reads_calls && !reading_.forced_call.empty()) {
    place_ = Place::call;
    held_ = reading_.forced_call;
  }
}

AnswerPart AnswerReader::add(std::string_view text) {
  AnswerPart out;
  if (!reading_.reads_calls && !format_.has_thoughts()) {
    out.content = text;
    return out;
  }
  held_ += text;
  while (advance(out)) {
  }
  return out;
}

AnswerPart AnswerReader::finish() {
  AnswerPart out;
  const std::string rest = std::exchange(held_, {});
  switch (place_) {
    case Place::content:
      add_content(rest, out);
      break;
    case Place::thought:
      add_thought(rest, out);
      out.reasoning += std::exchange(label_, {});
      break;
    case Place::call:
      if (!add_call(rest, out)) add_content(format_.call_begin + rest, out);
      break;
  }
  if (!has_marker_) out.content += space_;  // all of the answer
  return out;
}

bool AnswerReader::advance(AnswerPart& out) {
  switch (place_) {
    case Place::content:
      return advance_content(out);
    case Place::thought:
      return advance_thought(out);
    case Place::call:
      return advance_call(out);
  }
  return false;
}

void AnswerReader::enter(Place place, size_t marker_end) {
  held_.erase(0, marker_end);
  place_ = place;
  at_start_ = has_marker_ = true;
  space_.clear();
  label_.clear();
  scanned_ = 0;
  in_quotes_ = false;
}

// The text before a marker, or all but what may be the beginning of one.
std::string AnswerReader::released(const std::vector<std::string_view>& markers) {
  const size_t size = held_.size() - marker_start(held_, markers);
  std::string out = held_.substr(0, size);
  held_.erase(0, size);
  return out;
}

bool AnswerReader::advance_content(AnswerPart& out) {
  std::vector<std::string_view> markers;
  if (reading_.reads_calls) markers.push_back(format_.call_begin);
  if (format_.has_thoughts()) markers.insert(markers.end(), {format_.thought_begin, format_.thought_end});
  const Found found = find_first(held_, markers);
  if (found.at == std::string::npos) {
    add_content(released(markers), out);
    return false;
  }
  add_content(std::string_view(held_).substr(0, found.at), out);
  const bool is_call = reading_.reads_calls && found.marker == format_.call_begin;
  const Place next = is_call ? Place::call : found.marker == format_.thought_begin ? Place::thought : Place::content;
  enter(next, found.at + found.marker.size());
  return true;
}

// A call ends a thought, too.
bool AnswerReader::advance_thought(AnswerPart& out) {
  std::vector<std::string_view> markers{format_.thought_end};
  if (reading_.reads_calls) markers.push_back(format_.call_begin);
  const Found found = find_first(held_, markers);
  if (found.at == std::string::npos) {
    add_thought(released(markers), out);
    return false;
  }
  add_thought(std::string_view(held_).substr(0, found.at), out);
  out.reasoning += std::exchange(label_, {});
  enter(found.marker == format_.thought_end ? Place::content : Place::call, found.at + found.marker.size());
  return true;
}

size_t AnswerReader::find_call_end() {
  const std::string_view text = held_;
  const std::string_view& quote = format_.quote;
  while (scanned_ < text.size()) {
    const size_t end = in_quotes_ ? std::string_view::npos : text.find(format_.call_end, scanned_);
    const size_t next_quote = quote.empty() ? std::string_view::npos : text.find(quote, scanned_);
    if (end < next_quote) return end;
    if (next_quote == std::string_view::npos) break;
    in_quotes_ = !in_quotes_;
    scanned_ = next_quote + quote.size();
  }
  const size_t longest = std::max(format_.call_end.size(), quote.size());
  scanned_ = std::max(scanned_, text.size() - std::min(text.size(), longest - 1));
  return std::string::npos;
}

bool AnswerReader::advance_call(AnswerPart& out) {
  const size_t end = find_call_end();
  if (end == std::string::npos) return false;
  const std::string text = held_.substr(0, end);
  const bool is_call = add_call(text, out);
  enter(Place::content, end + format_.call_end.size());
  if (!is_call) add_content(format_.call_begin + text + format_.call_end, out);
  return true;
}

// White space at the start waits for a letter: there is often some between thoughts and calls.
void AnswerReader::add_content(std::string_view text, AnswerPart& out) {
  if (at_start_) {
    const size_t letter = text.find_first_not_of(" \n\t\r");
    space_ += text.substr(0, letter);
    if (letter == std::string_view::npos) return;
    text.remove_prefix(letter);
    if (has_marker_) space_.erase(0, std::min(space_.find_first_not_of('\n'), space_.size()));
    out.content += std::exchange(space_, {});
    at_start_ = false;
  }
  out.content += text;
}

void AnswerReader::add_thought(std::string_view text, AnswerPart& out) {
  if (!at_start_) {
    out.reasoning += text;
    return;
  }
  label_ += text;
  if (label_.size() < format_.thought_label.size() && format_.thought_label.starts_with(label_)) return;
  if (label_.starts_with(format_.thought_label)) label_.erase(0, format_.thought_label.size());
  out.reasoning += std::exchange(label_, {});
  at_start_ = false;
}

bool AnswerReader::add_call(std::string_view text, AnswerPart& out) {
  std::optional<ToolCall> call = parse_tool_call(format_, text);
  if (!call) return false;
  if (!reading_.only_one_call || calls_ == 0) {
    out.calls.push_back(std::move(*call));
    ++calls_;
  }
  return true;
}

}  // namespace mw::serve
