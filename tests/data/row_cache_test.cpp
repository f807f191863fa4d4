// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/dataset/row_cache.h"

#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <set>
#include <thread>

#include "core/base/files.h"
#include "core/base/sha256.h"
#include "core/data/dataset/batches.h"
#include "core/data/dataset/dataset.h"
#include "tests/base/file_faults.h"
#include "tests/data/support.h"

namespace mw::data::testing {
namespace {

namespace fs = std::filesystem;

// Encodes as the fixture's tokenizer and counts the texts.
class CountingTokenizer : public Tokenizer {
 public:
  CountingTokenizer() {
    fingerprint_ = "counting";
    bos_ = bpe().bos();
    eos_ = bpe().eos();
    pad_ = bpe().pad();
  }
  std::vector<int> encode(std::string_view text) const override {
    ++texts;
    return bpe().encode(text);
  }
  std::string decode(std::span<const int> ids, Specials specials) const override { return bpe().decode(ids, specials); }
  int size() const override { return bpe().size(); }
  std::string piece(int id) const override { return bpe().piece(id); }
  int find(std::string_view piece) const override { return bpe().find(piece); }
  void set_fingerprint(const std::string& fingerprint) { fingerprint_ = fingerprint; }
  mutable std::atomic<long> texts{0};
};

std::string many_rows(int rows, const std::string& word = "river") {
  Rng rng{23};
  std::string text;
  for (int i = 0; i < rows; ++i) {
    std::string answer;
    for (auto n = 1 + rng.below(40); n > 0; --n) answer += " the " + word;
    const auto kind = rng.below(20);
    if (kind == 0)
      text += "{\"prompt\":\"no answer\"}\n";
    else
      text += R"({"prompt":"the small )" + std::to_string(i) + R"(","completion":")" + answer + "\"}\n";
  }
  return text;
}

DatasetOptions cached_options(const fs::path& file) {
  DatasetOptions o;
  o.path = file;
  o.max_len = 60;
  o.eval_fraction = 0.2;
  o.seed = 5;
  o.on_error = options::OnError::skip;
  return o;
}

bool same_row(const DataRow& a, const DataRow& b) {
  return a.state == b.state && a.split == b.split && a.format == b.format && a.row == b.row && a.tokens == b.tokens &&
         a.used == b.used && a.loss_tokens == b.loss_tokens && a.place.offset == b.place.offset &&
         a.place.bytes == b.place.bytes && a.place.skip == b.place.skip && a.place.line == b.place.line &&
         a.place.file == b.place.file;
}

// Every row, with its tokens, is that of a scan with the same options.
void equals_scan(const TokenRows& rows, const DatasetOptions& o) {
  std::int64_t i = 0;
  std::vector<Problem> problems;
  scan_rows(o, bpe(), {}, {}, [&](const ScannedRow& row) {
    ASSERT_LT(i, rows.size());
    EXPECT_TRUE(same_row(rows.row(i, o), data_row(row))) << "row " << i;
    std::vector<int> ids;
    std::vector<std::uint8_t> loss;
    rows.read(i++, static_cast<std::int32_t>(row.used), ids, loss);
    EXPECT_EQ(ids, std::vector<int>(row.example.ids.begin(), row.example.ids.begin() + static_cast<long>(row.used)));
    EXPECT_EQ(loss, std::vector<std::uint8_t>(row.example.loss.begin(),
                                              row.example.loss.begin() + static_cast<long>(row.used)));
    if (row.state == RowState::bad) problems.push_back(row.problem);
  });
  EXPECT_EQ(i, rows.size());
  problems.resize(std::min<size_t>(problems.size(), 100));
  EXPECT_EQ(rows.problems(o), problems);
}

class RowCacheTest : public ::testing::Test {
 protected:
  void SetUp() override { set_row_cache({.folder = scratch / "cache", .least_bytes = 1}); }
  void TearDown() override { set_row_cache({}); }

