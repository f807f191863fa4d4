// SPDX-License-Identifier: GPL-3.0-or-later
// A view of the data against what the trainer makes of the same experiment.
#include "core/views/data_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <fstream>

#include "core/data/dataset/row_cache.h"
#include "core/plan/experiment/experiment_plan.h"
#include "core/train/model.h"
#include "core/train/settings.h"
#include "core/train/trainer.h"
#include "tests/base/scratch.h"
#include "tests/shipped.h"

namespace mw::views {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class DataViewTest : public testing::Test {
 protected:
  DataViewTest() {
    e_ = experiment::Experiment::from_json(Json::object(), folder_);
    e_.set_value("model.path", MW_RESOURCES "/base-model");
    e_.set_value("data.path", MW_RESOURCES "/instructions/small-world.json");
    e_.set_value("data.max_len", 48);
    e_.set_value("train.batch", 6);
  }
  std::string write(const std::string& name, const std::string& content) const {
    return scratch_.put(name, content).string();
  }
  // "" where there is none.
  static std::string id_of(const std::function<void()>& work) {
    try {
      work();
    } catch (const Error& error) {
      return error.problem().id + " " + error.problem().place;
    }
    return {};
  }
  const data::Tokenizer& tokenizer() const {
    static const auto loaded = data::load_tokenizer(MW_RESOURCES "/base-model");
    return *loaded;
  }
  train::DataIndex index() {
    rows_.clear();
    question_ = train::data_index_request(e_);
    return train::index_data(question_, &tokenizer(), {}, {}, [&](const data::DataRow& row) { rows_.push_back(row); });
  }

