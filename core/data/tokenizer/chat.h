// SPDX-License-Identifier: Apache-2.0
// Chat templates: the built-in ones of Gemma 2, 3 and 4 (chat_template in tokenizer_config.json on the hub; Gemma 4:
// llama.cpp models/templates/gemma4.jinja), and that of a model's folder (chat_template.h). Thread-safe.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"
#include "core/options/data.h"

namespace mw::data {

struct Message {
  std::string role;  // system, user, assistant; others only with a template of a folder
  std::string text;
  Json fields{};  // other members for a template of a folder, e.g. tool_calls; an object or null
};
// A part of the rendered text.
struct ChatSpan {
  std::string text;
  bool assistant = false;  // an answer with its end-of-turn marker
};

class FolderTemplate;

// The template that messages are rendered with, in training, sampling and serving.
class ChatTemplate {
 public:
  ChatTemplate(options::ChatFormat builtin) : format_(builtin) {}
  // `instead_of`: the built-in template of the model's family.
  ChatTemplate(std::shared_ptr<const FolderTemplate> folder, options::ChatFormat instead_of)
      : format_(instead_of), folder_(std::move(folder)) {}
  options::ChatFormat format() const { return format_; }
  const FolderTemplate* folder() const { return folder_.get(); }  // null: built-in
  bool is_none() const { return !folder_ && format_ == options::ChatFormat::none; }
  bool operator==(const ChatTemplate& other) const { return identity() == other.identity(); }
  std::string identity() const;  // of all that it renders: "gemma3", or a hash

 private:
  options::ChatFormat format_;
  std::shared_ptr<const FolderTemplate> folder_;
};

// Renders without bos, which the encoder adds; options::ChatFormat::none joins the texts by \n. Each answer has one
// span. Throws TOK-2 if the template refuses the messages, e.g. because the roles do not alternate, and TEMPLATE.
// `tools`: the tools that the template declares, a list or null.
std::vector<ChatSpan> render_chat(const ChatTemplate& chat, const std::vector<Message>& messages,
                                  const Json& tools = {});
// The rendered messages plus the start of the model's turn.
std::string render_prompt(const ChatTemplate& chat, const std::vector<Message>& messages, const Json& tools = {});
std::string_view start_of_turn(const ChatTemplate& chat);  // "<start_of_turn>", "<|turn>"; empty: it has none
std::string_view end_of_turn(const ChatTemplate& chat);    // "<end_of_turn>", "<turn|>"

}  // namespace mw::data
