// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/dataset/dataset.h"

#include <algorithm>

#include "core/base/json.h"
#include "core/base/text.h"
#include "tests/data/support.h"

namespace mw::data::testing {
namespace {

DatasetOptions options(const std::filesystem::path& path) {
  DatasetOptions o;
  o.path = path;
  return o;
}
Dataset load(const DatasetOptions& o) {
  return load_dataset(o, bpe());
}
// The text of the tokens that carry loss, and of all tokens after bos.
std::string learned(const Example& e) {
  std::vector<int> ids;
  for (size_t i = 0; i < e.ids.size(); ++i)
    if (e.loss[i]) ids.push_back(e.ids[i]);
  return bpe().decode(ids, Specials::keep);
}
std::string all_text(const Example& e) {
  return bpe().decode(std::span(e.ids).subspan(1), Specials::keep);
}
void is_sound(const Example& e) {
  ASSERT_EQ(e.ids.size(), e.loss.size());
  EXPECT_EQ(e.ids[0], bpe().bos());
  EXPECT_EQ(e.loss[0], 0);
  EXPECT_EQ(std::count(e.ids.begin(), e.ids.end(), bpe().bos()), 1);
}

const std::string kTurn = "<start_of_turn>", kEnd = "<end_of_turn>";
std::string asked(const std::string& prompt) {
  return kTurn + "user\n" + prompt + kEnd + "\n" + kTurn + "model\n";
}

struct Shape {
  const char *name, *row, *prompt, *answer;
  options::Format format;
};
const Shape kShapes[] = {
    {"strings", R"({"prompt":" The river? ","completion":"Yes."})", "The river?", "Yes.",
     options::Format::prompt_completion},
    {"lists",
     R"({"prompt":[{"role":"user","content":"The river?"}],"completion":[{"role":"assistant","content":"Yes."}]})",
     "The river?", "Yes.", options::Format::prompt_completion},
    {"messages",
     R"({"messages":[{"role":"user","content":[{"type":"text","text":"The river?"}]},{"role":"model","content":"Yes."}]})",
     "The river?", "Yes.", options::Format::messages},
    {"sharegpt",
     R"({"conversations":[{"from":"human","value":"The river?"},{"from":"gpt","value":"Yes."}],"system":"Be brief."})",
     "Be brief.\n\nThe river?", "Yes.", options::Format::sharegpt},
    {"alpaca", R"({"instruction":"Translate.","input":"the river","output":"Yes."})", "Translate.\nthe river", "Yes.",
     options::Format::alpaca},
};

TEST(Dataset, DetectsAndRendersEveryFormat) {
  const Scratch scratch;
  for (const Shape& s : kShapes) {
    for (const char* file : {"a.jsonl", "a.json"}) {
      const bool json = std::string(file) == "a.json";
      const std::string row = s.row;
      const Dataset d = load(options(scratch.put(file, json ? "[\n" + row + ",\n" + row + "]\n" : row + "\n\n" + row)));
      EXPECT_EQ(d.report.format, s.format) << s.name;
      ASSERT_EQ(d.train.size(), 2u) << s.name;
      const Example& e = d.train[1];
      is_sound(e);
      EXPECT_EQ(e.row, 1);
      EXPECT_EQ(e.prompt, asked(s.prompt)) << s.name;
      EXPECT_EQ(e.answer, s.answer) << s.name;
      EXPECT_EQ(all_text(e), e.prompt + s.answer + kEnd + "\n") << s.name;
      EXPECT_EQ(learned(e), s.answer + kEnd) << s.name;
      // The sampler's prompt equals the prompt in training.
      const std::vector<int> prompt = bpe().encode(e.prompt);
      EXPECT_TRUE(std::equal(prompt.begin(), prompt.end(), e.ids.begin() + 1)) << s.name;
    }
  }
}

TEST(Dataset, LossOptionSelectsAnswers) {
  const Scratch scratch;
  const auto file =
      scratch.put("a.jsonl", R"({"instruction":"b","output":"two","system":"sys","history":[["a","one"]]})");
  DatasetOptions o = options(file);
  EXPECT_EQ(learned(load(o).train[0]), "two" + kEnd);
  o.loss = options::LossOn::assistant;
  EXPECT_EQ(learned(load(o).train[0]), "one" + kEnd + "two" + kEnd);
  o.loss = options::LossOn::all;
  const Example e = load(o).train[0];
  EXPECT_EQ(learned(e), "user\nsys\n\na\nmodel\none" + kEnd + "\nuser\nb\nmodel\ntwo" + kEnd + "\n");
  EXPECT_EQ(e.prompt, kTurn + "user\nsys\n\na" + kEnd + "\n" + kTurn + "model\none" + kEnd + "\n" + asked("b"));
}

TEST(Dataset, DropsTurnsAfterLastAnswer) {
  const Scratch scratch;
  const Dataset d = load(options(scratch.put(
      "a.jsonl",
      R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]})")));
  EXPECT_EQ(all_text(d.train.at(0)), asked("a") + "b" + kEnd + "\n");
}

TEST(Dataset, ReadsNamedColumns) {
  const Scratch scratch;
  DatasetOptions o =
      options(scratch.put("a.jsonl", R"({"question":"the river","answer":"Yes","hint":"small","who":"sys"})"));
  o.columns = {{"prompt", "question"}, {"completion", "answer"}, {"input", "hint"}, {"system", "who"}};
  const Dataset d = load(o);
  EXPECT_EQ(d.train.at(0).prompt, asked("sys\n\nthe river\nsmall"));
  EXPECT_EQ(learned(d.train[0]), "Yes" + kEnd);
}

TEST(Dataset, ConcatenatesPromptCompletionAndEosWithoutTemplate) {
  const Scratch scratch;
  DatasetOptions o = options(scratch.put("a.jsonl", R"({"prompt":"the riv","completion":"er "})"));
  o.chat = options::ChatFormat::none;
  const Example e = load(o).train.at(0);
  EXPECT_EQ(all_text(e), "the river <eos>");
  EXPECT_EQ(learned(e), "er <eos>");
  EXPECT_EQ(e.prompt, "the riv");
  EXPECT_EQ(e.answer, "er ");
}

TEST(Dataset, TextRowsEndWithEosAndCarryLoss) {
  const Scratch scratch;
  const Example e = load(options(scratch.put("a.jsonl", R"({"text":"The river.\n"})"))).train.at(0);
  is_sound(e);
  EXPECT_EQ(learned(e), "The river.\n<eos>");
}

TEST(Dataset, RunningTextIsCutIntoExamplesWithEachTokenOnce) {
  const Scratch scratch;
  std::string text;
  Rng rng{5};
  while (text.size() < 200000)
    text += "the small river " + std::to_string(rng.below(1000)) + (rng.below(4) ? "\n" : "\n\n");
  DatasetOptions o = options(scratch.put("a.txt", text));
  o.max_len = 50;
  const Dataset d = load(o);
  std::vector<int> ids;
  for (size_t i = 0; i < d.train.size(); ++i) {
    const Example& e = d.train[i];
    is_sound(e);
    EXPECT_TRUE(e.ids.size() == 50 || i + 1 == d.train.size());
    EXPECT_EQ(std::count(e.loss.begin(), e.loss.end(), 0), 1);
    ids.insert(ids.end(), e.ids.begin() + 1, e.ids.end());
  }
  EXPECT_EQ(ids, bpe().encode(text));
}

TEST(Dataset, AcceptsByteOrderMarkAndCarriageReturns) {
  const Scratch scratch;
  const Dataset d = load(options(scratch.put("a.jsonl",
                                             "\xEF\xBB\xBF{\"prompt\":\"a\",\"completion\":\"b\"}\r\n\r\n"
                                             "{\"prompt\":\"c\",\"completion\":\"d\"}\r\n")));
  EXPECT_EQ(d.train.size(), 2u);
  DatasetOptions o = options(scratch.put("a.txt", "\xEF\xBB\xBFone\r\ntwo"));
  EXPECT_EQ(all_text(load(o).train.at(0)), "one\ntwo\n");
}

TEST(Dataset, ReadsObjectWithOneListAndLinesInJsonFile) {
  const Scratch scratch;
  const std::string row = R"({"prompt":"a ] \" [ {","completion":"b"})";
  const std::string object = "{\"version\": {\"x\": [1, 2]}, \"rows\": [" + row + ",\n " + row + "], \"n\": \"]\"}";
  EXPECT_EQ(load(options(scratch.put("a.json", object))).train.size(), 2u);
  EXPECT_EQ(load(options(scratch.put("b.json", row + "\n" + row + "\n" + row))).train.size(), 3u);
  EXPECT_EQ(load(options(scratch.put("c.jsonl", "[" + row + "]"))).train.size(), 1u);
}

