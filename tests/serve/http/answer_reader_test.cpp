// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/serve/http/answer_reader.h"

#include <gtest/gtest.h>

#include "core/base/json.h"
#include "core/data/tokenizer/chat_template.h"

namespace mw::serve {
namespace {

AnswerFormat format_of(const std::string& text) {
  return answer_format(
      {std::make_shared<const data::FolderTemplate>(text, "", Json::object(), "t.jinja"), options::ChatFormat::gemma3});
}
const AnswerFormat kGemma4 = format_of("{# <|tool_call> <|channel> #}");

std::string arguments_of(const std::string& text, const AnswerFormat& format = kGemma4) {
  const std::optional<ToolCall> call = parse_tool_call(format, text);
  return call ? call->name + " " + call->arguments : "no call";
}

TEST(AnswerFormat, IsThatOfTheTemplatesText) {
  EXPECT_EQ(kGemma4.notation, CallNotation::gemma);
  EXPECT_EQ(kGemma4.thought_begin, "<|channel>");
  const AnswerFormat function_gemma = format_of("{# <start_function_call> #}");
  EXPECT_EQ(function_gemma.quote, "<escape>");
  EXPECT_FALSE(function_gemma.has_thoughts());
  EXPECT_EQ(format_of("{# <tool_call> <think> #}").notation, CallNotation::json);
  EXPECT_EQ(format_of("{# <tool_call> <function= #}").notation, CallNotation::none);
  EXPECT_EQ(answer_format(options::ChatFormat::gemma3).notation, CallNotation::none);
  EXPECT_FALSE(answer_format(options::ChatFormat::gemma3).has_thoughts());
  EXPECT_TRUE(answer_format(options::ChatFormat::gemma4).has_thoughts());
}

TEST(ToolCall, ArgumentsInGemmasNotationBecomeJson) {
  EXPECT_EQ(arguments_of(R"(call:now{})"), "now {}");
  EXPECT_EQ(arguments_of(R"(call:get-weather.v2{city:<|"|>New "York", {NY}<|"|>,days:3})"),
            R"(get-weather.v2 {"city":"New \"York\", {NY}","days":3})");
  EXPECT_EQ(
      arguments_of("call:f{a:true, b:false ,c:null,d:None,e:-1.5e3,\nf:[1,<|\"|>x<|\"|>,{}],g:{<|\"|>h i<|\"|>:[]}}"),
      R"(f {"a":true,"b":false,"c":null,"d":null,"e":-1.5e3,"f":[1,"x",{}],"g":{"h i":[]}})");
  EXPECT_EQ(arguments_of(R"(call:f{a:two words,b:007,c:"in \"JSON\"","d":1,})"),
            R"(f {"a":"two words","b":"007","c":"in \"JSON\"","d":1})");
  EXPECT_EQ(arguments_of("call:f{a:<|\"|>line\nbreak\\<|\"|>}"), R"(f {"a":"line\nbreak\\"})");
  EXPECT_EQ(arguments_of(std::string("call:f{a:true\0b}", 16)), R"(f {"a":"true\u0000b"})");
  EXPECT_EQ(arguments_of("call:f{a:<escape>b<escape>}", format_of("{# <start_function_call> #}")), R"(f {"a":"b"})");
  for (const char* text :
       {"", "f{}", "call:{}", "call:f", "call:f{", "call:f{}}", "call:f{a}", "call:f{a:}", "call:f{:1}",
        "call:f{a:1 b:2}x", "call:f{a:[1}", "call:f{a:<|\"|>b}", "call:f{a:\"b}", "call:f g{}", "call:f{,}"})
    EXPECT_EQ(arguments_of(text), "no call") << text;
  EXPECT_EQ(arguments_of("call:f" + std::string(100000, '{')), "no call");
  EXPECT_EQ(arguments_of("call:f{a:" + std::string(100000, '[')), "no call");
}

TEST(ToolCall, ReadsJson) {
  const AnswerFormat format = format_of("{# <tool_call> #}");
  EXPECT_EQ(arguments_of("\n{\"name\": \"f\", \"arguments\": {\"b\": 1, \"a\": [true]}}\n", format),
            R"(f {"b":1,"a":[true]})");
  EXPECT_EQ(arguments_of(R"({"name": "f"})", format), "f {}");
  for (const char* text : {"", "{}", "[]", R"({"name": 1})", R"({"name": ""})", R"({"name": "f", "arguments": "{}"})"})
    EXPECT_EQ(arguments_of(text, format), "no call") << text;
}

