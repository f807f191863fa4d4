// SPDX-License-Identifier: Apache-2.0
#include "core/serve/http/answer_reader.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/data/tokenizer/chat_template.h"

namespace mw::serve {
namespace {

constexpr int kMaxDepth = 64;
constexpr std::string_view kCall = "call:";

// Rewrites arguments in Gemma's notation as JSON: keys and words without quotes, strings between quote markers.
class ArgumentsReader {
 public:
  ArgumentsReader(std::string_view text, std::string_view quote) : text_(text), quote_(quote) {}
  // Empty if the text is not one object.
  std::optional<std::string> read() {
    if (!read_object(0)) return std::nullopt;
    skip_space();
    return at_ == text_.size() ? std::optional(std::move(json_)) : std::nullopt;
  }

 private:
  static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  bool take(std::string_view expected) {
    skip_space();
    if (!text_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }
  void add_string(std::string_view value) { json_ += Json(std::string(value)).dump(); }
  // A string between quote markers, which has no escapes.
  bool read_quoted() {
    const size_t end = text_.find(quote_, at_);
    if (end == std::string_view::npos) return false;
    add_string(text_.substr(at_, end - at_));
    at_ = end + quote_.size();
    return true;
  }
  std::string_view take_word(std::string_view ends) {
    const size_t end = std::min(text_.find_first_of(ends, at_), text_.size());
    const std::string_view word = trim(text_.substr(at_, end - at_));
    at_ = end;
    return word;
  }
  bool read_key() {
    if (take(quote_)) return read_quoted();
    skip_space();
    std::string_view key = take_word(":,{}[]");
    if (key.size() > 1 && key.front() == '"' && key.back() == '"') key = key.substr(1, key.size() - 2);
    add_string(key);
    return !key.empty();
  }
  // Members or items with commas between them and, as models write them, perhaps behind the last.
  template <class ReadPart>
  bool read_list(char begin, char end, ReadPart read_part) {
    json_ += begin;
    for (bool is_first = true;; is_first = false) {
      if (take({&end, 1})) break;
      if (!is_first) json_ += ',';
      if (!read_part()) return false;
      if (take(",")) continue;
      if (!take({&end, 1})) return false;
      break;
    }
    json_ += end;
    return true;
  }
  bool read_object(int depth) {
    return depth < kMaxDepth && take("{") && read_list('{', '}', [&] {
             if (!read_key() || !take(":")) return false;
             json_ += ':';
             return read_value(depth + 1);
           });
  }
  bool read_value(int depth) {
    if (depth >= kMaxDepth) return false;
    if (take(quote_)) return read_quoted();
    if (at_ == text_.size()) return false;
    if (text_[at_] == '{') return read_object(depth);
    if (take("[")) return read_list('[', ']', [&] { return read_value(depth + 1); });
    return text_[at_] == '"' ? read_json_string() : read_word();
  }
  bool read_json_string() {
    const size_t end = end_of_string(text_, at_);
    const std::string_view string = text_.substr(at_, end - at_);
    if (!Json::accept(string)) return false;
    json_ += string;
    at_ = end;
    return true;
  }
  // A number, true, false or null; anything else is a string.
  bool read_word() {
    const std::string_view word = take_word(",{}[]");
    if (word.empty()) return false;
    // Json::accept() takes NUL for the end of the text and skips a byte order mark, as it may at the start of a file.
    const bool is_json = std::string_view("-0123456789tfn").find(word.front()) != std::string_view::npos &&
                         word.find('\0') == std::string_view::npos && Json::accept(word);
    if (word == "None")
      json_ += "null";  // how Python writes it
    else if (is_json)
      json_ += word;
    else
      add_string(word);
    return true;
  }

  std::string_view text_, quote_;
  size_t at_ = 0;
  std::string json_;
};

std::optional<ToolCall> parse_gemma(std::string_view text, const std::string& quote) {
  text = trim(text);
  if (!text.starts_with(kCall)) return std::nullopt;
  text.remove_prefix(kCall.size());
  const size_t begin = text.find('{');
  if (begin == std::string_view::npos) return std::nullopt;
  const std::string_view name = trim(text.substr(0, begin));
  if (name.empty() || name.find_first_of(" \n\t\r<>}") != std::string_view::npos) return std::nullopt;
  std::optional<std::string> arguments = ArgumentsReader(text.substr(begin), quote).read();
  if (!arguments) return std::nullopt;
  return ToolCall{std::string(name), std::move(*arguments)};
}

std::optional<ToolCall> parse_json_call(std::string_view text) try {
  const Json call = parse_json(text, "the call of a tool");
  const Json *name = find_member(call, "name"), *arguments = find_member(call, "arguments");
  if (!name || !name->is_string() || name->get_ref<const std::string&>().empty()) return std::nullopt;
  if (arguments && !arguments->is_object()) return std::nullopt;
  return ToolCall{name->get<std::string>(), arguments ? arguments->dump() : "{}"};
} catch (const Error&) {
  return std::nullopt;
}

}  // namespace

AnswerFormat answer_format(const data::ChatTemplate& chat) {
  const data::FolderTemplate* folder = chat.folder();
  const std::string text = folder ? folder->text() + folder->tool_text() : std::string();
  const auto has = [&](std::string_view part) { return text.find(part) != std::string::npos; };
  AnswerFormat out;
  if (has("<|tool_call>"))
    out = {CallNotation::gemma, "<|tool_call>", "<tool_call|>", "<|\"|>", "<|tool_response>"};
  else if (has("<start_function_call>"))
    out = {CallNotation::gemma, "<start_function_call>", "<end_function_call>", "<escape>",
           "<start_function_response>"};
  else if (has("<tool_call>") && !has("<function="))
    out = {CallNotation::json, "<tool_call>", "</tool_call>"};
  if (has("<|channel>") || (!folder && chat.format() == options::ChatFormat::gemma4))
    out.thought_begin = "<|channel>", out.thought_end = "<channel|>", out.thought_label = "thought\n";
  else if (has("<think>"))
    out.thought_begin = "<think>", out.thought_end = "</think>", out.thought_label = "\n";
  return out;
}

std::optional<ToolCall> parse_tool_call(const AnswerFormat& format, std::string_view text) {
  switch (format.notation) {
    case CallNotation::none:
      break;
    case CallNotation::gemma:
      return parse_gemma(text, format.quote);
    case CallNotation::json:
      return parse_json_call(text);
  }
  return std::nullopt;
}

std::string forced_call(const AnswerFormat& format, std::string_view name) {
  if (format.notation == CallNotation::gemma) return std::string(kCall) + (name.empty() ? "" : std::string(name) + "{");
  return name.empty() ? "\n{\"name\": \"" : "\n{\"name\": " + Json(std::string(name)).dump() + ", \"arguments\": {";
}

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