TEST(Dataset, DropsOrTruncatesOverlongRows) {
  const Scratch scratch;
  const std::string shorter = R"({"prompt":"a","completion":"b"})";
  const std::string cut = R"({"prompt":"a","completion":"0123456789012345678901234567890123456789"})";
  const std::string hopeless = R"({"prompt":"0123456789012345678901234567890123456789","completion":"b"})";
  DatasetOptions o = options(scratch.put("a.jsonl", shorter + "\n" + cut + "\n" + hopeless + "\n"));
  o.max_len = 24;
  Dataset d = load(o);
  EXPECT_EQ(d.train.size(), 1u);
  EXPECT_EQ(d.report.rows, 3);
  EXPECT_EQ(d.report.kept, 1);
  EXPECT_EQ(d.report.dropped_long, 2);
  o.overlong = options::Overlong::truncate;
  d = load(o);
  ASSERT_EQ(d.train.size(), 2u);
  EXPECT_EQ(d.train[1].ids.size(), 24u);
  EXPECT_EQ(d.report.truncated, 1);
  EXPECT_EQ(d.report.no_loss, 1);  // truncation would remove the answer of the third
}

TEST(Dataset, BadLineStopsOrIsSkipped) {
  const Scratch scratch;
  const std::string good = R"({"prompt":"a","completion":"b"})";
  const std::string bad[] = {"{\"prompt\":\"a\",",
                             R"({"prompt":"a"})",
                             R"({"prompt":1,"completion":"b"})",
                             "[1]",
                             R"({"prompt":"a","prompt":"b","completion":"c"})",
                             "{\"prompt\":\"\xff\",\"completion\":\"b\"}",
                             R"({"prompt":"a<bos>","completion":"b"})"};
  for (const std::string& row : bad) {
    DatasetOptions o = options(scratch.put("a.jsonl", good + "\n\n" + row + "\n" + good + "\n"));
    const Problem p = problem_of([&] { load(o); });
    EXPECT_TRUE(p.place.starts_with("line 3")) << row << " -> " << p.place << ": " << p.message;
    EXPECT_EQ(p.file, o.path.string());
    o.on_error = options::OnError::skip;
    const Dataset d = load(o);
    EXPECT_EQ(d.train.size(), 2u) << row;
    EXPECT_EQ(d.report.skipped_bad, 1) << row;
    ASSERT_EQ(d.report.problems.size(), 1u) << row;
    EXPECT_TRUE(d.report.problems[0].place.starts_with("line 3"));
  }
}

