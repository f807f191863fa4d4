// SPDX-License-Identifier: Apache-2.0
// The chat templates of Gemma 2, 3 and 4 (chat_template in tokenizer_config.json on the hub; Gemma 4: llama.cpp
// models/templates/gemma4.jinja). Thread-safe.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/base/enum_names.h"

namespace mw::data {

enum class ChatFormat { gemma2, gemma3, gemma4, none };
struct Message {
  std::string role;  // system, user, assistant
  std::string text;
};
// A part of the rendered text.
struct Span {
  std::string text;
  bool assistant = false;  // an answer with its end-of-turn marker
};
// Renders without bos, which the encoder adds; ChatFormat::none joins the texts by \n. Throws TOK-2 for a system turn
// with Gemma 2, or if the roles do not alternate.
std::vector<Span> render_chat(ChatFormat format, const std::vector<Message>& messages);
// The rendered messages plus the start of the model's turn.
std::string render_prompt(ChatFormat format, const std::vector<Message>& messages);
std::string_view start_of_turn(ChatFormat format);  // "<start_of_turn>" or "<|turn>"
std::string_view end_of_turn(ChatFormat format);    // "<end_of_turn>" or "<turn|>"

}  // namespace mw::data

template <>
inline constexpr mw::EnumNames<4> mw::kEnumNames<mw::data::ChatFormat>{"gemma2", "gemma3", "gemma4", "none"};
