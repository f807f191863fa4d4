// SPDX-License-Identifier: Apache-2.0
#include "core/data/dataset/record.h"

#include <algorithm>

#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace mw::data {
namespace {

std::string keys_of(const Json& row) {
  const std::string keys = joined(row.items(), ", ", [](const auto& member) { return member.key(); });
  return keys.empty() ? "no keys" : "keys " + excerpt(keys, 200);
}

[[noreturn]] void refuse(const std::string& message, const std::string& found, const std::string& expected,
                         const std::string& fix = {}) {
  throw Error("DATA-ROW", message, {.found = found, .expected = expected, .fix = fix});
}

std::string column(const DatasetOptions& options, const std::string& role, const std::string& usual) {
  const auto named = options.columns.find(role);
  return named == options.columns.end() || named->second.empty() ? usual : named->second;
}
bool has_column(const DatasetOptions& options, const std::string& role) {
  return !column(options, role, "").empty();
}

const Json& required(const Json& row, const std::string& key) {
  const auto found = row.find(key);
  if (found == row.end())
    refuse("the row has no \"" + key + "\"", keys_of(row), "\"" + key + "\"",
           "set the column names in data.columns, or skip invalid rows with data.on_error");
  return *found;
}
std::string text_in(const Json& value, const std::string& key) {
  if (value.is_string()) return value.get<std::string>();
  refuse("\"" + key + "\" is not a string", value.type_name(), "a string");
}
std::string required_text(const Json& row, const std::string& key) {
  return text_in(required(row, key), key);
}
std::string optional_text(const Json& row, const std::string& key) {
  const auto found = key.empty() ? row.end() : row.find(key);
  return found == row.end() || found->is_null() ? std::string() : text_in(*found, key);
}

std::string role_of(const std::string& name, const DatasetOptions& options) {
  if (name == "user" || name == "human") return "user";
  if (name == "assistant" || name == "gpt" || name == "model" || name == "chatgpt") return "assistant";
  if (name == "system" || name == "developer") return "system";
  if (options.chat.folder()) return name;  // the template accepts or refuses it
  refuse("a message has an unsupported role", name, "system, user or assistant");
}

// A string, or a list of text parts.
std::string content_text(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) refuse("the content of a message is not a string", content.type_name(), "a string");
  std::string text;
  for (const Json& part : content) {
    const auto type = part.is_object() ? part.find("type") : part.end();
    if (!part.is_object() || type == part.end() || *type != "text")
      refuse("a message contains a part that is not text", excerpt(part.dump()), "parts of type text");
    text += required_text(part, "text");
  }
  return text;
}

// Members for the template, e.g. tool_calls.
Json other_fields(const Json& m, const char* role, const char* content) {
  Json out;
  for (const auto& member : m.items())
    if (member.key() != role && member.key() != content) out[member.key()] = member.value();
  return out;
}

Message read_message(const Json& m, const DatasetOptions& options) {
  if (!m.is_object()) refuse("a message is not an object", m.type_name(), "role and content");
  const char* role = m.contains("from") && !m.contains("role") ? "from" : "role";
  const char* content = m.contains("value") && !m.contains("content") ? "value" : "content";
  if (!options.chat.folder()) return {role_of(required_text(m, role), options), content_text(required(m, content))};
  // A call of a tool has no text.
  const Json* text = find_member(m, content);
  if (!text && !m.contains("tool_calls")) required(m, content);
  return {role_of(required_text(m, role), options), text ? content_text(*text) : std::string(),
          other_fields(m, role, content)};
}

// A list, or a string with the JSON text of one, as cells of tables have it.
void append_messages(const Json& list, const std::string& key, const DatasetOptions& options,
                     std::vector<Message>& out) {
  if (list.is_string()) {
    const Json parsed = Json::parse(list.get_ref<const std::string&>(), nullptr, false);
    if (!parsed.is_array())
      refuse("\"" + key + "\" is not a list of messages", excerpt(list.get<std::string>(), 40), "an array");
    return append_messages(parsed, key, options, out);
  }
  if (!list.is_array()) refuse("\"" + key + "\" is not a list of messages", list.type_name(), "an array");
  for (const Json& m : list) out.push_back(read_message(m, options));
}

size_t last_answer(const std::vector<Message>& messages) {
  size_t i = messages.size();
  while (i > 0 && messages[i - 1].role != "assistant") --i;
  return i == 0 ? messages.size() : i - 1;
}

// A list, or its JSON as a string, as data sets on the hub keep it.
void add_tools(const Json& row, const DatasetOptions& options, Conversation& c) {
  const Json* tools = options.chat.folder() ? find_member(row, "tools") : nullptr;
  if (!tools) return;
  c.tools = tools->is_string() ? parse_json(tools->get<std::string>(), "tools") : *tools;
  if (!c.tools.is_array()) refuse("\"tools\" is not a list", c.tools.type_name(), "an array of tools");
}

Conversation conversation(const Json& row, const std::string& key, const DatasetOptions& options) {
  Conversation c;
  if (const std::string system = optional_text(row, column(options, "system", "system")); !system.empty())
    c.messages.push_back({"system", system});
  append_messages(required(row, key), key, options, c.messages);
  add_tools(row, options, c);
  c.completion = last_answer(c.messages);
  return c;
}

