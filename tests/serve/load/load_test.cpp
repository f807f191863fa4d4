// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/serve/load/load.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>
#include <set>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "tests/base/scratch.h"

namespace mw::serve {
namespace {

std::vector<double> intervals(const Load& load) {
  std::vector<double> all;
  for (size_t i = 1; i < load.requests.size(); ++i) all.push_back(load.requests[i].at_s - load.requests[i - 1].at_s);
  return all;
}
double mean_of(const std::vector<double>& v) {
  return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
}
double variation(const std::vector<double>& v) {  // deviation over mean
  double sum = 0;
  for (const double x : v) sum += std::pow(x - mean_of(v), 2);
  return std::sqrt(sum / static_cast<double>(v.size())) / mean_of(v);
}

TEST(Load, GammaArrivalsHaveTheirRateAndVariation) {
  for (const double burstiness : {0.25, 1.0, 4.0}) {
    const Load load = make_load({.request_rate = 5, .burstiness = burstiness, .num_prompts = 20000, .seed = 3});
    const auto between = intervals(load);
    EXPECT_NEAR(mean_of(between), 0.2, 0.2 * 4 / std::sqrt(burstiness * 20000));
    EXPECT_NEAR(variation(between), 1 / std::sqrt(burstiness), 0.04 / std::sqrt(burstiness));
    EXPECT_NEAR(load.requests.back().at_s, 20000 / 5.0, 1e-6);
  }
}

TEST(Load, RateScalesArrivalTimes) {
  const Load slow = make_load({.request_rate = 2, .num_prompts = 50}),
             fast = make_load({.request_rate = 8, .num_prompts = 50});
  for (size_t i = 0; i < 50; ++i) EXPECT_NEAR(slow.requests[i].at_s, 4 * fast.requests[i].at_s, 1e-9);
}

TEST(Load, ConstantArrivalsAreEvenAndBurstsImmediate) {
  for (const double interval : intervals(make_load({.arrival = options::Arrival::constant, .request_rate = 4})))
    EXPECT_NEAR(interval, 0.25, 1e-12);
  for (const options::LoadSettings& s : {options::LoadSettings{.arrival = options::Arrival::burst},
                                         options::LoadSettings{.request_rate = std::numeric_limits<double>::infinity()},
                                         options::LoadSettings{.arrival = options::Arrival::closed, .concurrency = 8}})
    for (const TimedRequest& r : make_load(s).requests) EXPECT_EQ(r.at_s, 0);
}

TEST(Load, UniformLengthsCoverExactlyTheirSpread) {
  const Load load = make_load({.input_len = 100,
                               .output_len = 10,
                               .lengths = options::LengthDistribution::uniform,
                               .spread = 0.3,
                               .num_prompts = 5000});
  std::set<int> prompts, outputs;
  for (const TimedRequest& r : load.requests) prompts.insert(r.prompt_len), outputs.insert(r.output_len);
  EXPECT_EQ(*prompts.begin(), 70);
  EXPECT_EQ(*prompts.rbegin(), 130);
  EXPECT_EQ(prompts.size(), 61u);
  EXPECT_EQ(outputs, (std::set<int>{7, 8, 9, 10, 11, 12, 13}));
}

TEST(Load, PromptsRepeatAtOtherRatesAndDifferWithAnotherSalt) {
  options::LoadSettings s{.input_len = 64, .shared_prefix = 16, .num_prompts = 20, .warmups = 3, .salt = 7};
  const Load a = make_load(s);
  s.request_rate = 50;
  const Load same = make_load(s);
  s.salt = 8;
  const Load other = make_load(s);
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(prompt_ids(a.requests[i], 4, 1000), prompt_ids(same.requests[i], 4, 1000));
    EXPECT_NE(prompt_ids(a.requests[i], 4, 1000), prompt_ids(other.requests[i], 4, 1000));
  }
  std::set<std::vector<int>> distinct;
  for (const auto* list : {&a.requests, &a.warmups})
    for (const TimedRequest& r : *list) distinct.insert(prompt_ids(r, 4, 1000));
  EXPECT_EQ(distinct.size(), 23u) << "warm-ups have different prompts";
}

TEST(Load, PromptsShareExactlyTheSharedPrefix) {
  const Load load = make_load({.input_len = 200, .shared_prefix = 50, .num_prompts = 2});
  const auto a = prompt_ids(load.requests[0], 100, 5000), b = prompt_ids(load.requests[1], 100, 5000);
  ASSERT_EQ(a.size(), 200u);
  int same_after = 0;
  for (size_t i = 0; i < 200; ++i) {
    EXPECT_GE(a[i], 100);
    EXPECT_LT(a[i], 5000);
    if (i < 50)
      EXPECT_EQ(a[i], b[i]);
    else
      same_after += a[i] == b[i] ? 1 : 0;
  }
  EXPECT_LT(same_after, 5);
  EXPECT_THROW(prompt_ids(load.requests[0], 100, 100), Error);
}

TEST(Load, RejectsInvalidSettingsByName) {
  const auto place = [](options::LoadSettings s) {
    try {
      make_load(s);
    } catch (const Error& e) {
      return e.problem().id + " " + e.problem().place;
    }
    return std::string();
  };
  EXPECT_EQ(place({.request_rate = 0}), "LOAD request_rate");
  EXPECT_EQ(place({.request_rate = std::nan("")}), "LOAD request_rate");
  EXPECT_EQ(place({.num_prompts = 0}), "LOAD num_prompts");
  EXPECT_EQ(place({.input_len = 0}), "LOAD input_len");
  EXPECT_EQ(place({.output_len = 0}), "LOAD output_len");
  EXPECT_EQ(place({.burstiness = 0}), "LOAD burstiness");
  EXPECT_EQ(place({.spread = 1.5}), "LOAD spread");
  EXPECT_EQ(place({.arrival = options::Arrival::closed}), "LOAD concurrency");
  EXPECT_EQ(place({.lengths = options::LengthDistribution::recorded}), "LOAD workload");
}

class WorkloadTest : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& text) { return scratch.put("workload", text); }
  test::Scratch scratch;
  std::filesystem::path file = scratch / "workload";
};