  test::Scratch scratch_;
  const fs::path& folder_ = scratch_.path();
  experiment::Experiment e_;
  train::DataIndexRequest question_;
  std::vector<data::DataRow> rows_;
};

TEST_F(DataViewTest, PlanFindsTheTokensThatThePageHasRead) {
  const fs::path cache = folder_ / "cache";
  const auto entries = [&] {
    std::map<std::string, ino_t> found;
    for (const auto& file : fs::directory_iterator(cache)) {
      struct stat st {};
      if (file.path().extension() == ".rows" && ::stat(file.path().c_str(), &st) == 0)
        found[file.path().filename()] = st.st_ino;
    }
    return found;
  };
  data::set_row_cache({.folder = cache, .least_bytes = 1});
  const train::DataIndex read = index();
  const auto made = entries();
  EXPECT_EQ(made.size(), 1u);
  e_.set_value("data.max_len", 40);
  EXPECT_FALSE(plan::plan_experiment(e_, mw::test::context()).plan.memory.is_bound);
  EXPECT_EQ(entries(), made);
  e_.set_value("data.max_len", 48);
  const train::DataIndex again = index();
  data::set_row_cache({});
  EXPECT_EQ(again.lengths, read.lengths);
  EXPECT_EQ(again.report.loss_tokens, read.report.loss_tokens);
  EXPECT_EQ(again.train.size(), read.train.size());
}

TEST_F(DataViewTest, CountsMatchTheTrainer) {
  for (const char* overlong : {"drop", "truncate"})
    for (const char* loss : {"completion", "all"})
      for (const bool packing : {false, true}) {
        e_.set_value("data.overlong", overlong);
        e_.set_value("data.loss", loss);
        e_.set_value("data.packing", packing);
        const train::DataIndex view = index();
        ASSERT_FALSE(view.ended);
        const train::Settings settings = train::train_settings(e_.config());
        const data::Dataset loaded = data::load_dataset(settings.data, *train::load_tokenizer_of(settings.model));
        EXPECT_EQ(view.report.rows, loaded.report.rows);
        EXPECT_EQ(view.report.kept, loaded.report.kept);
        EXPECT_EQ(view.report.dropped_long, loaded.report.dropped_long);
        EXPECT_EQ(view.report.truncated, loaded.report.truncated);
        EXPECT_EQ(view.report.no_loss, loaded.report.no_loss);
        EXPECT_EQ(view.report.tokens, loaded.report.tokens);
        EXPECT_EQ(view.report.loss_tokens, loaded.report.loss_tokens);
        EXPECT_EQ(view.report.format, loaded.report.format);
        EXPECT_EQ(view.train.size(), loaded.train.size());
        EXPECT_EQ(view.held_out, std::ssize(loaded.eval));
        EXPECT_GT(view.report.dropped_long + view.report.truncated, 0);

        // The first epoch, batch by batch as the trainer takes them.
        data::BatchStream stream(loaded.train, train::batch_options(settings), tokenizer().pad());
        std::int64_t real = 0, loss_tokens = 0, slots = 0;
        for (std::int64_t n = 0; n < stream.batches_per_epoch(); ++n) {
          const data::Batch batch = stream.next();
          real += batch.real_tokens;
          loss_tokens += batch.loss_tokens;
          slots += std::int64_t{batch.rows} * batch.len;
        }
        const auto economy = economy_of(view, question_);
        ASSERT_TRUE(economy);
        const data::EpochSize& epoch = packing ? economy->packed : economy->plain;
        EXPECT_EQ(epoch.batches, stream.batches_per_epoch());
        EXPECT_EQ(epoch.tokens, real);
        EXPECT_EQ(epoch.loss_tokens, loss_tokens);
        EXPECT_EQ(epoch.padded, slots);
        EXPECT_LT(economy->packed.fixed, economy->plain.fixed);
        const PaddedShares shares = shares_of(epoch, PadTo::longest);
        EXPECT_EQ(shares.padded, slots);
        EXPECT_DOUBLE_EQ(shares.real, static_cast<double>(real) / static_cast<double>(slots));
        EXPECT_DOUBLE_EQ(shares.real + shares.padding, 1);
        EXPECT_DOUBLE_EQ(shares.loss, static_cast<double>(loss_tokens) / static_cast<double>(slots));
        const auto per_token = [](const data::EpochSize& e) {
          return static_cast<double>(e.fixed) / static_cast<double>(e.tokens);
        };
        EXPECT_NEAR(packing_factor(*economy, PadTo::max_len), per_token(economy->plain) / per_token(economy->packed),
                    1e-12);
      }
}

TEST_F(DataViewTest, ShowsTheTokensThatAreTrained) {
  e_.set_value("data.overlong", "truncate");
  index();
  const train::Settings settings = train::train_settings(e_.config());
  const data::Dataset loaded = data::load_dataset(settings.data, tokenizer());
  std::map<std::int64_t, const data::Example*> trained;
  for (const auto* part : {&loaded.train, &loaded.eval})
    for (const data::Example& example : *part) trained[example.row] = &example;
  size_t cut = 0, specials = 0;
  for (size_t i = 0; i < rows_.size(); i += 23) {
    const DataDetail detail = detail_of(question_, tokenizer(), rows_[i]);
    ASSERT_EQ(trained.contains(rows_[i].row), rows_[i].used > 0);
    if (rows_[i].used == 0) continue;  // the answer is behind the cut
    const data::Example& example = *trained.at(rows_[i].row);
    EXPECT_EQ(detail.row.used, rows_[i].used);
    ASSERT_EQ(std::ssize(example.ids), detail.row.used);
    EXPECT_EQ(std::ssize(detail.tokens), detail.row.tokens);
    std::int64_t loss = 0;
    for (size_t t = 0; t < example.ids.size(); ++t) {
      EXPECT_EQ(detail.tokens[t].id, example.ids[t]);
      EXPECT_EQ(detail.tokens[t].loss, example.loss[t] != 0);
      EXPECT_EQ(detail.tokens[t].piece, tokenizer().piece(example.ids[t]));
      loss += detail.tokens[t].loss;
      specials += detail.tokens[t].kind == TokenKind::special;
    }
    EXPECT_EQ(loss, rows_[i].loss_tokens);
    EXPECT_EQ(detail.tokens[0].kind, TokenKind::special);
    cut += detail.row.tokens > detail.row.used;
  }
  EXPECT_GT(cut, 0u);
  EXPECT_GT(specials, rows_.size() / 23 * 3);  // bos and the turns
}

TEST_F(DataViewTest, ABadRowKeepsItsPositionAndError) {
  e_.set_value("data.path", write("a.jsonl",
                                  "{\"prompt\":\"a\",\"completion\":\"b\"}\n{\"prompt\":\"only\"}\nnot json\n"
                                  "{\"prompt\":\"c\",\"completion\":\"d\"}\n"));
  e_.set_value("data.eval_fraction", 0.0);
  const train::DataIndex view = index();
  ASSERT_EQ(rows_.size(), 4u);
  EXPECT_EQ(view.report.skipped_bad, 2);
  EXPECT_EQ(view.train.size(), 2u);
  EXPECT_FALSE(view.ended);
  ASSERT_TRUE(view.first_bad);
  EXPECT_EQ(view.first_bad->place, "line 2");
  EXPECT_EQ(rows_[2].state, data::RowState::bad);
  const DataDetail detail = detail_of(question_, tokenizer(), rows_[2]);
  EXPECT_TRUE(detail.tokens.empty());
  EXPECT_THAT(detail.problem.place, HasSubstr("line 3"));
  // What the trainer says of the same file.
  EXPECT_EQ(id_of([&] { data::load_dataset(train::train_settings(e_.config()).data, tokenizer()); }),
            "DATA-ROW line 2");
}

TEST_F(DataViewTest, ReportsWhyReadingEnded) {
  e_.set_value("data.path", write("a.json", R"([{"prompt":"a","completion":"b"}, {"prompt":)"));
  const train::DataIndex view = index();
  EXPECT_EQ(rows_.size(), 1u);
  ASSERT_TRUE(view.ended);
  EXPECT_EQ(view.ended->id, "DATA-ROW");
  e_.set_value("data.path", (folder_ / "none.jsonl").string());
  EXPECT_EQ(index().ended->id, "SYSTEM");
  e_.set_value("data.path", MW_RESOURCES "/instructions/small-world.json");
  question_ = train::data_index_request(e_);
  const train::DataIndex few = train::index_data(question_, &tokenizer(), {}, {}, {}, 10);
  EXPECT_EQ(few.report.rows, 10);
  EXPECT_EQ(few.ended->id, "DATA-MANY");
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(id_of([&] { train::index_data(question_, &tokenizer(), stop.get_token()); }), "CANCELLED ");
}

TEST_F(DataViewTest, ARowOfAFileThatChangedIsNotShown) {
  e_.set_value("data.path", write("a.jsonl", "{\"text\":\"a b c\"}\n"));
  index();
  EXPECT_EQ(detail_of(question_, tokenizer(), rows_.at(0)).row.tokens, rows_[0].tokens);
  write("a.jsonl", "{\"text\":\"a b c d e f\"}\n");
  EXPECT_EQ(id_of([&] { detail_of(question_, tokenizer(), rows_[0]); }), "DATA-CHANGED ");
  EXPECT_FALSE(train::data_index_request(e_).same_rows(question_));
}

TEST_F(DataViewTest, SavedLengthsGiveTheSamePadding) {
  e_.set_value("data.eval_fraction", 0.0);
  const train::DataIndex measured = index();
  const auto of_rows = economy_of(measured, question_);
  data::write_lengths(folder_ / "lengths.json", measured.lengths, "small-world.json");
  e_.erase("data.path");
  e_.set_value("data.lengths", "lengths.json");
  e_.erase("model.path");
  e_.set_value("target.id", "v5p-8");  // planned for elsewhere
  const train::DataIndex planned = index();
  EXPECT_EQ(question_.source, train::DataSource::lengths);
  ASSERT_FALSE(planned.ended);
  EXPECT_TRUE(rows_.empty());
  EXPECT_EQ(planned.lengths, measured.lengths);
  EXPECT_EQ(planned.report.dropped_long, measured.report.dropped_long);
  const auto of_lengths = economy_of(planned, question_);
  EXPECT_FALSE(of_lengths->loss_known);
  EXPECT_EQ(of_lengths->plain.rows, of_rows->plain.rows);
  EXPECT_EQ(of_lengths->plain.fixed, of_rows->plain.fixed);
  // In another order: the packed rows differ a little.
  EXPECT_NEAR(static_cast<double>(of_lengths->packed.fixed), static_cast<double>(of_rows->packed.fixed),
              0.01 * static_cast<double>(of_rows->packed.fixed));
}

TEST_F(DataViewTest, RequestReportsMissingInputs) {
  EXPECT_EQ(train::data_index_request(experiment::Experiment()).source, train::DataSource::none);
  e_.set_value("train.learning_rate", "not a number");  // nothing to do with the data
  EXPECT_EQ(id_of([&] { train::data_index_request(e_); }), "");
  e_.set_value("data.max_len", 1);
  EXPECT_EQ(id_of([&] { train::data_index_request(e_); }), "RANGE data.max_len");
  e_.set_value("data.max_len", 64);
  e_.erase("model.path");
  EXPECT_EQ(id_of([&] { train::data_index_request(e_); }), "MISSING model.path");
  e_.set_value("model.id", "gemma3-1b");
  EXPECT_EQ(id_of([&] { train::data_index_request(e_); }), "MISSING model.tokenizer");
  e_.set_value("model.tokenizer", MW_RESOURCES "/base-model/tokenizer.json");
  EXPECT_TRUE(train::data_index_request(e_).options.chat.folder());  // the template beside the tokenizer
  e_.set_value("data.chat", "gemma3");
  EXPECT_EQ(train::data_index_request(e_).options.chat, options::ChatFormat::gemma3);
  const train::DataIndexRequest before = train::data_index_request(e_);
  e_.set_value("train.batch", 9);
  EXPECT_TRUE(train::data_index_request(e_).same_rows(before));
  EXPECT_FALSE(train::data_index_request(e_) == before);
}

TEST_F(DataViewTest, OnlyRelevantEditsChangeTheRequest) {
  for (const auto& [key, value] : {std::pair<const char*, Json>{"train.learning_rate", 1.0},
                                   {"lora.rank", 3},
                                   {"name", "x"},
                                   {"train.steps", 9}}) {
    experiment::Experiment edited = e_;
    edited.set_value(key, value);
    EXPECT_TRUE(train::same_data(e_, edited)) << key;
  }
  for (const auto& [key, value] : {std::pair<const char*, Json>{"train.batch", 7},
                                   {"train.seed", 3},
                                   {"data.packing", true},
                                   {"data.columns.prompt", "q"},
                                   {"model.tokenizer", "t"}}) {
    experiment::Experiment edited = e_;
    edited.set_value(key, value);
    EXPECT_FALSE(train::same_data(e_, edited)) << key;
    EXPECT_FALSE(train::same_data(edited, e_)) << key;
  }
}

TEST_F(DataViewTest, PackingFactorCorrectsForFewRows) {
  e_.set_value("data.path", write("a.jsonl", "{\"text\":\"a\"}\n{\"text\":\"b\"}\n{\"text\":\"c\"}\n"));
  e_.set_value("data.eval_fraction", 0.0);
  const auto economy = economy_of(index(), question_);
  EXPECT_GT(economy->packed.tokens, economy->plain.tokens);
  EXPECT_DOUBLE_EQ(packing_factor(*economy, PadTo::longest), 1);
  EXPECT_NEAR(packing_factor(*economy, PadTo::max_len), 3, 1e-12);
  const EpochCost cost = epoch_cost(*economy, PadTo::max_len, {Seconds(1), std::nullopt});
  EXPECT_DOUBLE_EQ(cost.padding.seconds->value, static_cast<double>(economy->plain.fixed - economy->plain.tokens));
  EXPECT_DOUBLE_EQ(cost.saved.seconds->value, static_cast<double>(economy->plain.fixed * 2 / 3));
  EXPECT_FALSE(cost.saved.usd);
}

TEST_F(DataViewTest, CostsAreEmptyWithoutPrices) {
  EXPECT_FALSE(cost_of(100, {}).seconds);
  EXPECT_FALSE(cost_of(100, {std::nullopt, Usd(7)}).usd);
  EXPECT_DOUBLE_EQ(cost_of(1000, {Seconds(0.5), std::nullopt}).seconds->value, 500);
  EXPECT_FALSE(cost_of(1000, {Seconds(0.5), std::nullopt}).usd);
  EXPECT_DOUBLE_EQ(cost_of(7200, {Seconds(0.5), Usd(3)}).usd->value, 3);
}

}  // namespace
}  // namespace mw::views