std::string join_input(std::string prompt, const std::string& input) {
  return input.empty() ? prompt : prompt + "\n" + input;
}

Conversation alpaca(const Json& row, const DatasetOptions& options) {
  Conversation c;
  if (const std::string system = optional_text(row, column(options, "system", "system")); !system.empty())
    c.messages.push_back({"system", system});
  if (const auto history = row.find("history"); history != row.end() && !history->is_null()) {
    if (!history->is_array()) refuse("\"history\" is not a list", history->type_name(), "pairs of question and answer");
    for (const Json& turn : *history) {
      if (!turn.is_array() || turn.size() != 2)
        refuse("an entry of \"history\" is not a pair", turn.type_name(), "pairs of question and answer");
      c.messages.push_back({"user", text_in(turn[0], "history")});
      c.messages.push_back({"assistant", text_in(turn[1], "history")});
    }
  }
  c.messages.push_back({"user", join_input(required_text(row, column(options, "prompt", "instruction")),
                                           optional_text(row, column(options, "input", "input")))});
  c.completion = c.messages.size();
  c.messages.push_back({"assistant", required_text(row, column(options, "completion", "output"))});
  return c;
}

Record prompt_completion(const Json& row, const DatasetOptions& options) {
  const std::string prompt_key = column(options, "prompt", "prompt");
  const std::string completion_key = column(options, "completion", "completion");
  const Json &prompt = required(row, prompt_key), &completion = required(row, completion_key);
  const std::string system = optional_text(row, column(options, "system", ""));
  Conversation c;
  if (!system.empty()) c.messages.push_back({"system", system});
  if (prompt.is_array()) {
    append_messages(prompt, prompt_key, options, c.messages);
    c.completion = c.messages.size();
    append_messages(completion, completion_key, options, c.messages);
    add_tools(row, options, c);
    if (c.completion == c.messages.size() || c.messages[c.completion].role != "assistant")
      refuse("\"" + completion_key + "\" does not start with an answer", excerpt(completion.dump()),
             "a message with role assistant");
    return c;
  }
  const std::string question =
      join_input(text_in(prompt, prompt_key), optional_text(row, column(options, "input", "")));
  const std::string answer = text_in(completion, completion_key);
  if (options.chat.is_none()) return PlainPair{system.empty() ? question : system + "\n" + question, answer};
  c.messages.push_back({"user", question});
  c.completion = c.messages.size();
  c.messages.push_back({"assistant", answer});
  return c;
}

}  // namespace

options::Format detect_format(const Json& row, const DatasetOptions& options) {
  if (options.format != options::Format::automatic) return options.format;
  if (has_column(options, "messages")) return options::Format::messages;
  if (has_column(options, "text")) return options::Format::text;
  if (has_column(options, "prompt") || has_column(options, "completion")) return options::Format::prompt_completion;
  if (row.contains("messages")) return options::Format::messages;
  if (row.contains("conversations")) return options::Format::sharegpt;
  if (row.contains("prompt") && row.contains("completion")) return options::Format::prompt_completion;
  if (row.contains("instruction") && row.contains("output")) return options::Format::alpaca;
  if (row.contains("text")) return options::Format::text;
  throw Error("DATA-FORMAT", "the format of the data cannot be detected",
              {.place = "data.columns",
               .found = keys_of(row),
               .expected = "prompt and completion, messages, conversations, instruction and output, or text",
               .fix = "set the column names, e.g. data.columns.prompt and data.columns.completion"});
}

Record read_record(const Json& row, options::Format format, const DatasetOptions& options) {
  switch (format) {
    case options::Format::messages:
      return conversation(row, column(options, "messages", "messages"), options);
    case options::Format::sharegpt:
      return conversation(row, column(options, "messages", "conversations"), options);
    case options::Format::alpaca:
      return alpaca(row, options);
    case options::Format::text:
      return PlainText{required_text(row, column(options, "text", "text"))};
    case options::Format::prompt_completion:
    case options::Format::automatic:
      break;
  }
  return prompt_completion(row, options);
}

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
      throw Error("TOK-2", "the chat template does not fit the tokenizer",
                  {.place = "data.chat",
                   .found = counted(encoded.size(), "token") + " for " + std::string(marker),
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
  if (options.loss != options::LossOn::all) c.messages.erase(answered.base(), c.messages.end());

  ExampleBuilder out(tokenizer);
  if (c.messages.empty()) return std::move(out.example);  // no answer: no loss
  out.set_markers(turn_markers(options.chat, tokenizer));
  const auto is_answer = [&](size_t i) { return c.messages[i].role == "assistant"; };
  size_t message = 0;
  for (const ChatSpan& span : render_chat(options.chat, c.messages, c.tools)) {
    if (!span.assistant) {
      out.text(span.text, options.loss == options::LossOn::all);
      continue;
    }
    while (!is_answer(message)) ++message;  // each answer has one span, in the same order
    out.answer(span.text, options.loss != options::LossOn::completion || message >= c.completion);
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
  out.text(p.prompt, options.loss == options::LossOn::all);
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
    throw Error("TOK-1", "the text contains the beginning-of-text token",
                {.found = tokenizer.piece(tokenizer.bos()),
                 .expected = "text without it; it is added at the start",
                 .fix = "remove it from the data"});
  return example;
}

}  // namespace mw::data
