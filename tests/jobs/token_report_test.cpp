// SPDX-License-Identifier: GPL-3.0-or-later
// One row token by token: losses are those of training, neighbours those of the packer, the served template the
// model's.
#include "core/jobs/token_report.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <numeric>

#include "core/data/dataset/batches.h"
#include "core/data/dataset/dataset.h"
#include "core/engine/transformer/network.h"
#include "core/experiment/bound_experiment.h"
#include "core/train/evaluate.h"
#include "core/train/model.h"
#include "core/train/settings.h"
#include "tests/base/scratch.h"

namespace mw::jobs {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class TokenReport : public testing::Test {
 protected:
  test::Scratch scratch_;
  experiment::Experiment experiment_;
  std::unique_ptr<data::Tokenizer> tokenizer_ = data::load_tokenizer(MW_RESOURCES "/base-model");
  std::vector<data::DataRow> rows_;

  train::DataIndexRequest index(const std::string& rows, const Json& data = Json::object()) {
    std::ofstream(scratch_.path() / "rows.jsonl") << rows;
    experiment_.set_value("model.path", MW_RESOURCES "/base-model");
    experiment_.set_value("data.path", (scratch_.path() / "rows.jsonl").string());
    experiment_.set_value("data.eval_fraction", 0);
    for (const auto& [key, value] : data.items()) experiment_.set_value("data." + key, value);
    const train::DataIndexRequest request = train::data_index_request(experiment_);
    rows_.clear();
    train::index_data(request, tokenizer_.get(), {}, {}, [&](const data::DataRow& r) { rows_.push_back(r); });
    return request;
  }
  TemplateDifference difference(const std::string& rows, const Json& data, options::ChatFormat served) {
    const auto request = index(rows, data);
    return template_difference(request, *tokenizer_, rows_.at(0), served);
  }
};

constexpr const char* kPair = R"({"prompt": "What colour is the rope?", "completion": "Black"})"
                              "\n";

TEST_F(TokenReport, LossesAverageToTheHeldOutLossOfTheTrainer) {
  const auto request = index(kPair);
  data::Dataset dataset = data::load_dataset(request.options, *tokenizer_);
  const data::Example& example = dataset.train.at(0);
  const TokenLosses losses = token_losses(experiment_, {}, example.ids);
  ASSERT_EQ(losses.base.size(), example.ids.size());
  EXPECT_FALSE(losses.base[0]);
  EXPECT_TRUE(losses.tuned.empty());
  double sum = 0;
  int n = 0;
  for (size_t i = 1; i < example.ids.size(); ++i)
    if (example.loss[i]) sum += *losses.base[i], ++n;
  train::ModelSettings settings = train::model_settings(experiment_.config());
  settings.context = 256;
  train::LoadedModel model = train::load_model(settings);
  const auto expected = train::held_out_loss(model, dataset.train, {}, {}, {});
  ASSERT_TRUE(expected);
  EXPECT_NEAR(sum / n, *expected, 1e-4 * *expected);
}

TEST_F(TokenReport, AWholeModelAsTunedModelHasTheLossesOfTheBase) {
  const auto request = index(kPair);
  const data::Dataset dataset = data::load_dataset(request.options, *tokenizer_);
  const TokenLosses losses = token_losses(experiment_, MW_RESOURCES "/base-model", dataset.train.at(0).ids);
  ASSERT_EQ(losses.tuned.size(), losses.base.size());
  for (size_t i = 1; i < losses.base.size(); ++i) EXPECT_EQ(*losses.tuned[i], *losses.base[i]) << i;
}

TEST_F(TokenReport, ARowBeyondTheContextIsRefused) {
  index(kPair);
  const std::vector<int> ids(1'000'000, 5);
  EXPECT_THROW(token_losses(experiment_, {}, ids), Error);
}

TEST_F(TokenReport, AttentionIsLimitedByTheWindow) {
  EXPECT_EQ(attended(3, 0).sliding, 0);
  EXPECT_EQ(attended(3, 512).sliding, 0);
  EXPECT_EQ(attended(600, 512).sliding, 89);  // 512 tokens, itself included
  EXPECT_EQ(attended(600, 512).global, 0);
}

TEST_F(TokenReport, NeighboursAreThoseOfThePackedRow) {
  std::string rows;
  for (int i = 0; i < 40; ++i)
    rows +=
        Json{{"prompt", "Count to " + std::to_string(i)}, {"completion", std::string(1 + i % 7, 'a')}}.dump() + "\n";
  const auto request = index(rows, {{"packing", true}, {"max_len", 128}});
  ASSERT_EQ(request.batches.packing, data::Packing::pack);
  const auto mates = packed_with(7, rows_, request.batches);
  ASSERT_GT(mates.size(), 1U);
  int sum = 0;
  bool own = false;
  for (const PackedNeighbour& n : mates) {
    sum += n.tokens;
    own = own || n.row == 7;
    const auto back = packed_with(n.row, rows_, request.batches);  // the same row from every member
    EXPECT_EQ(back.size(), mates.size());
  }
  EXPECT_TRUE(own);
  EXPECT_LE(sum, 128);
  data::BatchOptions plain = request.batches;
  plain.packing = data::Packing::none;
  EXPECT_TRUE(packed_with(7, rows_, plain).empty());
  EXPECT_TRUE(packed_with(1000, rows_, request.batches).empty());
}

TEST_F(TokenReport, TheModelsOwnTemplateEncodesThePromptInTheSameTokens) {
  const TemplateDifference d = difference(kPair, {{"chat", "gemma3"}}, options::ChatFormat::gemma3);
  EXPECT_FALSE(d.token) << d.trained << " / " << d.served;
  EXPECT_TRUE(d.missing.empty()) << d.missing;
}

TEST_F(TokenReport, ARowTrainedWithoutTemplateDiffersFromTheFirstTokenOn) {
  const TemplateDifference d = difference(kPair, {{"chat", "none"}}, options::ChatFormat::gemma3);
  ASSERT_TRUE(d.token);
  EXPECT_EQ(*d.token, 1);  // after bos
  EXPECT_EQ(d.served, "<start_of_turn>");
  EXPECT_THAT(row_notes({}, d), testing::Contains(HasSubstr("differently from token 2")));
}

TEST_F(TokenReport, ASystemTurnThatTheServedTemplateRefusesIsNotCompared) {
  const std::string row =
      R"({"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}]})"
      "\n";
  const TemplateDifference d = difference(row, {{"chat", "gemma3"}}, options::ChatFormat::gemma2);
  EXPECT_FALSE(d.token);
  EXPECT_THAT(d.missing, HasSubstr("no system turn"));
}

TEST_F(TokenReport, TextHasNoPromptToCompare) {
  const TemplateDifference d = difference("{\"text\": \"Only text\"}\n", {}, options::ChatFormat::gemma3);
  EXPECT_FALSE(d.token);
  EXPECT_THAT(d.missing, HasSubstr("no prompt"));
}

}  // namespace
}  // namespace mw::jobs
