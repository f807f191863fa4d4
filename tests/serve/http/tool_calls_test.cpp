// SPDX-License-Identifier: GPL-3.0-or-later
// Chats whose template has tools and thoughts in the notation of Gemma 4, with markers that are special tokens.
#include "core/base/json.h"
#include "core/data/tokenizer/chat_template.h"
#include "tests/base/scratch.h"
#include "tests/serve/http/server_fixture.h"

namespace mw::serve {
namespace {

class ToolCallsTest : public ServerFixture {
 protected:
  ToolCallsTest() {
    Json file = read_json(MW_RESOURCES "/base-model/tokenizer.json");
    int id = static_cast<int>(file["model"]["vocab"].size());
    for (const char* marker :
         {"<|tool_call>", "<tool_call|>", "<|tool_response>", "<|\"|>", "<|channel>", "<channel|>"})
      file["added_tokens"].push_back({{"id", id++}, {"content", marker}, {"special", true}, {"normalized", false}});
    folder.put("tokenizer.json", file.dump());
    tokenizer = data::load_tokenizer(folder.path());
    chat = data::ChatTemplate(std::make_shared<const data::FolderTemplate>(
                                  "{% for t in tools or [] %}{{ t.function.name }}{% endfor %}{% for m in messages "
                                  "%}<{{ m.role }}>{{ m.content }}"
                                  "{% for c in m.tool_calls or [] %}<|tool_call>call:{{ c.function.name "
                                  "}}{}<tool_call|>{% endfor %}{% endfor %}"
                                  "{% if not enable_thinking %}<|channel>thought\n<channel|>{% endif %}",
                                  "", Json::object(), "t.jinja"),
                              options::ChatFormat::gemma4);
  }
  void answer_with(const std::string& text) {
    set_script(text);
    executor.stop_after = static_cast<int>(executor.script.size());
  }
  Json ask(const Json& more) {
    Json body{{"messages", {{{"role", "user"}, {"content", "Hi"}}}}};
    body.update(more);
    const Answer a = post("/v1/chat/completions", body.dump());
    EXPECT_EQ(a.status, 200) << a.text;
    return a.json()["choices"][0];
  }
  // The message and the finish reason of a stream, put together.
  Json stream(const Json& more) {
    Json body{{"messages", {{{"role", "user"}, {"content", "Hi"}}}}, {"stream", true}};
    body.update(more);
    const Answer a = post("/v1/chat/completions", body.dump());
    Json out{{"content", ""}, {"reasoning_content", ""}, {"tool_calls", Json::array()}};
    for (const std::string& event : a.events()) {
      const Json chunk = Json::parse(event, nullptr, false);
      if (!chunk.is_object()) continue;
      const Json& choice = chunk["choices"][0];
      for (const char* key : {"content", "reasoning_content"})
        out[key] = out[key].get<std::string>() + choice["delta"].value(key, "");
      for (const Json& call : choice["delta"].value("tool_calls", Json::array())) {
        EXPECT_EQ(call["index"], out["tool_calls"].size());
        out["tool_calls"].push_back(call);
      }
      out["finish_reason"] = choice["finish_reason"];
    }
    return out;
  }

  test::Scratch folder;
  const Json tools = Json::parse(R"({"tools": [{"type": "function", "function": {"name": "sum"}},
                                               {"type": "function", "function": {"name": "now"}}]})");
  Json tools_and(const Json& more) const {
    Json out = tools;
    out.update(more);
    return out;
  }
};

const char* const kTwoCalls =
    "<|channel>thought\nI add.<channel|>Adding. <|tool_call>call:sum{a:1,b:<|\"|>two<|\"|>}<tool_call|>"
    "<|tool_call>call:now{}<tool_call|>";

TEST_F(ToolCallsTest, AnswersHaveThem) {
  answer_with(kTwoCalls);
  start();
  const Json whole = ask(tools), streamed = stream(tools);
  EXPECT_EQ(whole["finish_reason"], "tool_calls");
  EXPECT_EQ(whole["message"]["content"], "Adding. ");
  EXPECT_EQ(whole["message"]["reasoning_content"], "I add.");
  const Json& calls = whole["message"]["tool_calls"];
  ASSERT_EQ(calls.size(), 2U) << whole;
  EXPECT_EQ(calls[0]["type"], "function");
  EXPECT_EQ(calls[0]["function"], (Json{{"name", "sum"}, {"arguments", R"({"a":1,"b":"two"})"}}));
  EXPECT_EQ(calls[1]["function"], (Json{{"name", "now"}, {"arguments", "{}"}}));
  EXPECT_NE(calls[0]["id"], calls[1]["id"]);
  EXPECT_FALSE(calls[0].contains("index"));
  EXPECT_EQ(streamed["finish_reason"], "tool_calls");
  EXPECT_EQ(streamed["content"], "Adding. ");
  EXPECT_EQ(streamed["reasoning_content"], "I add.");
  ASSERT_EQ(streamed["tool_calls"].size(), 2U) << streamed;
  EXPECT_EQ(streamed["tool_calls"][0]["function"], calls[0]["function"]);
  const std::vector<int> stops = executor.last_request().sampling.stop_ids;
  EXPECT_NE(std::find(stops.begin(), stops.end(), tokenizer->find("<|tool_response>")), stops.end());
}