  std::shared_ptr<const TokenRows> open(const DatasetOptions& o, const DataRowSink& sink = {}) {
    return row_cache()->open(o, tokenizer, {}, {}, sink);
  }
  // Texts that were encoded for opening the rows.
  long encoded(const DatasetOptions& o) {
    const long before = tokenizer.texts;
    equals_scan(*open(o), o);
    return tokenizer.texts - before;
  }
  std::vector<fs::path> entries() const {
    std::vector<fs::path> found;
    for (const auto& e : fs::directory_iterator(scratch / "cache"))
      if (e.path().extension() == ".rows") found.push_back(e.path());
    return found;
  }

  Scratch scratch;
  CountingTokenizer tokenizer;
};

TEST_F(RowCacheTest, KeepsTokensForOtherLengthsAndSplits) {
  DatasetOptions o = cached_options(scratch.put("a.jsonl", many_rows(6000)));
  EXPECT_GT(encoded(o), 0);
  EXPECT_EQ(encoded(o), 0);
  o.max_len = 30;
  EXPECT_EQ(encoded(o), 0);
  o.overlong = options::Overlong::truncate;
  EXPECT_EQ(encoded(o), 0);
  o.eval_fraction = 0.5;
  o.seed = 8;
  EXPECT_EQ(encoded(o), 0);
  EXPECT_EQ(entries().size(), 1u);
  EXPECT_EQ(row_cache_use(scratch / "cache").entries, 1);
  EXPECT_EQ(row_cache_use(scratch / "cache").bytes, static_cast<std::int64_t>(fs::file_size(entries()[0])));
}

TEST_F(RowCacheTest, ReadsAgainWhatOtherSettingsOrContentChange) {
  DatasetOptions o = cached_options(scratch.put("a.jsonl", many_rows(300)));
  EXPECT_GT(encoded(o), 0);
  o.loss = options::LossOn::all;
  EXPECT_GT(encoded(o), 0);
  o.chat = options::ChatFormat::none;
  EXPECT_GT(encoded(o), 0);
  o.columns["prompt"] = "prompt";
  EXPECT_GT(encoded(o), 0);
  tokenizer.set_fingerprint("another");
  EXPECT_GT(encoded(o), 0);
  scratch.put("a.jsonl", many_rows(300, "riven"));  // of the same size
  EXPECT_GT(encoded(o), 0);
  EXPECT_EQ(encoded(o), 0);
}

TEST_F(RowCacheTest, FindsSameContentUnderAnotherName) {
  const std::string text = many_rows(300);
  EXPECT_GT(encoded(cached_options(scratch.put("a.jsonl", text))), 0);
  EXPECT_EQ(encoded(cached_options(scratch.put("b.jsonl", text))), 0);
  EXPECT_EQ(entries().size(), 1u);
}

TEST_F(RowCacheTest, SeveralFilesAreOneDataset) {
  const std::string rows = many_rows(300);
  const size_t cut = rows.find('\n', rows.size() / 2) + 1;
  scratch.put("a-1.jsonl", rows.substr(0, cut));
  scratch.put("a-2.jsonl", rows.substr(cut) + "{\n");
  DatasetOptions o = cached_options(scratch.path() / "a-*.jsonl");
  EXPECT_GT(encoded(o), 0);
  EXPECT_EQ(encoded(o), 0);
  o.path = scratch.path() / "a-{1,2}.jsonl";
  EXPECT_EQ(encoded(o), 0);
  EXPECT_EQ(open(o)->problems(o).back().file, (scratch.path() / "a-2.jsonl").string());

  o.eval_path = scratch.put("held-out.csv", "prompt,completion\nthe river,Yes\n");
  EXPECT_GT(encoded(o), 0);
  const TokenizedDataset d = open_dataset(o, tokenizer);
  ASSERT_EQ(d.eval.size(), 1u);
  EXPECT_NE(d.eval.example(0, tokenizer).prompt.find("the river"), std::string::npos);
  EXPECT_EQ(d.eval.row(0), 301);
  o.eval_path = scratch.path() / "none*.csv";
  EXPECT_EQ(problem_of([&] { open(o); }).id, "DATA-FILES");

  o.eval_path.clear();
  scratch.put("a-1.jsonl", rows);  // the same content, cut elsewhere
  scratch.put("a-2.jsonl", "{\n");
  EXPECT_GT(encoded(o), 0);
}

TEST_F(RowCacheTest, RunningTextDependsOnTheLengthOfRows) {
  std::string text;
  for (int i = 0; i < 9000; ++i) text += "the small river " + std::to_string(i) + (i % 9 ? "\n" : "\n\n");
  text += "\xff\n<bos>\n";
  DatasetOptions o = cached_options(scratch.put("a.txt", text));
  EXPECT_GT(encoded(o), 0);
  EXPECT_EQ(encoded(o), 0);
  o.max_len = 61;
  EXPECT_GT(encoded(o), 0);
}

TEST_F(RowCacheTest, SmallFilesAndUnknownTokenizersAreKeptInMemory) {
  const DatasetOptions o = cached_options(scratch.put("a.jsonl", many_rows(20)));
  set_row_cache({.folder = scratch / "cache", .least_bytes = 1 << 20});
  EXPECT_GT(encoded(o), 0);
  EXPECT_FALSE(fs::exists(scratch / "cache"));
  set_row_cache({.folder = scratch / "cache", .least_bytes = 1});
  tokenizer.set_fingerprint("");
  EXPECT_GT(encoded(o), 0);
  EXPECT_FALSE(fs::exists(scratch / "cache"));
}

// Any damage is noticed when the entry is opened, or, in the tokens of a row, when it is read.
TEST_F(RowCacheTest, DamagedEntriesAreMadeAgain) {
  const DatasetOptions o = cached_options(scratch.put("a.jsonl", many_rows(60)));
  open(o);
  const fs::path entry = entries().at(0);
  const std::string whole = read_file(entry);
  Rng rng{4};
  for (int i = 0; i < 150; ++i) {
    std::string damaged = whole;
    if (i % 3 == 0)
      damaged.resize(rng.below(damaged.size()));
    else
      damaged[i % 3 == 1 ? damaged.size() - 1 - rng.below(3000) : rng.below(damaged.size())] ^= 1 << rng.below(8);
    scratch.put("cache/" + entry.filename().string(), damaged);
    const long before = tokenizer.texts;
    const auto rows = open(o);
    if (tokenizer.texts == before) {  // a row's tokens are damaged
      int refused = 0;
      for (std::int64_t r = 0; r < rows->size(); ++r) try {
          std::vector<int> ids;
          std::vector<std::uint8_t> loss;
          rows->read(r, 1 << 20, ids, loss);
        } catch (const Error& e) {
          EXPECT_EQ(e.problem().id, "DATA-CACHE");
          ++refused;
        }
      EXPECT_EQ(refused, 1);
      fs::remove(entry);
    } else {
      equals_scan(*rows, o);
    }
  }
}

TEST_F(RowCacheTest, DeletesLeastRecentlyUsedEntriesBeyondTheLimit) {
  std::vector<DatasetOptions> all;
  for (const char* name : {"a.jsonl", "b.jsonl", "c.jsonl"})
    all.push_back(cached_options(scratch.put(name, many_rows(300, name))));
  open(all[0]);
  const auto each = static_cast<std::uint64_t>(fs::file_size(entries().at(0)));
  set_row_cache({.folder = scratch / "cache", .least_bytes = 1, .most_bytes = 5 * each / 2});
  open(all[1]);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  open(all[0]);  // used later than b
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  open(all[2]);
  EXPECT_EQ(entries().size(), 2u);
  EXPECT_EQ(encoded(all[0]), 0);
  EXPECT_EQ(encoded(all[2]), 0);
  EXPECT_GT(encoded(all[1]), 0);
  set_row_cache({.folder = scratch / "cache", .least_bytes = 1, .most_bytes = 1});
  equals_scan(*open(cached_options(scratch.put("d.jsonl", many_rows(300, "d")))), cached_options(scratch / "d.jsonl"));
  EXPECT_EQ(entries().size(), 0u);
}

TEST_F(RowCacheTest, TwoCallersAtOnceTokeniseOnce) {
  const DatasetOptions o = cached_options(scratch.put("a.jsonl", many_rows(20000)));
  const DatasetOptions other = [&] {
    DatasetOptions shorter = o;
    shorter.max_len = 25;
    shorter.overlong = options::Overlong::truncate;
    return shorter;
  }();
  std::vector<DataRow> first, second;
  std::jthread follower;
  open(o, [&](const DataRow& row, const Problem*) {
    if (first.empty())
      follower = std::jthread([&] { open(other, [&](const DataRow& r, const Problem*) { second.push_back(r); }); });
    first.push_back(row);
  });
  follower.join();
  const CountingTokenizer alone;
  scan_rows(o, alone, {}, {}, [](const ScannedRow&) {});
  EXPECT_EQ(tokenizer.texts, alone.texts);
  ASSERT_EQ(first.size(), 20000u);
  ASSERT_EQ(second.size(), first.size());
  const auto rows = open(other);
  for (size_t i = 0; i < second.size(); ++i)
    ASSERT_TRUE(same_row(second[i], rows->row(static_cast<std::int64_t>(i), other))) << i;
}

TEST_F(RowCacheTest, FollowerContinuesWhenTheFirstIsCancelled) {
  const DatasetOptions o = cached_options(scratch.put("a.jsonl", many_rows(20000)));
  std::stop_source stop;
  std::vector<DataRow> followed;
  std::jthread follower;
  std::atomic<bool> following = false;
  const auto cancel = [&](const DataRow& row, const Problem*) {
    if (row.row == 0) {
      follower = std::jthread([&] {
        following = true;
        open(o, [&](const DataRow& r, const Problem*) { followed.push_back(r); });
      });
      while (!following) std::this_thread::yield();
    }
    if (row.row == 12000) stop.request_stop();
  };
  EXPECT_EQ(problem_of([&] { row_cache()->open(o, tokenizer, stop.get_token(), {}, cancel); }).id, "CANCELLED");
  follower.join();
  ASSERT_EQ(followed.size(), 20000u);
  for (size_t i = 0; i < followed.size(); ++i) ASSERT_EQ(followed[i].row, static_cast<std::int64_t>(i));
  EXPECT_EQ(encoded(o), 0);
}

TEST_F(RowCacheTest, SurvivesEveryFaultOfTheDisk) {
  const DatasetOptions o = cached_options(scratch.put("a.jsonl", many_rows(60)));
  const auto opened = [&](const fs::path& folder) {
    return RowCache({.folder = folder / "cache", .least_bytes = 1}).open(o, tokenizer);
  };
  const auto correct = [&](const fs::path& folder) { equals_scan(*opened(folder), o); };
  test::try_every_fault({.prepare = [](const fs::path&) {},
                         .write = [&](const fs::path& folder) { opened(folder); },
                         .check_written = correct,
                         .check_unwritten = correct});
}

TEST_F(RowCacheTest, KilledWriterLeavesNothingBehind) {
  const DatasetOptions o = cached_options(scratch.put("a.jsonl", many_rows(20000)));
  const pid_t child = ::fork();
  if (child == 0) {
    row_cache()->open(o, tokenizer, {}, {}, [](const DataRow& row, const Problem*) {
      if (row.row == 15000) ::raise(SIGKILL);
    });
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(test::parts_below(scratch / "cache").size(), 1u);
  EXPECT_GT(encoded(o), 0);
  EXPECT_EQ(encoded(o), 0);
  EXPECT_EQ(test::parts_below(scratch / "cache").size(), 0u);
}

TEST_F(RowCacheTest, OpenedDatasetHasTheExamplesOfTheLoadedOne) {
  DatasetOptions o = cached_options(scratch.put("a.jsonl", many_rows(3000)));
  for (const options::Overlong overlong : {options::Overlong::drop, options::Overlong::truncate}) {
    o.overlong = overlong;
    const Dataset loaded = load_dataset(o, bpe());
    const TokenizedDataset opened = open_dataset(o, tokenizer);
    EXPECT_EQ(opened.report.rows, loaded.report.rows);
    EXPECT_EQ(opened.report.kept, loaded.report.kept);
    EXPECT_EQ(opened.report.tokens, loaded.report.tokens);
    EXPECT_EQ(opened.report.loss_tokens, loaded.report.loss_tokens);
    EXPECT_EQ(opened.report.format, loaded.report.format);
    EXPECT_EQ(opened.report.problems, loaded.report.problems);
    for (const auto& [list, examples] : {std::pair(opened.train, loaded.train), std::pair(opened.eval, loaded.eval)}) {
      ASSERT_EQ(list.size(), examples.size());
      for (size_t i = 0; i < examples.size(); ++i) {
        const Example& e = examples[i];
        std::vector<int> ids;
        std::vector<std::uint8_t> loss;
        list.read(i, ids, loss);
        ASSERT_EQ(ids, e.ids);
        ASSERT_EQ(loss, e.loss);
        ASSERT_EQ(list.has_prompt(i), !e.prompt.empty());
        if (i % 50) continue;
        const Example again = list.example(i, tokenizer);
        EXPECT_EQ(again.row, e.row);
        EXPECT_EQ(again.ids, e.ids);
        EXPECT_EQ(again.prompt, e.prompt);
        EXPECT_EQ(again.answer, e.answer);
      }
    }
    for (const Packing packing : {Packing::none, Packing::pack}) {
      const BatchOptions options{.rows = 7, .max_len = 60, .packing = packing, .seed = 3};
      BatchStream a(loaded.train, options, 0, 400), b(opened.train, options, 0, 400);
      for (int n = 0; n < 500; ++n) {
        const Batch x = a.next(), y = b.next();
        ASSERT_EQ(x.ids, y.ids);
        ASSERT_EQ(x.targets, y.targets);
        ASSERT_EQ(x.positions, y.positions);
        ASSERT_EQ(x.segments, y.segments);
      }
    }
  }
}

// Over several blocks of rows, compared with every pair of tokens and loss.
TEST_F(RowCacheTest, DropsTheDuplicatesOfAFileFromItsEntry) {
  DatasetOptions o = cached_options(scratch.put("a.jsonl", many_rows(7000) + many_rows(4000) + many_rows(9000)));
  using Tokens = std::pair<std::vector<int>, std::vector<std::uint8_t>>;
  for (const options::Overlong overlong : {options::Overlong::drop, options::Overlong::truncate}) {
    o.overlong = overlong;
    o.drops_duplicates = false;
    const Dataset all = load_dataset(o, bpe());
    std::set<Tokens> held_out, earlier;
    for (const Example& e : all.eval) held_out.insert({e.ids, e.loss});
    std::vector<std::int64_t> kept;
    std::int64_t repeated = 0, in_held_out = 0;
    for (const Example& e : all.train) {
      if (held_out.contains({e.ids, e.loss}))
        ++in_held_out;
      else if (!earlier.insert({e.ids, e.loss}).second)
        ++repeated;
      else
        kept.push_back(e.row);
    }
    ASSERT_GT(repeated, 2000);
    ASSERT_GT(in_held_out, 500);
    o.drops_duplicates = true;
    for (int pass = 0; pass < 2; ++pass) {  // a scan, or the entry that the other settings share
      const TokenizedDataset opened = open_dataset(o, tokenizer);
      std::vector<std::int64_t> rows;
      for (size_t i = 0; i < opened.train.size(); ++i) rows.push_back(opened.train.row(i));
      EXPECT_EQ(rows, kept);
      EXPECT_EQ(opened.eval.size(), all.eval.size());
      EXPECT_EQ(opened.report.dropped_repeated, repeated);
      EXPECT_EQ(opened.report.dropped_held_out, in_held_out);
      EXPECT_EQ(opened.report.kept, std::ssize(kept) + std::ssize(all.eval));
    }
    EXPECT_EQ(entries().size(), 1u);
  }
}

TEST_F(RowCacheTest, ReportsThatTheTextOfARowHasChanged) {
  const DatasetOptions o = cached_options(scratch.put("a.jsonl", many_rows(300)));
  const TokenizedDataset data = open_dataset(o, tokenizer);
  scratch.put("a.jsonl", many_rows(300, "otter"));
  EXPECT_EQ(problem_of([&] { data.eval.example(3, tokenizer); }).id, "DATA-CHANGED");
}

TEST_F(RowCacheTest, StopsAtTheFirstBadRowAsLoadingDoes) {
  DatasetOptions o = cached_options(scratch.put("a.jsonl", many_rows(300)));
  o.on_error = options::OnError::stop;
  const Problem expected = problem_of([&] { load_dataset(o, bpe()); });
  EXPECT_EQ(problem_of([&] { open_dataset(o, tokenizer); }), expected);
  EXPECT_EQ(entries().size(), 0u);
  open(o);
  EXPECT_EQ(problem_of([&] { open_dataset(o, tokenizer); }), expected);
}

// If this test fails because rows or tokens have changed on purpose, increase kRowsVersion in row_cache.cpp, so that
// entries of the older program are not used, and write the new hash here.
TEST_F(RowCacheTest, RowsVersionStandsForTheseTokens) {
  Sha256 sum;
  for (const options::ChatFormat chat :
       {options::ChatFormat::gemma2, options::ChatFormat::gemma3, options::ChatFormat::none})
    for (const options::LossOn loss : {options::LossOn::completion, options::LossOn::assistant, options::LossOn::all}) {
      DatasetOptions o = cached_options(scratch.put("a.jsonl", many_rows(200)));
      o.chat = chat;
      o.loss = loss;
      const auto rows = open(o);
      sum.add_field(rows->properties()["settings"].dump());
      for (std::int64_t i = 0; i < rows->size(); ++i) {
        std::vector<int> ids;
        std::vector<std::uint8_t> loss_of;
        rows->read(i, 1 << 20, ids, loss_of);
        for (const int id : ids) sum.add_number(static_cast<std::uint64_t>(id));
        sum.add_field(std::string(loss_of.begin(), loss_of.end()));
      }
    }
  EXPECT_EQ(hex(sum.finish()).substr(0, 16), "1a75a75e1fde43d6");
}

// The order of the examples in batches: a run that is resumed continues in it, so it must not change.
TEST(EpochOrder, IsThatOfEveryVersion) {
  std::vector<ExampleSize> sizes;
  Rng rng{9};
  for (int i = 0; i < 5000; ++i) sizes.push_back({2 + static_cast<int>(rng.below(60)), 1});
  Sha256 sum;
  for (const Packing packing : {Packing::none, Packing::pack})
    for (const Order order : {Order::shuffled, Order::as_given})
      for (const std::int64_t epoch : {0, 1, 7})
        for (const auto& row :
             epoch_rows(sizes, {.rows = 1, .max_len = 64, .packing = packing, .order = order, .seed = 11}, epoch)) {
          for (const int e : row) sum.add_number(static_cast<std::uint64_t>(e));
          sum.add_field("row");
        }
  EXPECT_EQ(hex(sum.finish()).substr(0, 16), "5f3c8bfbe9469266");
}

}  // namespace
}  // namespace mw::data::testing
