// SPDX-License-Identifier: Apache-2.0
// Divides the text of an answer into content, thoughts and calls of tools as it arrives. Not thread-safe.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/tokenizer/chat.h"

namespace mw::serve {

// How a model marks its thoughts and its calls of tools in an answer: as its chat template renders those of earlier
// answers. Pure functions; any thread.
enum class CallNotation {
  none,
  gemma,  // call:NAME{key:value}, strings between quote markers: Gemma 4, FunctionGemma
  json,   // {"name": ..., "arguments": {...}}: Hermes, Qwen
};

struct AnswerFormat {
  CallNotation notation = CallNotation::none;
  std::string call_begin{}, call_end{}, quote{};
  std::string response_begin{};  // follows the calls, where the client's answer belongs: ends the generation
  std::string thought_begin{}, thought_end{};  // empty: no thoughts
  std::string thought_label{};                 // follows thought_begin, and is no part of the thought
  bool has_thoughts() const { return !thought_begin.empty(); }
};
AnswerFormat answer_format(const data::ChatTemplate& chat);

struct ToolCall {
  std::string name;
  std::string arguments;  // a JSON object as text
};
// `text` is what is between call_begin and call_end. Empty if it is no call in the notation of the format.
std::optional<ToolCall> parse_tool_call(const AnswerFormat& format, std::string_view text);
// The text behind call_begin that makes an answer call the tool; without a name: any tool.
std::string forced_call(const AnswerFormat& format, std::string_view name);

struct AnswerPart {
  std::string content{}, reasoning{};
  std::vector<ToolCall> calls{};
};
void append(AnswerPart& whole, AnswerPart part);

struct AnswerReading {
  bool reads_calls = false;  // the request has tools; without it calls stay in the content
  bool only_one_call = false;
  bool begins_with_thought = false;  // the prompt ends with thought_begin
  std::string forced_call{};         // the prompt ends with call_begin and this text; empty: it does not
};

class AnswerReader {
 public:
  AnswerReader() = default;  // all text is content
  AnswerReader(const AnswerFormat& format, AnswerReading reading);
  AnswerPart add(std::string_view text);  // holds back what may turn out to be a marker or a call
  AnswerPart finish();                    // the rest; a call without its end is a call if it is complete, else content
  int calls() const { return calls_; }    // so far

 private:
  enum class Place { content, thought, call };
  bool advance(AnswerPart& out);  // false: needs more text
  bool advance_content(AnswerPart& out);
  bool advance_thought(AnswerPart& out);
  bool advance_call(AnswerPart& out);
  void enter(Place place, size_t marker_end);
  void add_content(std::string_view text, AnswerPart& out);
  void add_thought(std::string_view text, AnswerPart& out);
  bool add_call(std::string_view text, AnswerPart& out);  // false: it is no call
  std::string released(const std::vector<std::string_view>& markers);
  size_t find_call_end();

  AnswerFormat format_{};
  AnswerReading reading_{};
  Place place_ = Place::content;
  std::string held_;    // not returned
  std::string space_;   // white space at the start of content, returned with the first letter behind it
  std::string label_;   // of a thought, until it is known to be thought_label
  size_t scanned_ = 0;  // of held_, in a call
  bool in_quotes_ = false;
  bool at_start_ = true;     // of content or thought
  bool has_marker_ = false;  // before the content
  int calls_ = 0;
};

}  // namespace mw::serve
