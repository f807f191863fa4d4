// SPDX-License-Identifier: Apache-2.0
// How a model marks its thoughts and its calls of tools in an answer: as its chat template renders those of earlier
// answers. Pure functions; any thread.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/tokenizer/chat.h"

namespace mw::serve {

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

}  // namespace mw::serve
