// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/tokenizer/chat.h"

#include "tests/data/support.h"

namespace mw::data::testing {
namespace {

std::string whole(options::ChatFormat format, const std::vector<Message>& messages) {
  std::string text;
  for (const ChatSpan& s : render_chat(format, messages)) text += s.text;
  return text;
}
std::string answers(options::ChatFormat format, const std::vector<Message>& messages) {
  std::string text;
  for (const ChatSpan& s : render_chat(format, messages))
    if (s.assistant) text += "[" + s.text + "]";
  return text;
}

const std::vector<Message> kTurns = {
    {"user", " What is 2+2?\n"}, {"assistant", "4 "}, {"user", "Sure?"}, {"assistant", "Yes"}};

TEST(Chat, Gemma2And3TrimAndCloseEachTurn) {
  const std::string expected =
      "<start_of_turn>user\nWhat is 2+2?<end_of_turn>\n<start_of_turn>model\n4<end_of_turn>\n"
      "<start_of_turn>user\nSure?<end_of_turn>\n<start_of_turn>model\nYes<end_of_turn>\n";
  EXPECT_EQ(whole(options::ChatFormat::gemma2, kTurns), expected);
  EXPECT_EQ(whole(options::ChatFormat::gemma3, kTurns), expected);
  EXPECT_EQ(answers(options::ChatFormat::gemma3, kTurns), "[4<end_of_turn>][Yes<end_of_turn>]");
}

TEST(Chat, Gemma3PutsSystemTextBeforeFirstUserTurn) {
  EXPECT_EQ(whole(options::ChatFormat::gemma3,
                  {{"system", "Be brief."}, {"user", "Hi"}, {"assistant", "Hi."}, {"user", "Bye"}}),
            "<start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\nHi.<end_of_turn>\n"
            "<start_of_turn>user\nBye<end_of_turn>\n");
}

TEST(Chat, Gemma4HasOwnMarkersAndSystemTurn) {
  EXPECT_EQ(render_prompt(options::ChatFormat::gemma4, {{"user", "What is 2+2?"}}),
            "<|turn>user\nWhat is 2+2?<turn|>\n<|turn>model\n");
  EXPECT_EQ(whole(options::ChatFormat::gemma4, {{"system", " Be brief. "}, {"user", "Hi"}, {"assistant", "Hi."}}),
            "<|turn>system\nBe brief.<turn|>\n<|turn>user\nHi<turn|>\n<|turn>model\nHi.<turn|>\n");
  EXPECT_EQ(answers(options::ChatFormat::gemma4, {{"user", "Hi"}, {"assistant", "Hi."}}), "[Hi.<turn|>]");
}

TEST(Chat, Gemma4KeepsOnlyThinkingOfLastAnswer) {
  const std::string thinking = "<|channel>thought\nhmm\n<channel|>4";
  EXPECT_EQ(answers(options::ChatFormat::gemma4,
                    {{"user", "a"}, {"assistant", thinking}, {"user", "b"}, {"assistant", thinking}}),
            "[4<turn|>][" + thinking + "<turn|>]");
}

TEST(Chat, PromptIsRenderedRowUpToAnswer) {
  for (const options::ChatFormat f : {options::ChatFormat::gemma2, options::ChatFormat::gemma3,
                                      options::ChatFormat::gemma4, options::ChatFormat::none}) {
    const std::string row = whole(f, kTurns);
    const std::string prompt = render_prompt(f, {kTurns.begin(), kTurns.end() - 1});
    EXPECT_TRUE(row.starts_with(prompt)) << prompt;
    const std::string after = row.substr(prompt.size());
    EXPECT_EQ(after, f == options::ChatFormat::none ? "Yes" : "Yes" + std::string(end_of_turn(f)) + "\n");
  }
}

TEST(Chat, TrimRemovesUnicodeSpaces) {
  EXPECT_EQ(render_prompt(options::ChatFormat::gemma3, {{"user", "\u3000\u00a0 x\ty \r\n\u2028"}}),
            "<start_of_turn>user\nx\ty<end_of_turn>\n<start_of_turn>model\n");
}

TEST(Chat, RejectsTurnsThatTemplateCannotExpress) {
  const auto id = [](options::ChatFormat f, const std::vector<Message>& m) {
    return problem_of([&] { render_chat(f, m); }).id;
  };
  EXPECT_EQ(id(options::ChatFormat::gemma2, {{"system", "x"}, {"user", "y"}}), "TOK-2");
  EXPECT_EQ(id(options::ChatFormat::gemma3, {{"assistant", "x"}}), "TOK-2");
  EXPECT_EQ(id(options::ChatFormat::gemma3, {{"user", "x"}, {"user", "y"}}), "TOK-2");
  EXPECT_EQ(id(options::ChatFormat::gemma4, {{"user", "x"}, {"system", "y"}}), "TOK-2");
  EXPECT_EQ(id(options::ChatFormat::gemma3, {{"system", "x"}}), "TOK-2");
  EXPECT_EQ(id(options::ChatFormat::gemma3, {}), "TOK-2");
}

}  // namespace
}  // namespace mw::data::testing
