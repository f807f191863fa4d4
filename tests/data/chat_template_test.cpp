// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/tokenizer/chat_template.h"

#include <gmock/gmock.h>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/data/dataset/record.h"
#include "tests/data/support.h"

namespace mw::data {
namespace {

using testing::fixture;
using testing::problem_of;

const std::filesystem::path kBaseModel = std::filesystem::path(MW_RESOURCES) / "base-model";
const Json kTokens{{"bos_token", "<bos>"}, {"eos_token", "<eos>"}};

ChatTemplate made(const std::string& text, const std::string& tool_text = {}) {
  return {std::make_shared<const FolderTemplate>(text, tool_text, kTokens, "t.jinja"), options::ChatFormat::gemma3};
}
// "prompt[answer]rest"
std::string shown(const ChatTemplate& chat, const std::vector<Message>& messages) {
  std::string out;
  for (const ChatSpan& s : render_chat(chat, messages)) out += s.assistant ? "[" + s.text + "]" : s.text;
  return out;
}

const std::vector<std::vector<Message>> kConversations{
    {{"user", " Hi "}, {"assistant", " Hello. "}},
    {{"system", "Be brief."}, {"user", "a"}, {"assistant", "b"}},
    {{"user", "a"}, {"assistant", "b"}, {"user", "a"}, {"assistant", "b"}, {"user", "c"}},
    {{"user", "x"}, {"assistant", ""}, {"user", "\n"}, {"assistant", "Sûr <b>"}}};

TEST(ChatTemplate, OfTheBaseModelGivesTheTokensOfTheBuiltInOne) {
  const ChatTemplate folder = load_chat_template(kBaseModel, options::ChatFormat::gemma3),
                     builtin = options::ChatFormat::gemma3;
  ASSERT_NE(folder.folder(), nullptr);
  EXPECT_EQ(folder.folder()->published_as(), "Meshwright's base model");
  EXPECT_EQ(start_of_turn(folder), start_of_turn(builtin));
  EXPECT_EQ(end_of_turn(folder), end_of_turn(builtin));
  EXPECT_FALSE(folder == builtin);
  const auto tokenizer = load_tokenizer(kBaseModel);
  for (const auto& messages : kConversations) {
    EXPECT_EQ(shown(folder, messages), shown(builtin, messages));
    EXPECT_EQ(render_prompt(folder, messages), render_prompt(builtin, messages));
    for (const options::LossOn loss : {options::LossOn::completion, options::LossOn::assistant, options::LossOn::all}) {
      DatasetOptions options;
      options.loss = loss;
      const Conversation talk{.messages = messages,
                              .completion = messages.back().role == "user" ? 3u : messages.size() - 1};
      options.chat = folder;
      const Example a = encode_record(talk, options, *tokenizer);
      options.chat = builtin;
      const Example b = encode_record(talk, options, *tokenizer);
      EXPECT_EQ(a.ids, b.ids);
      EXPECT_EQ(a.loss, b.loss);
      EXPECT_EQ(a.prompt, b.prompt);
      EXPECT_EQ(a.answer, b.answer);
    }
  }
}

TEST(ChatTemplate, KnowsThePublishedTextOfGemma1And2) {
  const std::string text =
      "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% "
      "endif %}"
      "{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception("
      "'Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if (message['role'] == "
      "'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}{{ "
      "'<start_of_turn>' + "
      "role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}{% if add_generation_prompt %}"
      "{{'<start_of_turn>model\n'}}{% endif %}";
  EXPECT_EQ(made(text).folder()->published_as(), "google/gemma-7b-it and gemma-2-*-it");
  EXPECT_EQ(made(text + " ").folder()->published_as(), "");
}

TEST(ChatTemplate, ATemplateMentionsItsVariables) {
  const ChatTemplate chat = made("{% if enable_thinking %}{{ my_tools }}{% endif %}{{ messages[0].content }}");
  EXPECT_TRUE(chat.folder()->mentions("enable_thinking"));
  EXPECT_FALSE(chat.folder()->mentions("tools"));
  EXPECT_FALSE(chat.folder()->mentions("thinking"));
  EXPECT_EQ(chat.folder()->render_prompt({{"user", "a"}}, {}, {{"enable_thinking", true}, {"my_tools", 2}}), "2a");
}

TEST(ChatTemplate, GenerationBlocksMarkTheAnswers) {
  const ChatTemplate chat = made(
      "{{ bos_token }}{% for m in messages %}{% if m.role == 'assistant' %}A:{% generation %} {{ m.content }};"
      "{% endgeneration %}{% else %}U:{{ m.content }};{% endif %}{% endfor %}{% if add_generation_prompt %}A:{% endif "
      "%}");
  EXPECT_EQ(shown(chat, {{"user", "a"}, {"assistant", "b"}, {"user", "c"}, {"assistant", "d"}}),
            "U:a;A:[ b;]U:c;A:[ d;]");
}

TEST(ChatTemplate, TrainsTheAnswerBehindTheServedPrompt) {
  // The prompt of a server ends in an empty thought, and finished turns lose theirs.
  const ChatTemplate chat = made(
      "{% for m in messages %}<{{ m.role }}>{{ m.content.split('</t>')[-1] if not loop.last else m.content }}<end>\n{% "
      "endfor %}"
      "{% if add_generation_prompt %}<assistant><t></t>{% endif %}");
  const std::vector<Message> talk{{"user", "a"}, {"assistant", "<t>hm</t>b"}, {"user", "c"}, {"assistant", "d"}};
  EXPECT_EQ(shown(chat, talk), "<user>a<end>\n<assistant>[b<end>]\n<user>c<end>\n<assistant><t></t>[d<end>]\n");
  EXPECT_EQ(end_of_turn(chat), "<end>");
  EXPECT_EQ(start_of_turn(chat), "<user>");
}

TEST(ChatTemplate, RendersToolsAndToolCalls) {
  const ChatTemplate chat =
      made("no tools",
           "{{ tools[0].name }}{% for m in messages %}|{{ m.role }}:{{ m.content }}"
           "{{ m.tool_calls|tojson if m.tool_calls }}{% endfor %}{{ '|' if add_generation_prompt }}");
  DatasetOptions options;
  options.chat = chat;
  const Json row = Json::parse(R"({"tools": "[{\"name\": \"f\"}]", "messages": [{"role": "user", "content": "a"},
      {"role": "assistant", "tool_calls": [{"x": 1}]}, {"role": "tool", "content": "2", "name": "f"},
      {"role": "assistant", "content": "b"}]})");
  const auto talk = std::get<Conversation>(read_record(row, options::Format::messages, options));
  std::string text;
  for (const ChatSpan& s : render_chat(chat, talk.messages, talk.tools)) text += s.text;
  EXPECT_EQ(text, "f|user:a|assistant:[{\"x\": 1}]|tool:2|assistant:b");
  options.chat = options::ChatFormat::gemma3;
  EXPECT_EQ(problem_of([&] { read_record(row, options::Format::messages, options); }).id, "DATA-ROW");
}

TEST(ChatTemplate, IsFoundInTheFilesOfAFolder) {
  const test::Scratch scratch;
  const auto prompt = [&] {
    return render_prompt(load_chat_template(scratch.path(), options::ChatFormat::gemma2), {{"user", "a"}});
  };
  EXPECT_EQ(prompt(), "<start_of_turn>user\na<end_of_turn>\n<start_of_turn>model\n");
  scratch.put("chat_template.json", R"({"chat_template": "json"})");
  EXPECT_EQ(prompt(), "json");
  scratch.put("tokenizer_config.json",
              R"({"bos_token": {"content": "<s>"}, "chat_template": [{"name": "tool_use", "template": "t"},
                  {"name": "default", "template": "{{ bos_token }}list"}]})");
  EXPECT_EQ(prompt(), "list");
  scratch.put("chat_template.jinja", "file\n");
  EXPECT_EQ(prompt(), "file");
  scratch.put("chat_template.jinja", "a\n{{ x | nothing }}");
  const Problem p = problem_of(prompt);
  EXPECT_EQ(p.id, "TEMPLATE");
  EXPECT_THAT(p.file, ::testing::EndsWith("chat_template.jinja"));
  EXPECT_EQ(p.place, "line 2, column 8");
}

TEST(ChatTemplate, RefusesWithTheWordsOfTheTemplate) {
  const Problem p = problem_of([] {
    render_prompt(made("{{ raise_exception('Only users: ' + messages[0].role) }}"), {{"user", "a"}});
  });
  EXPECT_EQ(p.id, "TOK-2");
  EXPECT_THAT(p.message, ::testing::HasSubstr("Only users: user"));
}

}  // namespace
}  // namespace mw::data
