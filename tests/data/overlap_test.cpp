// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/dataset/overlap.h"

#include "core/data/dataset/example_list.h"
#include "core/data/dataset/row_cache.h"

#include "tests/data/support.h"

namespace mw::data::testing {
namespace {

std::string json_row(const std::string& prompt, const std::string& answer) {
  return R"({"prompt":")" + prompt + R"(","completion":")" + answer + "\"}\n";
}

TEST(Overlap, FindsRepeatedRowsAndHeldOutRowsInTraining) {
  const Scratch scratch;
  DatasetOptions o;
  o.path = scratch.put("a.jsonl", json_row("the river", "Yes") + json_row("the small river", "No") +
                                      json_row("the river", "Yes") + json_row("the river", "No") + "{}\n" +
                                      json_row("the river", "Yes"));
  o.eval_path = scratch.put("b.jsonl", json_row("small", "Yes") + json_row("the small river", "No") +
                                           json_row("the river", "the") + json_row("small", "Yes"));
  o.on_error = options::OnError::skip;
  const OverlapReport found = overlap_of(*row_cache()->open(o, bpe()), o);
  EXPECT_EQ(found, (OverlapReport{.train = 5,
                                  .held_out = 4,
                                  .repeated = 2,
                                  .held_out_in_train = 1,
                                  .held_out_prompts_in_train = 1,
                                  .repeats = {{2, 0}, {5, 0}},
                                  .leaks = {{7, 1}},
                                  .prompt_leaks = {{8, 0}}}));
  EXPECT_EQ(summarize_dataset(o, bpe()).overlap, found);
  o.eval_path.clear();
  EXPECT_EQ(overlap_of(*row_cache()->open(o, bpe()), o).held_out, 0);
}

// Rows of plain text have no prompt, and truncated rows are compared by what training uses.
TEST(Overlap, ComparesTheTokensThatTrainingUses) {
  const Scratch scratch;
  DatasetOptions o;
  o.path = scratch.put("a.jsonl", "{\"text\":\"the river the river\"}\n{\"text\":\"the river the small\"}\n");
  EXPECT_EQ(summarize_dataset(o, bpe()).overlap.repeated, 0);
  o.max_len = 3;
  o.overlong = options::Overlong::truncate;
  EXPECT_EQ(summarize_dataset(o, bpe()).overlap.repeated, 1);
  o.eval_path = scratch.put("b.jsonl", "{\"text\":\"small\"}\n");
  EXPECT_EQ(summarize_dataset(o, bpe()).overlap.held_out_prompts_in_train, 0);
}

std::vector<std::int64_t> rows_of(const ExampleList& examples) {
  std::vector<std::int64_t> rows;
  for (size_t i = 0; i < examples.size(); ++i) rows.push_back(examples.row(i));
  return rows;
}

// The same from the file's tokens and in memory.
TokenizedDataset without_duplicates(DatasetOptions o) {
  o.drops_duplicates = true;
  TokenizedDataset opened = open_dataset(o, bpe());
  const Dataset loaded = load_dataset(o, bpe());
  EXPECT_EQ(rows_of(opened.train), rows_of(loaded.train));
  EXPECT_EQ(rows_of(opened.eval), rows_of(loaded.eval));
  EXPECT_EQ(opened.report.rows, loaded.report.rows);
  EXPECT_EQ(opened.report.kept, loaded.report.kept);
  EXPECT_EQ(opened.report.tokens, loaded.report.tokens);
  EXPECT_EQ(opened.report.loss_tokens, loaded.report.loss_tokens);
  EXPECT_EQ(opened.report.dropped_repeated, loaded.report.dropped_repeated);
  EXPECT_EQ(opened.report.dropped_held_out, loaded.report.dropped_held_out);
  return opened;
}

TEST(Duplicates, DropsTrainingRowsThatRepeatOrAreHeldOutAndNoOthers) {
  const Scratch scratch;
  DatasetOptions o;
  const std::string leaked = json_row("the small river", "No");
  o.path = scratch.put("a.jsonl", json_row("the river", "Yes") + leaked + json_row("the river", "Yes") +
                                      json_row("the river", "No") + "{}\n" + leaked + json_row("the river", "Yes"));
  o.eval_path = scratch.put(
      "b.jsonl", json_row("small", "Yes") + leaked + json_row("the river", "the") + json_row("small", "Yes"));
  o.on_error = options::OnError::skip;
  const TokenizedDataset all = open_dataset(o, bpe());
  EXPECT_EQ(rows_of(all.train), (std::vector<std::int64_t>{0, 1, 2, 3, 5, 6}));
  EXPECT_EQ(all.report.dropped_repeated + all.report.dropped_held_out, 0);
  const TokenizedDataset d = without_duplicates(o);
  EXPECT_EQ(rows_of(d.train), (std::vector<std::int64_t>{0, 3}));
  EXPECT_EQ(rows_of(d.eval), rows_of(all.eval)) << "held-out rows stay, repeated ones, too";
  EXPECT_EQ(d.report.dropped_repeated, 2);
  EXPECT_EQ(d.report.dropped_held_out, 2);
  EXPECT_EQ(d.report.rows, all.report.rows);
  EXPECT_EQ(d.report.kept, 6);
  std::int64_t tokens = 0;
  for (const ExampleList* list : {&d.train, &d.eval})
    for (size_t i = 0; i < list->size(); ++i) tokens += list->size_of(i).tokens;
  EXPECT_EQ(d.report.tokens, tokens);
  o.drops_duplicates = true;
  EXPECT_EQ(overlap_of(*row_cache()->open(o, bpe()), o), (OverlapReport{.train = 2,
                                                                        .held_out = 4,
                                                                        .held_out_prompts_in_train = 1,
                                                                        .repeats = {},
                                                                        .leaks = {},
                                                                        .prompt_leaks = {{9, 0}}}));
  o.on_error = options::OnError::stop;
  EXPECT_EQ(problem_of([&] { open_dataset(o, bpe()); }), problem_of([&] { load_dataset(o, bpe()); }));
}

// The same tokens with loss on others of them are other rows; rows that truncation makes equal are duplicates.
TEST(Duplicates, CompareTheTokensAndTheLossThatTrainingUses) {
  const Scratch scratch;
  DatasetOptions o;
  o.chat = options::ChatFormat::none;
  o.path = scratch.put("a.jsonl", json_row("the", " river river") + json_row("the river", " river"));
  const Dataset two = load_dataset(o, bpe());
  ASSERT_EQ(two.train.size(), 2u);
  ASSERT_EQ(two.train[0].ids, two.train[1].ids);
  EXPECT_EQ(without_duplicates(o).report.dropped_repeated, 0);
  o.path = scratch.put("b.jsonl", "{\"text\":\"the river the river\"}\n{\"text\":\"the river the small\"}\n");
  EXPECT_EQ(without_duplicates(o).train.size(), 2u);
  o.max_len = 3;
  o.overlong = options::Overlong::truncate;
  EXPECT_EQ(rows_of(without_duplicates(o).train), (std::vector<std::int64_t>{0}));
}

TEST(Duplicates, RefusesDataOfWhichNothingIsLeftToTrainOn) {
  const Scratch scratch;
  DatasetOptions o;
  o.drops_duplicates = true;
  o.path = scratch.put("a.jsonl", json_row("the river", "Yes") + json_row("the river", "Yes"));
  o.eval_path = scratch.put("b.jsonl", json_row("the river", "Yes"));
  const Problem p = problem_of([&] { open_dataset(o, bpe()); });
  EXPECT_EQ(p.id, "DATA-EMPTY");
  EXPECT_NE(p.found.find("2 dropped because the held-out rows contain them"), std::string::npos) << p.found;
  EXPECT_NE(p.fix.find("data.dedup"), std::string::npos) << p.fix;
}

}  // namespace
}  // namespace mw::data::testing