// All answers are read in pieces of every length, too.
struct ReadAnswer {
  std::string content, reasoning, calls;
};
ReadAnswer read_answer(const std::string& text, const AnswerFormat& format = kGemma4,
                       const AnswerReading& reading = {.reads_calls = true}) {
  ReadAnswer first;
  for (size_t cut = 1; cut <= text.size(); ++cut) {
    AnswerReader reader(format, reading);
    AnswerPart all;
    for (size_t at = 0; at < text.size(); at += cut) append(all, reader.add(std::string_view(text).substr(at, cut)));
    append(all, reader.finish());
    EXPECT_EQ(reader.calls(), static_cast<int>(all.calls.size()));
    ReadAnswer now{all.content, all.reasoning, {}};
    for (const ToolCall& call : all.calls) now.calls += call.name + call.arguments + ";";
    if (cut == 1) first = now;
    EXPECT_EQ(now.content, first.content) << cut << " " << text;
    EXPECT_EQ(now.reasoning, first.reasoning) << cut << " " << text;
    EXPECT_EQ(now.calls, first.calls) << cut << " " << text;
  }
  return first;
}

TEST(AnswerReader, DividesContentThoughtsAndCalls) {
  ReadAnswer r = read_answer(
      "<|channel>thought\nI need it.\n<channel|>\nLet me see.<|tool_call>call:f{a:1}<tool_call|>\n<|tool_call>"
      "call:g{b:<|\"|><tool_call|><|\"|>}<tool_call|>");
  EXPECT_EQ(r.reasoning, "I need it.\n");
  EXPECT_EQ(r.content, "Let me see.");
  EXPECT_EQ(r.calls, R"(f{"a":1};g{"b":"<tool_call|>"};)");
  r = read_answer("  Plain <text> with 1 < 2 <|");
  EXPECT_EQ(r.content, "  Plain <text> with 1 < 2 <|");
  EXPECT_EQ(r.reasoning + r.calls, "");
  EXPECT_EQ(read_answer("\n\n").content, "\n\n");
  EXPECT_EQ(read_answer(" \n<|tool_call>call:f{}<tool_call|>\n").content, "");
  r = read_answer("<|channel>thought\n<|tool_call>call:f{}<tool_call|>");
  EXPECT_EQ(r.reasoning + r.content + r.calls, "f{};") << "a call ends a thought";
  EXPECT_EQ(read_answer("<|channel>thou").reasoning, "thou");
  EXPECT_EQ(read_answer("<|channel>other\nx<channel|>y").reasoning, "other\nx");
}

TEST(AnswerReader, TextThatIsNoCallStaysContent) {
  for (const char* text :
       {"a<|tool_call>call:f{a:}<tool_call|>b", "<|tool_call>f()<tool_call|>", "<|tool_call>call:f{a:1"}) {
    const ReadAnswer r = read_answer(text);
    EXPECT_EQ(r.content, text);
    EXPECT_EQ(r.calls, "");
  }
  EXPECT_EQ(read_answer("<|tool_call>call:f{a:1}").calls, R"(f{"a":1};)") << "complete but for its end";
  EXPECT_EQ(read_answer("<|tool_call>call:f{}<tool_call|>", kGemma4, {}).content, "<|tool_call>call:f{}<tool_call|>")
      << "the request has no tools";
}

TEST(AnswerReader, ContinuesWhatThePromptBegins) {
  const AnswerReading named{.reads_calls = true, .only_one_call = true, .forced_call = forced_call(kGemma4, "f")};
  EXPECT_EQ(read_answer("a:1}<tool_call|><|tool_call>call:g{}<tool_call|>", kGemma4, named).calls, R"(f{"a":1};)");
  const AnswerReading any{.reads_calls = true, .forced_call = forced_call(kGemma4, "")};
  EXPECT_EQ(read_answer("g{}<tool_call|>", kGemma4, any).calls, "g{};");
  EXPECT_EQ(read_answer("never", kGemma4, any).content, "<|tool_call>call:never");
  const AnswerFormat qwen = format_of("{# <tool_call> <think> #}");
  const AnswerReading json{.reads_calls = true, .forced_call = forced_call(qwen, "f")};
  EXPECT_EQ(read_answer("\"a\": 1}}\n</tool_call>", qwen, json).calls, R"(f{"a":1};)");
  const ReadAnswer r = read_answer("Hm.\n</think>\n\nYes.", qwen, {.begins_with_thought = true});
  EXPECT_EQ(r.reasoning, "Hm.\n");
  EXPECT_EQ(r.content, "Yes.");
}

}  // namespace
}  // namespace mw::serve