TEST_F(WorkloadTest, ReadsCsvJsonLinesListsAndDetailedResults) {
  const std::vector<std::string> texts{
      "arrival_s,prompt_tokens,output_tokens\n12.5,30,5\n10,100,20\n\n11,7,1\n",
      "\xEF\xBB\xBF\"prompt_len\", output_len ,arrival\r\n30,5,12.5\r\n100,20,10\r\n7,1,11",
      "{\"arrival_s\": 12.5, \"prompt_tokens\": 30, \"output_tokens\": 5}\n{\"arrival_s\": 10, \"prompt_tokens\": 100, "
      "\"output_tokens\": 20}\n{\"arrival_s\": 11, \"input_len\": 7, \"output_len\": 1, \"more\": \"x\"}\n",
      "[{\"arrived_at\": 12.5, \"num_prefill_tokens\": 30, \"num_decode_tokens\": 5},\n {\"arrived_at\": 10, "
      "\"num_prefill_tokens\": 100, \"num_decode_tokens\": 20},\n {\"arrived_at\": 11, \"num_prefill_tokens\": 7, "
      "\"num_decode_tokens\": 1}]"};
  for (const std::string& text : texts) {
    const auto rows = read_workload(write(text));
    ASSERT_EQ(rows.size(), 3u) << text;
    EXPECT_EQ(rows[0].at_s, 0);
    EXPECT_EQ(rows[1].at_s, 1);
    EXPECT_EQ(rows[2].at_s, 2.5);
    EXPECT_EQ(rows[0].prompt_len, 100);
    EXPECT_EQ(rows[2].output_len, 5);
  }
}

