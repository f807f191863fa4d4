// SPDX-License-Identifier: Apache-2.0
// Gemma chat templates, rendered natively (Gemma 4: llama.cpp models/templates/gemma4.jinja). Any thread.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace mw::data {

enum class ChatFormat { gemma2, gemma3, gemma4, none };
struct Message {
  std::string role;  // system, user, assistant
  std::string text;
};
// A run of rendered text and whether a model would be trained on it (assistant text with its end-of-turn marker).
struct Span {
  std::string text;
  bool assistant = false;
};
// Throws Error (TOK-2) for a Gemma 2 system turn or roles that do not alternate. No bos: the encoder adds it.
std::vector<Span> render_chat(ChatFormat format, const std::vector<Message>& messages);
// With ChatFormat::none: the texts as they are, joined by \n.
// The prompt that asks for an answer: the messages plus the opening of the model's turn.
std::string render_prompt(ChatFormat format, const std::vector<Message>& messages);
std::string_view start_of_turn(ChatFormat format);  // "<start_of_turn>" or "<|turn>"
std::string_view end_of_turn(ChatFormat format);    // "<end_of_turn>" or "<turn|>"

}  // namespace mw::data
