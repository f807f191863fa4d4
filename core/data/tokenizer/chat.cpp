// SPDX-License-Identifier: Apache-2.0
#include "core/data/tokenizer/chat.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/tokenizer/chat_template.h"

namespace mw::data {
namespace {

struct Markers {
  std::string_view open, close;
};
Markers markers(options::ChatFormat format) {
  switch (format) {
    case options::ChatFormat::gemma2:
    case options::ChatFormat::gemma3:
      return {"<start_of_turn>", "<end_of_turn>"};
    case options::ChatFormat::gemma4:
      return {"<|turn>", "<turn|>"};
    case options::ChatFormat::none:
      break;
  }
  return {};
}

[[noreturn]] void refuse(const std::string& message, const std::string& found, const std::string& expected) {
  throw Error("TOK-2", message, {.place = "messages", .found = found, .expected = expected});
}

// Gemma 4 removes thinking from all answers but the last.
std::string without_thinking(std::string_view text) {
  constexpr std::string_view open = "<|channel>", close = "<channel|>";
  std::string out;
  for (;;) {
    const size_t end = text.find(close);
    const std::string_view part = text.substr(0, end);
    out += part.substr(0, part.find(open));
    if (end == std::string_view::npos) return std::string(trim(out));
    text.remove_prefix(end + close.size());
  }
}

class Renderer {
 public:
  void add(std::string_view text, bool assistant) {
    if (text.empty() && !assistant) return;  // an empty answer keeps its span: each answer has one
    if (spans.empty() || spans.back().assistant != assistant) spans.push_back({"", assistant});
    spans.back().text += text;
  }
  std::vector<ChatSpan> spans;
};

void check_turns(const std::vector<Message>& messages, size_t first) {
  if (first == messages.size())
    refuse("there is no user turn", first ? "only a system turn" : "no messages", "a user message");
  for (size_t i = first; i < messages.size(); ++i) {
    const char* expected = (i - first) % 2 == 0 ? "user" : "assistant";
    if (messages[i].role != expected)
      refuse("the roles do not alternate, starting with the user",
             messages[i].role + " in message " + std::to_string(i + 1), expected);
  }
}

std::vector<ChatSpan> render_plain(const std::vector<Message>& messages) {
  Renderer out;
  for (size_t i = 0; i < messages.size(); ++i) {
    out.add(messages[i].text, messages[i].role == "assistant");
    if (i + 1 < messages.size()) out.add("\n", false);
  }
  return std::move(out.spans);
}

std::vector<ChatSpan> render_builtin(options::ChatFormat format, const std::vector<Message>& messages) {
  if (format == options::ChatFormat::none) return render_plain(messages);
  const auto [open, close] = markers(format);
  const size_t first = !messages.empty() && messages[0].role == "system" ? 1 : 0;
  if (first && format == options::ChatFormat::gemma2)
    refuse("the Gemma 2 template has no system turn", "system", "put the instruction into the first user message");
  check_turns(messages, first);

  Renderer out;
  std::string prefix;  // of the first user turn
  if (first && format == options::ChatFormat::gemma3) prefix = messages[0].text + "\n\n";
  if (first && format == options::ChatFormat::gemma4) {
    out.add(open, false);
    out.add("system\n", false);
    out.add(trim(messages[0].text), false);
    out.add(close, false);
    out.add("\n", false);
  }
  for (size_t i = first; i < messages.size(); ++i) {
    const bool assistant = messages[i].role == "assistant";
    out.add(open, false);
    out.add(assistant ? "model\n" : "user\n", false);
    out.add(prefix, false);
    prefix.clear();
    if (assistant && format == options::ChatFormat::gemma4 && i + 1 < messages.size())
      out.add(without_thinking(messages[i].text), true);
    else
      out.add(trim(messages[i].text), assistant);
    out.add(close, assistant);
    out.add("\n", false);
  }
  return std::move(out.spans);
}

}  // namespace

std::string ChatTemplate::identity() const {
  return folder_ ? folder_->identity() : std::string(to_string(format_));
}

std::string_view start_of_turn(const ChatTemplate& chat) {
  return chat.folder() ? std::string_view(chat.folder()->start_of_turn()) : markers(chat.format()).open;
}

std::string_view end_of_turn(const ChatTemplate& chat) {
  return chat.folder() ? std::string_view(chat.folder()->end_of_turn()) : markers(chat.format()).close;
}

std::vector<ChatSpan> render_chat(const ChatTemplate& chat, const std::vector<Message>& messages, const Json& tools) {
  return chat.folder() ? chat.folder()->render(messages, tools) : render_builtin(chat.format(), messages);
}

std::string render_prompt(const ChatTemplate& chat, const std::vector<Message>& messages, const Json& tools) {
  if (chat.folder()) return chat.folder()->render_prompt(messages, tools);
  std::string text;
  for (const ChatSpan& span : render_builtin(chat.format(), messages)) text += span.text;
  if (chat.is_none()) return text.empty() ? text : text + "\n";
  text += markers(chat.format()).open;
  return text + "model\n";
}

}  // namespace mw::data
