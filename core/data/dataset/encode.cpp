// SPDX-License-Identifier: Apache-2.0
#include "core/data/dataset/encode.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/utf8.h"

namespace mw::data {
namespace {

// Encodes spans separately and joins them. No token crosses the boundary between prompt and answer, so the mask is
// exact with any vocabulary, and the prompt has the same tokens as in generation.
class ExampleBuilder {
 public:
  explicit ExampleBuilder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) { push(tokenizer.bos(), false); }

  void push(int id, bool loss) {
    example.ids.push_back(id);
    example.loss.push_back(loss);
  }
  void text(std::string_view text, bool loss) {
    for (const int id : tokenizer_.encode(text)) push(id, loss && !is_marker(id));
  }
  void answer(std::string_view text, bool loss) {
    for (const int id : tokenizer_.encode(text)) push(id, loss);
  }
  void end(bool loss) { push(tokenizer_.eos(), loss); }
  void set_markers(std::vector<int> ids) { markers_ = std::move(ids); }

  Example example;

 private:
  bool is_marker(int id) const { return std::find(markers_.begin(), markers_.end(), id) != markers_.end(); }

  const Tokenizer& tokenizer_;
  std::vector<int> markers_;
};

std::vector<int> turn_markers(const ChatTemplate& chat, const Tokenizer& tokenizer) {
  if (chat.is_none()) return {};
  std::vector<int> ids;
  for (const std::string_view marker : {start_of_turn(chat), end_of_turn(chat)}) {
    const std::vector<int> encoded = tokenizer.encode(marker);
    if (encoded.size() != 1 && chat.folder()) continue;  // a folder's template need not have markers
    if (encoded.size() != 1)
      throw Error({.id = "TOK-2",
                   .message = "the chat template does not fit the tokenizer",
                   .place = "data.chat",
                   .found = std::to_string(encoded.size()) + " tokens for " + std::string(marker),
                   .expected = "one token",
                   .fix = "choose the template of this model's family, or none"});
    ids.push_back(encoded[0]);
  }
  return ids;
}

std::string shown_answer(const Message& message, const ChatTemplate& chat) {
  return chat.is_none() ? message.text : std::string(trim(message.text));
}

Example encode(Conversation c, const DatasetOptions& options, const Tokenizer& tokenizer) {
  // Turns after the last answer carry no loss.
  const auto answered =
      std::find_if(c.messages.rbegin(), c.messages.rend(), [](const Message& m) { return m.role == "assistant"; });
  if (options.loss != LossOn::all) c.messages.erase(answered.base(), c.messages.end());

  ExampleBuilder out(tokenizer);
  if (c.messages.empty()) return std::move(out.example);  // no answer: no loss
  out.set_markers(turn_markers(options.chat, tokenizer));
  const auto is_answer = [&](size_t i) { return c.messages[i].role == "assistant"; };
  size_t message = 0;
  for (const Span& span : render_chat(options.chat, c.messages, c.tools)) {
    if (!span.assistant) {
      out.text(span.text, options.loss == LossOn::all);
      continue;
    }
    while (!is_answer(message)) ++message;  // each answer has one span, in the same order
    out.answer(span.text, options.loss != LossOn::completion || message >= c.completion);
    ++message;
  }
  if (options.chat.is_none() && c.messages.back().role == "assistant") out.end(true);
  if (c.completion < c.messages.size()) {
    out.example.answer = shown_answer(c.messages[c.completion], options.chat);
    c.messages.resize(c.completion);
    out.example.prompt = render_prompt(options.chat, c.messages, c.tools);
  }
  return std::move(out.example);
}

Example encode(PlainPair p, const DatasetOptions& options, const Tokenizer& tokenizer) {
  ExampleBuilder out(tokenizer);
  out.text(p.prompt, options.loss == LossOn::all);
  out.answer(p.completion, true);
  out.end(true);
  out.example.prompt = std::move(p.prompt);
  out.example.answer = std::move(p.completion);
  return std::move(out.example);
}

Example encode(const PlainText& t, const DatasetOptions&, const Tokenizer& tokenizer) {
  ExampleBuilder out(tokenizer);
  out.text(t.text, true);
  out.end(true);
  return std::move(out.example);
}

}  // namespace

Example encode_record(const Record& record, const DatasetOptions& options, const Tokenizer& tokenizer) {
  Example example = std::visit([&](const auto& r) { return encode(r, options, tokenizer); }, record);
  // Text that spells out <bos> would add a second one.
  if (std::count(example.ids.begin(), example.ids.end(), tokenizer.bos()) > 1)
    throw Error({.id = "TOK-1",
                 .message = "the text contains the beginning-of-text token",
                 .found = tokenizer.piece(tokenizer.bos()),
                 .expected = "text without it; it is added at the start",
                 .fix = "remove it from the data"});
  return example;
}

}  // namespace mw::data