TEST_F(ToolCallsTest, OnlyCallsGiveNullAsContent) {
  answer_with("<|tool_call>call:now{}<tool_call|>");
  start();
  const Json whole = ask(tools);
  EXPECT_TRUE(whole["message"]["content"].is_null()) << whole;
  EXPECT_FALSE(whole["message"].contains("reasoning_content"));
  EXPECT_EQ(ask(tools_and({{"max_tokens", 3}}))["finish_reason"], "length");
}

TEST_F(ToolCallsTest, CallsMayEndWithTheAnswer) {
  answer_with("<|tool_call>call:now{}");
  start();
  EXPECT_EQ(ask(tools)["finish_reason"], "tool_calls");
  const Json streamed = stream(tools);
  EXPECT_EQ(streamed["finish_reason"], "tool_calls");
  EXPECT_EQ(streamed["tool_calls"].size(), 1U) << streamed;
}

TEST_F(ToolCallsTest, OneCallAtMostIfTheClientWantsNoMore) {
  answer_with(kTwoCalls);
  start();
  EXPECT_EQ(ask(tools_and({{"parallel_tool_calls", false}}))["message"]["tool_calls"].size(), 1U);
}

TEST_F(ToolCallsTest, AnswersWithoutToolsHaveThoughtsOnly) {
  answer_with(kTwoCalls);
  start();
  for (const Json& more : {Json::object(), tools_and({{"tool_choice", "none"}})}) {
    const Json whole = ask(more);
    EXPECT_EQ(whole["finish_reason"], "stop");
    EXPECT_EQ(whole["message"]["reasoning_content"], "I add.");
    EXPECT_EQ(whole["message"]["content"], "Adding. call:sum{a:1,b:two}call:now{}") << "special tokens are no text";
    EXPECT_FALSE(whole["message"].contains("tool_calls"));
  }
}

TEST_F(ToolCallsTest, ForcedCallsBeginInThePrompt) {
  const std::string marker = "<|tool_call>";
  const auto prompt = [&] { return tokenizer->decode(executor.last_request().prompt_ids, data::Specials::keep); };
  answer_with("sum{a:1}<tool_call|>");
  start();
  Json whole = ask(tools_and({{"tool_choice", "required"}}));
  EXPECT_TRUE(prompt().ends_with(marker + "call:")) << prompt();
  EXPECT_EQ(whole["finish_reason"], "tool_calls");
  EXPECT_EQ(whole["message"]["tool_calls"][0]["function"]["arguments"], R"({"a":1})");
  answer_with("a:1}<tool_call|>");
  const Json named = tools_and({{"tool_choice", {{"type", "function"}, {"function", {{"name", "sum"}}}}}});
  whole = ask(named);
  EXPECT_TRUE(prompt().ends_with(marker + "call:sum{")) << prompt();
  EXPECT_EQ(whole["finish_reason"], "stop") << "as in the OpenAI API";
  EXPECT_EQ(whole["message"]["tool_calls"][0]["function"], (Json{{"name", "sum"}, {"arguments", R"({"a":1})"}}));
  EXPECT_EQ(stream(named)["tool_calls"][0]["function"]["arguments"], R"({"a":1})");
}

TEST_F(ToolCallsTest, ChoicesThatCannotBeHeldAreRefused) {
  start();
  const auto expect_refused = [&](const Json& more, const std::string& reason) {
    Json body{{"messages", {{{"role", "user"}, {"content", "Hi"}}}}};
    body.update(more);
    const Answer a = post("/v1/chat/completions", body.dump());
    EXPECT_EQ(a.status, 400) << a.text;
    EXPECT_EQ(a.json()["error"]["param"], "tool_choice");
    EXPECT_NE(a.json()["error"]["message"].get<std::string>().find(reason), std::string::npos) << a.text;
  };
  const auto named = [](const std::string& name) {
    return Json{{"tool_choice", {{"type", "function"}, {"function", {{"name", name}}}}}};
  };
  expect_refused({{"tool_choice", "required"}}, "no tools");
  expect_refused(named("sum"), "no tools");
  expect_refused(tools_and(named("product")), "does not have this tool");
  expect_refused(tools_and({{"tool_choice", "sometimes"}}), "not a choice of a tool");
  expect_refused(tools_and({{"tool_choice", {{"type", "function"}}}}), "not a choice of a tool");
}

TEST_F(ToolCallsTest, ThoughtsThatThePromptBeginsAreThoughts) {
  chat = data::ChatTemplate(
      std::make_shared<const data::FolderTemplate>("{% for m in messages %}{{ m.content }}{% endfor %}<think>\n", "",
                                                   Json::object(), "t.jinja"),
      options::ChatFormat::gemma3);
  answer_with("Hm.</think>\n\nYes.");
  start();
  const Json whole = ask(Json::object());
  EXPECT_EQ(whole["message"]["reasoning_content"], "Hm.");
  EXPECT_EQ(whole["message"]["content"], "Yes.");
}

}  // namespace
}  // namespace mw::serve
