// SPDX-License-Identifier: Apache-2.0
#include "core/compare/comparison.h"

#include <algorithm>
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "core/formats/results/bench_import.h"
#include "core/formats/results/csv.h"
#include "tests/shipped.h"

namespace mw::compare {
namespace {

using formats::BenchPoint;
using formats::BenchSet;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

BenchPoint point(double rate, int in, double ttft, double tpot, double throughput) {
  BenchPoint p;
  p.request_rate = rate;
  p.input_len = in;
  p.output_len = 128;
  p.num_prompts = p.completed = 1000;
  p.ttft.median = ttft;
  p.tpot.median = tpot;
  p.output_throughput = throughput;
  return p;
}

BenchSet base() {
  return {.name = "base",
          .provenance = formats::ResultProvenance::measured,
          .tool = "vllm bench serve 0.19.0",
          .model = "google/gemma-3-1b-it",
          .target = "v6e-8",
          .chips = 8,
          .usd_per_hour = 20,
          .conditions = {{"kv_dtype", "bf16"}, {"prefix_cache", "off"}, {"version", "0.19.0"}},
          .points = {point(1, 512, 40, 10, 100), point(4, 512, 50, 12, 400), point(4, 4096, 300, 15, 390)}};
}

Comparison with(const std::function<void(BenchSet&)>& change) {
  BenchSet other = base();
  other.name = "other";
  other.points[1].ttft.median = 25;
  change(other);
  return compare({compared(base()), compared(other)});
}

const ComparisonRow* row(const Comparison& c, const std::string& key) {
  for (const ComparisonRow& r : c.rows)
    if (r.key == key) return &r;
  return nullptr;
}

TEST(Comparison, NamesRatesThatAreTooShortForACapacity) {
  ComparedRun run = compared(base());
  for (BenchPoint& p : run.sweep->set.points) p.request_throughput = p.request_rate > 1 ? 1 : 0.9;
  run.sweep = views::sweep_view(run.sweep->set, {.ttft_ms = 400});
  const Comparison both = compare({run, run});
  const ComparisonRow* capacity = row(both, "4096.capacity_at_slo");
  ASSERT_NE(capacity, nullptr) << "the reason is shown although no capacity is";
  EXPECT_FALSE(capacity->values[0]);
  EXPECT_THAT(capacity->marks[0], HasSubstr("too short to tell which rate meets the SLO: at 4 requests/s"));
  EXPECT_THAT(row(both, "512.capacity_at_slo")->marks[0], HasSubstr("meets the SLO to 1 requests/s; at 4 requests/s"));
}

std::vector<std::string> keys(const Comparison& c) {
  std::vector<std::string> all;
  for (const Confounder& k : c.confounders) all.push_back(k.key);
  return all;
}

TEST(Comparison, ServersThatDifferOnlyInChipsCompareFairly) {
  const Comparison c = with([](BenchSet& s) {
    s.target = "2xh100";
    s.chips = 2;
    s.usd_per_hour = 10;
  });
  EXPECT_EQ(c.verdict, Fairness::fair) << c.confounders.at(0).text;
  EXPECT_THAT(c.names, ElementsAre("base", "other"));
  ASSERT_TRUE(row(c, "target"));
  EXPECT_THAT(row(c, "target")->texts, ElementsAre("v6e-8", "2xh100"));
  EXPECT_FALSE(row(c, "model"));  // the same on both
  EXPECT_FALSE(row(c, "kv_dtype"));
  const ComparisonRow* ttft = row(c, "512/128@4.median_ttft_ms");
  ASSERT_TRUE(ttft);
  EXPECT_EQ(*ttft->values[1], 25);
  EXPECT_FALSE(ttft->deltas[0]);
  EXPECT_DOUBLE_EQ(*ttft->deltas[1], -0.5);
  EXPECT_EQ(ttft->better, ComparisonRow::Better::lower);
  // 20 USD an hour at 400 tokens/s: 13.89 USD per million; the other half of it.
  const ComparisonRow* usd = row(c, "512/128.usd_per_million_output_tokens");
  ASSERT_TRUE(usd);
  EXPECT_NEAR(*usd->values[0], 20.0 / 3600 / 400 * 1e6, 1e-9);
  EXPECT_NEAR(*usd->deltas[1], -0.5, 1e-12);
  EXPECT_EQ(*row(c, "512/128.peak_output_throughput")->values[0], 400);
}

TEST(Comparison, ReportsEveryConfounder) {
  const auto named = [&](const std::string& key, const std::function<void(BenchSet&)>& change,
                         Fairness verdict = Fairness::confounded) {
    const Comparison c = with(change);
    EXPECT_THAT(keys(c), Contains(key));
    EXPECT_EQ(c.verdict, verdict) << key;
    for (const Confounder& k : c.confounders) EXPECT_THAT(k.text, Not(IsEmpty())) << k.key;
  };
  for (const char* key : {"kv_dtype", "prefix_cache", "version"}) {
    named(key, [&](BenchSet& s) { s.conditions[key] = "another"; });
    named(key, [&](BenchSet& s) { s.conditions.erase(key); });  // saying nothing is no agreement
  }
  for (const char* key : {"tokenizer", "seed", "arrival", "lengths", "max_model_len"}) {
    EXPECT_THAT(keys(with([&](BenchSet& s) { s.conditions[key] = "x"; })), Not(Contains(key)));
    BenchSet a = base(), b = base();
    a.conditions[key] = "x";
    b.conditions[key] = "y";
    EXPECT_THAT(keys(compare({compared(a), compared(b)})), Contains(key));
  }
  named("definitions.tpot", [](BenchSet& s) { s.definitions.tpot = formats::Definitions::Tpot::with_first; });
  named("definitions.start", [](BenchSet& s) { s.definitions.start = formats::Definitions::Start::intended; });
  named("definitions.peak", [](BenchSet& s) { s.definitions.peak = formats::Definitions::Peak::unclear; });
  named("provenance", [](BenchSet& s) { s.provenance = formats::ResultProvenance::predicted; });
  named("tool", [](BenchSet& s) { s.tool = "guidellm 0.8.1"; });
  named("model", [](BenchSet& s) { s.model = "gemma3-4b"; });
  named(
      "model", [](BenchSet& s) { s.model = "gemma3-4b", s.target = "2xh100"; }, Fairness::meaningless);
  named("requests", [](BenchSet& s) {
    for (BenchPoint& p : s.points) p.num_prompts = p.completed = 30;
  });
  named("loop", [](BenchSet& s) {
    for (BenchPoint& p : s.points) p.request_rate = formats::kUnknown, p.max_concurrency = 8;
  });
  named(
      "loads",
      [](BenchSet& s) {
        for (BenchPoint& p : s.points) p.input_len += 1000;
      },
      Fairness::meaningless);
  named("saturation", [](BenchSet& s) { s.points[1].verdict = "overloaded"; });
  named("failed", [](BenchSet& s) { s.points[1].failed = 10, s.points[1].completed = 990; });
  named("client_limited", [](BenchSet& s) { s.points[1].num_prompts = s.points[1].completed = 5; });
  EXPECT_THAT(keys(with([](BenchSet& s) { s.model = "gemma3-1b"; })),
              Not(Contains("model")));  // the same by another name
  EXPECT_THAT(keys(with([](BenchSet& s) { s.tool = "vllm bench serve 0.20.0"; })), Not(Contains("tool")));
}

TEST(Comparison, ConfoundersGroupRunsByValue) {
  const auto text = [](const std::vector<std::string>& types) {
    std::vector<ComparedRun> runs;
    for (const std::string& type : types) {
      BenchSet s = base();
      s.name = "A set of results with a name that is long, number " + std::to_string(runs.size() + 1);
      s.conditions["kv_dtype"] = type;
      runs.push_back(compared(s));
    }
    for (const Confounder& k : compare(runs).confounders)
      if (k.key == "kv_dtype") return k.text;
    return std::string();
  };
  EXPECT_THAT(text({"fp8", "bf16"}), HasSubstr("(fp8 in baseline, bf16 in the other)"));
  EXPECT_THAT(text({"fp8", "bf16", "bf16", "bf16"}), HasSubstr("(fp8 in 1, bf16 in the others)"));
  EXPECT_THAT(text({"bf16", "fp8", "bf16", "int8"}), HasSubstr("(fp8 in 2, int8 in 4, bf16 in the others)"));
}

TEST(Comparison, HighRatesAreWrittenOut) {
  BenchSet s = base();
  s.points[0].request_rate = 10000;
  const Comparison c = compare({compared(s), compared(s)});
  bool found = false;
  for (const ComparisonRow& r : c.rows) {
    EXPECT_EQ(r.label.find("e+"), std::string::npos) << r.label;
    EXPECT_EQ(r.key.find("e+"), std::string::npos) << r.key;
    found = found || r.label.find("10,000/s") != std::string::npos;
  }
  EXPECT_TRUE(found);
}

TEST(Comparison, TpotDefinitionsHaveSeparateRows) {
  const Comparison c = with([](BenchSet& s) { s.definitions.tpot = formats::Definitions::Tpot::with_first; });
  ASSERT_TRUE(row(c, "512/128@4.median_tpot_ms"));
  EXPECT_FALSE(row(c, "512/128@4.median_tpot_ms")->values[1]);
  ASSERT_TRUE(row(c, "512/128@4.median_tpot_with_first_ms"));
  EXPECT_FALSE(row(c, "512/128@4.median_tpot_with_first_ms")->values[0]);
}

TEST(Comparison, LoadsMatchWithinAFewTokensAndRepeatsAreAveraged) {
  const Comparison c = with([](BenchSet& s) {
    s.points[1].input_len = 509;  // random prompts as a tokenizer counts them
    s.points.push_back(s.points[1]);
    s.points.back().ttft.median = 35;
  });
  EXPECT_DOUBLE_EQ(*row(c, "512/128@4.median_ttft_ms")->values[1], 30);
}

TEST(Comparison, TrainingIsPaidOnceAndServingByTheHour) {
  BenchSet tpu = base(), gpu = base();
  gpu.name = "gpu";
  tpu.usd_per_hour = 21.52;
  gpu.usd_per_hour = 22.12;
  std::vector<ComparedRun> runs{compared(tpu), compared(gpu)};
  runs[0].train_usd = 56.11;
  runs[1].train_usd = 119.23;
  const Comparison c = compare(runs);
  EXPECT_NEAR(*row(c, "tco.1h")->values[0], 77.63, 0.005);  // the paper's
  EXPECT_NEAR(*row(c, "tco.1h")->values[1], 141.35, 0.005);
  EXPECT_NEAR(*row(c, "tco.8h")->values[0], 228.27, 0.005);
  EXPECT_NEAR(*row(c, "tco.24h")->values[1], 650.11, 0.005);
  EXPECT_FALSE(row(c, "tco.break_even"));  // never: dearer from the first hour on
  runs[1].train_usd = 40;
  EXPECT_NEAR(*row(compare(runs), "tco.break_even")->values[1], (56.11 - 40) / (22.12 - 21.52), 1e-6);
}

TEST(Comparison, ThePapersPlatformsAreConfoundedAndTwoCellsAreImpossible) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const auto paper = [&](const char* target, const char* kv, const char* version, std::vector<double> v) {
    BenchSet s{.name = target,
               .tool = "vllm bench serve",
               .model = "gemma4-31b",
               .target = target,
               .conditions = {{"kv_dtype", kv}, {"version", version}}};
    s.definitions.peak = formats::Definitions::Peak::unclear;
    s.usd_per_hour = v[0];
    constexpr double kNo = formats::kUnknown;
    s.points = {point(kInf, 512, v[1], kNo, v[2]), point(4, 1024, v[3], kNo, kNo),  point(4, 4096, v[4], kNo, kNo),
                point(4, 8192, v[5], kNo, kNo),    point(4, 15360, v[6], kNo, kNo), point(kNo, 4096, kNo, v[7], v[8])};
    for (BenchPoint& p : s.points) p.num_prompts = p.completed = 30;
    ComparedRun c = compared(s);
    c.sweep->findings = audit_known(c.sweep->set, test::context());
    return c;
  };
  const Comparison c = compare({paper("2xh100", "bf16", "0.20.2", {22.12, 51, 1490, 58, 1443, 7202, 99, 31.2, 728}),
                                paper("v6e-8", "fp8_e5m2", "0.19.0", {21.52, 45, 1403, 49, 61, 1013, 62, 23.9, 1206})});
  EXPECT_EQ(c.verdict, Fairness::confounded);
  for (const char* key : {"kv_dtype", "version", "requests", "prefix_cache", "floor", "client_limited"})
    EXPECT_THAT(keys(c), Contains(std::string(key)));
  const ComparisonRow* longest = row(c, "15360/128@4.median_ttft_ms");
  ASSERT_TRUE(longest);
  EXPECT_THAT(longest->marks[0], HasSubstr("impossible"));
  EXPECT_THAT(longest->marks[1], HasSubstr("impossible"));
  EXPECT_THAT(row(c, "8192/128@4.median_ttft_ms")->marks[0], IsEmpty());
  EXPECT_NEAR(*row(c, "4096/128@4.median_ttft_ms")->deltas[1], 61.0 / 1443 - 1, 1e-9);
  EXPECT_NEAR(*row(c, "4096/128.usd_per_million_output_tokens")->values[0], 8.44, 0.005);  // as the paper has it
  EXPECT_NEAR(*row(c, "4096/128.usd_per_million_output_tokens")->values[1], 4.95, 0.01);
  for (const Confounder& k : c.confounders) EXPECT_TRUE(k.key != "floor" || k.text.starts_with("2 points")) << k.text;
}

ComparedRun trained(const std::string& name, double loss, const std::string& mask) {
  ComparedRun c{.name = name, .training = views::RunView()};
  c.experiment.set_value("data.loss", mask);
  c.experiment.set_value("price.usd_per_chip_hour", 4.2);
  c.training->feed(
      {0, event::Started{{{"devices", 4}, {"trainable", {{"params", 1000}, {"share", 0.001}, {"bytes", 1 << 20}}}}}});
  for (long step = 1; step <= 10; ++step) {
    c.training->feed(
        {static_cast<double>(step), event::Metric{"train/loss", step, loss + 1.0 / static_cast<double>(step)}});
    c.training->feed(
        {static_cast<double>(step), event::Metric{"train/tokens_per_second", step, 700.0 + static_cast<double>(step)}});
  }
  event::Finished end;
  end.steps = 10;
  end.tokens = 10000;
  end.seconds = 3600;
  c.training->feed({3600, end});
  return c;
}

TEST(Comparison, PlansShowPredictedAndMeasuredRatiosBesideEachOther) {
  std::vector<ComparedRun> runs;
  for (const char* name : {"paper-train-v5p-8", "paper-train-2xh100"})
    for (ComparedRun& run : compared_files(MW_RESOURCES "/examples/" + std::string(name) + ".json", test::context()))
      runs.push_back(std::move(run));
  ASSERT_EQ(runs.size(), 2U);
  const Comparison c = compare(runs);
  const auto delta = [&](const std::string& key) {
    for (const ComparisonRow& row : c.rows)
      if (row.key == key) return row.deltas[1].value_or(0);
    return 0.0;
  };
  EXPECT_NEAR(delta("step.measured_s"), 0.60, 0.01);
  EXPECT_NEAR(delta("run.measured_h"), 0.61, 0.005);
  EXPECT_NEAR(delta("cost.measured_usd"), 1.12, 0.006);
  EXPECT_GT(delta("step.predicted_s"), 0.5);
  EXPECT_GT(delta("cost.predicted_usd"), delta("step.predicted_s"));
  for (const Confounder& confounder : c.confounders) EXPECT_NE(confounder.key, "state") << confounder.text;
  const std::vector<ComparedRun> here = compared_files(MW_RESOURCES "/examples/tiny-lora.json", test::context());
  ASSERT_TRUE(here.front().planned);
  EXPECT_GT(here.front().planned->step_s, 0);
  EXPECT_THROW(compared_files(MW_RESOURCES "/examples/tiny-serve.json", test::context()), Error);
}

TEST(Comparison, TrainingRunsWithOtherLossMasksAreConfounded) {
  const Comparison c = compare({trained("a", 2.0, "all"), trained("b", 1.0, "completion")});
  EXPECT_EQ(c.verdict, Fairness::confounded);
  EXPECT_THAT(keys(c), ElementsAre("loss_mask"));
  ASSERT_TRUE(row(c, "data.loss"));
  EXPECT_THAT(row(c, "data.loss")->texts, ElementsAre("all", "completion"));
  EXPECT_NEAR(*row(c, "train.loss")->values[0], 2.1, 1e-9);
  EXPECT_NEAR(*row(c, "train.loss")->deltas[1], 1.1 / 2.1 - 1, 1e-9);
  EXPECT_NEAR(*row(c, "usd")->values[0], 16.8, 1e-9);  // 4 chips, an hour
  EXPECT_NEAR(*row(c, "usd_per_million_tokens")->values[0], 1680, 1e-6);
  EXPECT_NEAR(*row(c, "train.tokens_per_second")->values[1], 705.5, 1e-9);
  EXPECT_EQ(compare({trained("a", 2, "all"), trained("b", 1, "all")}).verdict, Fairness::fair);
  EXPECT_EQ(compare({trained("a", 2, "all"), compared(base())}).verdict, Fairness::meaningless);
}

// What a recipe's first event says, and its curve.
ComparedRun recipe_run(const std::string& name, const Json& info, double factor) {
  ComparedRun c = trained(name, 2.0, "all");
  c.training = views::RunView();
  c.provenance = formats::ResultProvenance::imported;
  c.training->feed({0, event::Started{info}});
  for (long step = 1; step <= 10; ++step)
    c.training->feed(
        {static_cast<double>(step),
         event::Metric{"train/loss", step, (2.0 + 1.0 / static_cast<double>(step)) * (step > 5 ? factor : 1)}});
  event::Finished end;
  end.steps = 10;
  c.training->feed({60, end});
  return c;
}

TEST(Comparison, ReportsDesignDifferencesOfOtherSoftwareAndComparesLossesByStep) {
  const Json tunix{{"software", "tunix"},
                   {"versions", {{"jax", "0.10.2"}, {"qwix", "0.1.8"}}},
                   {"mesh", {{"fsdp", 2}, {"tp", 4}}},
                   {"differences", {"one A for K and V", 7}}};
  const Json trl{{"software", "trl-fsdp"}, {"versions", {{"trl", "1.16.0"}}}, {"mesh", {{"fsdp", 1}}}};
  const Comparison c =
      compare({trained("here", 2.0, "all"), recipe_run("on Tunix", tunix, 1.01), recipe_run("on TRL", trl, 1 - 1e-7)});
  EXPECT_EQ(c.verdict, Fairness::confounded);
  EXPECT_THAT(keys(c), ElementsAre("software", "design"));
  EXPECT_EQ(c.confounders[0].text,
            "the training software differs (Meshwright in here, tunix in on Tunix, trl-fsdp in on TRL)");
  EXPECT_EQ(c.confounders[1].text, "on Tunix: one A for K and V");
  EXPECT_THAT(row(c, "versions")->texts, ElementsAre("", "jax 0.10.2, qwix 0.1.8", "trl 1.16.0"));
  EXPECT_THAT(row(c, "mesh")->texts[1], "fsdp 2, tp 4");
  for (long step = 1; step <= 10; ++step) {
    const ComparisonRow* at = row(c, "train.loss@" + std::to_string(step));
    ASSERT_TRUE(at) << step;
    EXPECT_NEAR(*at->deltas[1], step > 5 ? 0.01 : 0, 1e-12) << step;
    EXPECT_EQ(at->differs, step > 5);
  }
  const ComparisonRow* apart = row(c, "train.loss.apart");
  ASSERT_TRUE(apart && !apart->values[0]);
  EXPECT_NEAR(*apart->values[1], 1, 1e-9);
  EXPECT_NEAR(*apart->values[2], 1e-5, 1e-9);
  const Json json = to_json(c);
  EXPECT_EQ(std::count_if(json["rows"].begin(), json["rows"].end(),
                          [](const Json& r) { return r["key"].get<std::string>().starts_with("train.loss@"); }),
            10);
}

TEST(Comparison, VersionsOfTheSameSoftwareAreAConfounder) {
  const auto of = [](const char* version) {
    return recipe_run(version, {{"software", "tunix"}, {"versions", {{"qwix", version}}}, {"mesh", {{"fsdp", 1}}}}, 1);
  };
  EXPECT_THAT(keys(compare({of("0.1.8"), of("0.1.9")})), ElementsAre("versions"));
  EXPECT_EQ(compare({of("0.1.8"), of("0.1.8")}).verdict, Fairness::fair);
}

// An import is compared by what it says; defaults of ours are none of its settings.
TEST(Comparison, AnImportDoesNotGetDefaultSettings) {
  ComparedRun log = recipe_run("log", {{"tool", "tensorboard"}, {"source", "imported"}}, 1);
  log.has_all_settings = false;
  log.experiment = experiment::Experiment();
  log.experiment.set_value("train.batch", 8);
  ComparedRun here = trained("here", 2.0, "completion");
  here.experiment.set_value("train.batch", 16);
  here.experiment.set_value("train.steps", 10);
  const Comparison c = compare({here, log});
  EXPECT_THAT(keys(c), ElementsAre("software", "unsaid"));
  EXPECT_THAT(row(c, "train.batch")->texts, ElementsAre("16", "8"));
  EXPECT_FALSE(row(c, "train.steps"));
  EXPECT_FALSE(row(c, "data.loss"));
}

TEST(ComparisonSteps, ManyStepsAreShownAtIncreasingDistance) {
  std::vector<long> few(24), many(1000);
  std::iota(few.begin(), few.end(), 1);
  std::iota(many.begin(), many.end(), 1);
  EXPECT_EQ(steps_to_show(few), few);
  const std::vector<long> shown = steps_to_show(many);
  EXPECT_LT(shown.size(), 24u);
  EXPECT_EQ(shown.front(), 1);
  EXPECT_EQ(shown.back(), 1000);
  EXPECT_TRUE(steps_to_show({}).empty());
}

TEST(ComparisonSteps, UsesCommonStepsAndSkipsZeroBaselines) {
  const auto curve = [](std::vector<std::pair<long, double>> points) {
    views::RunView v;
    for (const auto& [step, y] : points) v.feed({0, event::Metric{"train/loss", step, y}});
    return v;
  };
  const auto found = step_differences(curve({{1, 2}, {2, 0}, {4, 4}, {5, 1}}),
                                      curve({{1, 2}, {2, 1}, {3, 9}, {4, 3}, {5, NAN}}), "train/loss");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].y, 0);
  EXPECT_EQ(found[1].x, 4);
  EXPECT_EQ(found[1].y, -0.25);
  EXPECT_EQ(furthest_apart(found).x, 4);
  EXPECT_TRUE(std::isnan(furthest_apart({}).y));
  EXPECT_TRUE(step_differences(curve({}), curve({{1, 1}}), "train/loss").empty());
}

