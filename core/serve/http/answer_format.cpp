// SPDX-License-Identifier: Apache-2.0
#include "core/serve/http/answer_format.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/utf8.h"
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

}  // namespace mw::serve