TEST(Dataset, ErrorsQuoteWholeCharacters) {
  const Scratch scratch;
  for (const std::string fill : {"", "x", "xx"}) {
    std::string broken = "{\"prompt\" " + fill;
    for (int i = 0; i < 30; ++i) broken += "\u6771";
    const Problem p = problem_of([&] { load(options(scratch.put("a.jsonl", broken))); });
    EXPECT_EQ(first_invalid_utf8(to_text(p)), std::string::npos);
  }
}

TEST(Dataset, RejectsBrokenLists) {
  const Scratch scratch;
  const std::string row = R"({"prompt":"a","completion":"b"})";
  for (const std::string& text :
       {"[" + row + ",\n" + row, "[" + row + "\n" + row + "]", "[" + row + ",\n]", "[\n" + row + "] x",
        "[" + row + ",\n{\"prompt\":\"", std::string("{\n\"a\": 1}"), std::string("{\n\"a\""), std::string("[")}) {
    const Problem p = problem_of([&] { load(options(scratch.put("a.json", text))); });
    EXPECT_TRUE(p.place.starts_with("line ")) << text << " -> " << p.place << ": " << p.message;
  }
}

TEST(Dataset, ExplainsWhyNoRowIsUsable) {
  const Scratch scratch;
  for (const char* name : {"a.jsonl", "a.txt", "a.json"})
    EXPECT_EQ(problem_of([&] { load(options(scratch.put(name, name == std::string("a.json") ? "[]" : ""))); }).id,
              "DATA-EMPTY");
  DatasetOptions o = options(scratch.put("b.jsonl", "{\"prompt\":\"aaaa\",\"completion\":\"bbbb\"}\nnonsense\n"));
  o.max_len = 5;
  o.on_error = options::OnError::skip;
  const Problem p = problem_of([&] { load(o); });
  EXPECT_EQ(p.id, "DATA-EMPTY");
  EXPECT_NE(p.found.find("2 rows, 1 longer than 5 tokens, 1 malformed"), std::string::npos) << p.found;
}

TEST(Dataset, ReportsUnknownKeysAndMissingFiles) {
  const Scratch scratch;
  const Problem p = problem_of([&] { load(options(scratch.put("a.jsonl", R"({"question":"a","answer":"b"})"))); });
  EXPECT_EQ(p.id, "DATA-FORMAT");
  EXPECT_NE(p.found.find("question, answer"), std::string::npos);
  EXPECT_EQ(problem_of([&] { load(options(scratch.path() / "none.jsonl")); }).id, "SYSTEM");
  EXPECT_EQ(problem_of([&] { load(options(scratch.path())); }).id, "FILE-KIND");
  DatasetOptions o = options(scratch.put("a.jsonl", R"({"prompt":"a","completion":"b"})"));
  o.chat = options::ChatFormat::gemma4;  // markers that this vocabulary lacks
  o.on_error = options::OnError::skip;
  EXPECT_EQ(problem_of([&] { load(o); }).id, "TOK-2");
}

