// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/dataset/overlap.h"

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
  o.on_error = OnError::skip;
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
  o.overlong = Overlong::truncate;
  EXPECT_EQ(summarize_dataset(o, bpe()).overlap.repeated, 1);
  o.eval_path = scratch.put("b.jsonl", "{\"text\":\"small\"}\n");
  EXPECT_EQ(summarize_dataset(o, bpe()).overlap.held_out_prompts_in_train, 0);
}

}  // namespace
}  // namespace mw::data::testing
