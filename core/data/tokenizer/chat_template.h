// SPDX-License-Identifier: Apache-2.0
// The chat template in a model's folder: Jinja, rendered as transformers does (core/data/jinja). Immutable,
// thread-safe.
#pragma once
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "core/data/jinja/template.h"
#include "core/data/tokenizer/chat.h"

namespace mw::data {

class FolderTemplate {
 public:
  // `text`: Jinja. `tool_text`: used instead where tools are given; empty: none. `tokens`: bos_token and other special
  // tokens by name. `source` names the file in errors. Throws TEMPLATE.
  FolderTemplate(const std::string& text, const std::string& tool_text, Json tokens, const std::string& source);

  std::vector<ChatSpan> render(const std::vector<Message>& messages, const Json& tools) const;
  // `values`: more variables, an object or null.
  std::string render_prompt(const std::vector<Message>& messages, const Json& tools, const Json& values = {}) const;
  // Whether the text names the variable.
  bool mentions(std::string_view variable) const;
  const std::string& start_of_turn() const { return start_; }  // found by rendering; empty: not found
  const std::string& end_of_turn() const { return end_; }
  const std::string& identity() const { return identity_; }  // hash of all inputs but the messages
  const std::string& sha256() const { return sha256_; }      // of the text without a newline at its end, 64 digits
  std::string_view published_as() const;                     // the model that has this text; empty: none that is known
  const std::string& source() const { return source_; }
  const std::string& text() const { return text_; }
  const std::string& tool_text() const { return tool_text_; }
  const Json& tokens() const { return tokens_; }

 private:
  enum class Turn { closed, open };  // open: with the start of the model's turn
  jinja::Rendered run(const std::vector<Message>& messages, const Json& tools, Turn turn,
                      const Json& values = {}) const;
  struct Range {
    size_t begin = 0, end = 0;
  };
  // Where the answer messages[i] is in `text`, which is `whole` rendered.
  Range find_answer(size_t i, const std::vector<Message>& whole, Turn turn, const std::string& text,
                    const Json& tools) const;
  void find_markers();

  jinja::Template template_;
  std::vector<jinja::Template> with_tools_;  // at most one
  Json tokens_;
  std::string text_, tool_text_, source_, sha256_, identity_, bos_, start_, end_;
  std::time_t now_;
};

// The template of a folder: chat_template.jinja, else chat_template in tokenizer_config.json (a string, or a list with
// "default" and "tool_use"), else chat_template.json. `instead_of` if the folder has none. Files are read again only
// when they change. Throws TEMPLATE, and JSON for broken files.
ChatTemplate load_chat_template(const std::filesystem::path& folder, options::ChatFormat instead_of);

}  // namespace mw::data