TEST(Dataset, SplitDependsOnSeedAndSurvivesAppending) {
  const Scratch scratch;
  std::string text;
  const auto add = [&](int from, int to) {
    for (int i = from; i < to; ++i) text += "{\"prompt\":\"" + std::to_string(i) + "\",\"completion\":\"b\"}\n";
  };
  add(0, 1000);
  DatasetOptions o = options(scratch.put("a.jsonl", text));
  o.eval_fraction = 0.2;
  const auto held_out = [&] {
    std::vector<std::int64_t> rows;
    for (const Example& e : load(o).eval) rows.push_back(e.row);
    return rows;
  };
  const auto first = held_out();
  EXPECT_NEAR(static_cast<double>(first.size()), 200, 50);
  EXPECT_EQ(held_out(), first);
  add(1000, 1500);
  o.path = scratch.put("a.jsonl", text);
  const auto more = held_out();
  ASSERT_GE(more.size(), first.size());
  EXPECT_TRUE(std::equal(first.begin(), first.end(), more.begin()));
  o.seed = 1;
  EXPECT_NE(held_out(), more);
}

TEST(Dataset, StopsOnRequestAndReportsProgress) {
  const Scratch scratch;
  const auto file = scratch.put("a.jsonl", R"({"prompt":"a","completion":"b"})");
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(problem_of([&] { load_dataset(options(file), bpe(), stop.get_token()); }).id, "CANCELLED");
  long done = -1, total = -2;
  load_dataset(options(file), bpe(), {}, [&](long d, long t) { done = d, total = t; });
  EXPECT_EQ(done, total);
}

TEST(DatasetFuzz, DamagedFilesAreReadOrRejected) {
  const Scratch scratch;
  std::string lines, list;
  for (const Shape& s : kShapes) {
    lines += std::string(s.row) + "\n";
    list += (list.empty() ? "" : ",\n") + std::string(s.row);
  }
  const std::string files[] = {lines, "[" + list + "]", "{\"n\": 1, \"rows\": [" + list + "], \"m\": {}}",
                               "One.\n\nTwo \u00e9.\n"};
  const char* const names[] = {"a.jsonl", "a.json", "b.json", "a.txt"};
  Rng rng{6};
  int read = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto kind = rng.below(4);
    DatasetOptions o = options(scratch.put(names[kind], mutate(files[kind], rng)));
    o.on_error = rng.below(2) ? options::OnError::skip : options::OnError::stop;
    try {
      const Dataset d = load(o);
      ++read;
      EXPECT_FALSE(d.train.empty());
      for (const Example& e : d.train) is_sound(e);
    } catch (const Error& e) {
      EXPECT_EQ(first_invalid_utf8(to_text(e.problem())), std::string::npos);  // errors are printed as JSON
    }
  }
  EXPECT_GT(read, 200);
  EXPECT_LT(read, 1900);
}

// For any text, the tokens that carry loss spell the answer and its end marker.
TEST(Dataset, LossMaskCoversExactlyTheAnswer) {
  const Scratch scratch;
  Rng rng{11};
  std::string file;
  std::vector<std::string> answers;
  for (int i = 0; i < 300; ++i) {
    const std::string prompt = "q" + random_text(rng, rng.below(40)) + "q",
                      answer = "a" + random_text(rng, rng.below(40)) + "z";
    answers.push_back(answer);
    file += Json{{"prompt", prompt}, {"completion", answer}}.dump() + "\n";
  }
  for (const options::ChatFormat chat : {options::ChatFormat::gemma3, options::ChatFormat::none}) {
    for (const Tokenizer* tokenizer : {&bpe(), &spm()}) {
      DatasetOptions o = options(scratch.put("a.jsonl", file));
      o.chat = chat;
      const Dataset d = load_dataset(o, *tokenizer);
      ASSERT_EQ(d.train.size(), answers.size());
      for (size_t i = 0; i < answers.size(); ++i) {
        const Example& e = d.train[i];
        std::vector<int> expected = tokenizer->encode(answers[i]);
        expected.push_back(chat == options::ChatFormat::none ? tokenizer->eos() : tokenizer->find(kEnd));
        const auto first = std::find(e.loss.begin(), e.loss.end(), 1) - e.loss.begin();
        ASSERT_LE(first + static_cast<std::ptrdiff_t>(expected.size()), static_cast<std::ptrdiff_t>(e.ids.size()));
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), e.ids.begin() + first)) << answers[i];
        EXPECT_EQ(std::count(e.loss.begin(), e.loss.end(), 1), static_cast<std::ptrdiff_t>(expected.size()));
        std::vector<int> prompt = tokenizer->encode(e.prompt);
        prompt.insert(prompt.begin(), tokenizer->bos());
        EXPECT_TRUE(std::equal(prompt.begin(), prompt.end(), e.ids.begin(), e.ids.begin() + first)) << e.prompt;
      }
    }
  }
}

}  // namespace
}  // namespace mw::data::testing