TEST_F(WorkloadTest, RecordedArrivalsScaleToAnyRate) {
  write("arrival_s,prompt_tokens,output_tokens\n0,10,1\n1,20,2\n4,30,3\n");
  options::LoadSettings s{.arrival = options::Arrival::recorded,
                          .request_rate = 0,
                          .lengths = options::LengthDistribution::recorded,
                          .workload = file,
                          .num_prompts = 5};
  Load load = make_load(s);
  const std::vector<double> own{0, 1, 4, 6, 7};  // mean rate 0.5 requests/s: the workload repeats after 6 s
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(load.requests[i].at_s, own[i], 1e-12);
    EXPECT_EQ(load.requests[i].prompt_len, 10 * static_cast<int>(i % 3 + 1));
  }
  EXPECT_NEAR(load.settings.request_rate, 0.5, 1e-12);
  s.request_rate = 5;
  load = make_load(s);
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(load.requests[i].at_s, own[i] / 10, 1e-12);
}

TEST_F(WorkloadTest, NamesFileAndPlaceOfErrors) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "line 1"},
      {"a,b\n1,2\n", "line 1"},
      {"arrival_s,prompt_tokens,output_tokens\n", ""},
      {"arrival_s,prompt_tokens,output_tokens\n0,5,5\n1,x,5\n", "line 3"},
      {"arrival_s,prompt_tokens,output_tokens\n0,5\n", "line 2"},
      {"arrival_s,prompt_tokens,output_tokens\nnan,5,5\n", "line 2"},
      {"arrival_s,prompt_tokens,output_tokens\n0,-5,5\n", "line 2"},
      {"arrival_s,prompt_tokens,output_tokens\n0,2.5,5\n", "line 2"},
      {"arrival_s,prompt_tokens,output_tokens\n0,1e300,5\n", "line 2"},
      {"{\"prompt_tokens\": 5, \"output_tokens\": 5}\n{\"prompt_tokens\": \"many\", \"output_tokens\": 5}\n", "line 2"},
      {"[{\"prompt_tokens\": 5, \"output_tokens\": 5}, 7]", "[1]"},
      {"[]", ""}};
  for (const auto& [text, place] : cases) try {
      read_workload(write(text));
      ADD_FAILURE() << text;
    } catch (const Error& e) {
      EXPECT_EQ(e.problem().file, file.string()) << text;
      EXPECT_EQ(e.problem().place, place) << text;
      EXPECT_EQ(e.kind(), Error::Kind::bad_input);
    }
}

TEST_F(WorkloadTest, MutatedFilesGiveRowsOrAnError) {
  const std::vector<std::string> seeds{
      "arrival_s,prompt_tokens,output_tokens\n12.5,30,5\n10,100,20\n",
      "{\"arrival_s\": 1, \"prompt_tokens\": 30, \"output_tokens\": 5}\n{\"prompt_tokens\": 3, \"output_tokens\": 5}\n",
      "{\"input_lens\": [3, 4], \"output_lens\": [1, 2], \"ttfts\": [0.1, 0.2], \"itls\": [[], [0.1]], \"errors\": "
      "[\"\", \"\"]}"};
  Rng rng{5};
  int read = 0, rejected = 0;
  for (int i = 0; i < 600; ++i) {
    std::string text = seeds[rng.below(seeds.size())];
    for (std::uint64_t edits = 1 + rng.below(4); edits > 0 && !text.empty(); --edits) {
      const size_t at = rng.below(text.size());
      if (rng.below(3) == 0)
        text.resize(at);
      else
        text[at] = static_cast<char>(rng.below(2) ? rng.below(256) : "{}[],:\"0-e"[rng.below(10)]);
    }
    try {
      for (const RecordedRequest& r : read_workload(write(text)))
        EXPECT_TRUE(r.prompt_len >= 1 && r.output_len >= 1 && r.at_s >= 0);
      ++read;
    } catch (const Error&) {
      ++rejected;
    }
  }
  EXPECT_GT(read, 20);
  EXPECT_GT(rejected, 100);
}

}  // namespace
}  // namespace mw::serve