TEST(Comparison, FormatsSmallChanges) {
  EXPECT_EQ(change_text(0), "=");
  EXPECT_EQ(change_text(2.6e-7), "+2.6e-05 %");
  EXPECT_EQ(change_text(-0.96), "-96 %");
  EXPECT_EQ(change_text(0.0115), "+1.1 %");
}

TEST(Comparison, RejectsFewerThanTwoRuns) {
  EXPECT_THROW(compare({}), Error);
  EXPECT_THROW(compare({compared(base())}), Error);
}

TEST(ComparisonText, TablesEscapeNames) {
  const Comparison c = with([](BenchSet& s) {
    s.name = "50% & $x_{1}$, \"a|b\"\\\n~^<>";
    s.conditions["kv_dtype"] = "fp8|e5m2";
    s.points[1].verdict = "overloaded";
  });
  const auto table = formats::read_csv(to_csv(c), "test");
  EXPECT_EQ(table.header.size(), 7u);  // key, label, unit, two columns, a change, marks
  std::string one_line = c.names[1];
  std::replace(one_line.begin(), one_line.end(), '\n', ' ');
  EXPECT_EQ(table.header[4], one_line);
  EXPECT_EQ(table.rows.size(), c.rows.size() + 1 + c.confounders.size());
  const std::string tex = to_latex(c);
  EXPECT_THAT(tex, HasSubstr("50\\% \\& \\$x\\_\\{1\\}\\$"));
  EXPECT_THAT(tex, HasSubstr("\\textbackslash{} \\textasciitilde{}\\textasciicircum{}\\textless{}\\textgreater{}"));
  EXPECT_EQ(tex.find("fp8|e5m2") == std::string::npos, false);
  const std::string markdown = to_markdown(c);
  EXPECT_THAT(markdown, HasSubstr("fp8\\|e5m2"));
  EXPECT_THAT(markdown, HasSubstr("**Verdict: confounded**"));
  EXPECT_THAT(markdown, HasSubstr("(1)"));  // the note of the overloaded point
  const Json json = parse_json(to_json(c).dump(), "test");
  EXPECT_EQ(json["verdict"], "confounded");
  EXPECT_EQ(json["warnings"].size(), c.confounders.size());
  for (const Json& r : json["rows"]) {
    EXPECT_EQ(r["values"].size(), 2u);
    EXPECT_EQ(r["delta"].size(), 2u);
  }
}

}  // namespace
}  // namespace mw::compare
