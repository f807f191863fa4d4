// SPDX-License-Identifier: Apache-2.0
#include "core/formats/results/bench_import.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "core/base/files.h"
#include "core/base/rng.h"
#include "core/formats/results/csv.h"
#include "tests/formats/test_files.h"

namespace mw::formats {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

fs::path fixture(const std::string& name) {
  return fs::path(MW_FIXTURES) / "bench" / name;
}

Problem refusal(const fs::path& file, const CsvMapping& mapping = {}) {
  try {
    read_bench(file, mapping);
  } catch (const Error& error) {
    return error.problem();
  }
  ADD_FAILURE() << file << " was read";
  return {};
}

TEST(BenchImport, DetectsFormatByContent) {
  EXPECT_EQ(bench_kind(fixture("vllm_plain.json")), BenchKind::vllm);
  EXPECT_EQ(bench_kind(fixture("vllm_appended.json")), BenchKind::vllm);
  EXPECT_EQ(bench_kind(fixture("vllm_old.json")), BenchKind::vllm);
  EXPECT_EQ(bench_kind(fixture("guidellm_constant.json")), BenchKind::guidellm);
  for (const char* name : {"llama_bench.json", "llama_bench.jsonl", "llama_bench.csv"})
    EXPECT_EQ(bench_kind(fixture(name)), BenchKind::llama_bench) << name;
  for (const auto& [name, kind] : {std::pair("aiperf_0.10.0.json", BenchKind::aiperf),
                                   {"genai_perf.json", BenchKind::aiperf},
                                   {"inference_perf_stage.json", BenchKind::inference_perf},
                                   {"inference_perf_summary.json", BenchKind::inference_perf},
                                   {"sglang.jsonl", BenchKind::sglang},
                                   {"mlperf_server.txt", BenchKind::mlperf},
                                   {"mlperf_offline.txt", BenchKind::mlperf},
                                   {"llmperf_summary.json", BenchKind::llmperf},
                                   {"llmperf_responses.json", BenchKind::llmperf}})
    EXPECT_EQ(bench_kind(fixture(name)), kind) << name;
  EXPECT_EQ(bench_kind(fixture("VERSIONS.json")), BenchKind::none);
  EXPECT_EQ(bench_kind("/no/such/file"), BenchKind::none);
  const Scratch folder;
  write_file_atomically(folder / "data.jsonl", "{\"prompt\": \"a\", \"completion\": \"b\"}\n");
  write_file_atomically(folder / "lengths.csv", "tokens,rows\n1,2\n");
  write_file_atomically(folder / "points.csv", "request_rate,median_ttft_ms\n1,2\n");
  write_file_atomically(folder / "google.json", R"({"context": {}, "benchmarks": []})");
  EXPECT_EQ(bench_kind(folder / "data.jsonl"), BenchKind::none);
  EXPECT_EQ(bench_kind(folder / "lengths.csv"), BenchKind::none);
  EXPECT_EQ(bench_kind(folder / "points.csv"), BenchKind::csv);
  EXPECT_EQ(bench_kind(folder / "google.json"), BenchKind::none);
}

TEST(BenchImport, ReadsSummaryOfVllm) {
  const auto sets = read_bench(fixture("vllm_plain.json"));
  ASSERT_EQ(sets.size(), 1u);
  EXPECT_EQ(sets[0].provenance, ResultProvenance::imported);
  EXPECT_EQ(sets[0].model, "google/gemma-3-1b-it");
  EXPECT_EQ(sets[0].tool, "vllm bench serve");
  EXPECT_EQ(sets[0].source, fixture("vllm_plain.json").string());
  EXPECT_EQ(sets[0].conditions.at("tokenizer"), "google/gemma-3-1b-it");
  EXPECT_EQ(sets[0].definitions, Definitions{});
  ASSERT_EQ(sets[0].points.size(), 1u);
  const BenchPoint& p = sets[0].points[0];
  EXPECT_TRUE(std::isinf(p.request_rate));
  EXPECT_EQ(p.input_len, 256);
  EXPECT_EQ(p.output_len, 4);
  EXPECT_EQ(p.completed, 6);
  EXPECT_EQ(p.max_concurrency, 0);
  EXPECT_TRUE(p.requests.empty());
  EXPECT_TRUE(std::isnan(p.request_goodput));
  EXPECT_GT(p.ttft.percentile(99), p.ttft.median);
  EXPECT_EQ(p.rest.value("rtfx", -1.0), 0.0);
}

TEST(BenchImport, KeepsRequestsAndStatisticsOfDetailedVllm) {
  const BenchSet set = read_bench(fixture("vllm_detailed.json")).at(0);
  EXPECT_EQ(set.conditions.at("tp"), "8");
  EXPECT_EQ(set.tool, "vllm bench serve 0.19.0");
  const BenchPoint& p = set.points.at(0);
  EXPECT_EQ(p.request_rate, 4);
  EXPECT_EQ(p.failed, 1);
  ASSERT_EQ(p.requests.size(), 6u);
  std::vector<double> ttft, tpot, gaps;
  for (const RequestResult& r : p.requests) {
    if (!r.completed()) continue;
    ttft.push_back((r.first_token_s - r.sent_s) * 1e3);
    tpot.push_back((r.end_s - r.first_token_s) * 1e3 / (r.output_tokens - 1));
    for (const float gap : r.gaps_ms) gaps.push_back(static_cast<double>(gap));
  }
  // What the file says of its requests follows from them with the definitions of this program.
  EXPECT_NEAR(latency_stats(ttft).median, p.ttft.median, 1e-6);
  EXPECT_NEAR(latency_stats(ttft).deviation, p.ttft.deviation, 1e-6);
  EXPECT_NEAR(latency_stats(ttft).percentile(99), p.ttft.percentile(99), 1e-6);
  EXPECT_NEAR(latency_stats(tpot).mean, p.tpot.mean, 1e-5);
  EXPECT_NEAR(latency_stats(gaps).percentile(99), p.itl.percentile(99), 1e-5);
  EXPECT_DOUBLE_EQ(p.requests[0].sent_s, 0);
  EXPECT_NEAR(p.requests[1].sent_s, 0.25, 1e-9);
  EXPECT_EQ(p.requests[5].error, "Service Unavailable");
  EXPECT_TRUE(std::isnan(p.requests[5].end_s));
}

TEST(BenchImport, GroupsAppendedResultsByConfiguration) {
  const auto sets = read_bench(fixture("vllm_appended.json"));
  ASSERT_EQ(sets.size(), 2u);
  EXPECT_EQ(sets[0].conditions.at("tp"), "1");
  EXPECT_EQ(sets[1].conditions.at("tp"), "2");
  EXPECT_NE(sets[0].name, sets[1].name);
  for (const BenchSet& set : sets) {
    ASSERT_EQ(set.points.size(), 3u);
    EXPECT_EQ(set.points[1].request_rate, 2);
  }
}

TEST(BenchImport, ReadsOlderSpellingsAndPythonNumbers) {
  const BenchPoint p = read_bench(fixture("vllm_old.json")).at(0).points.at(0);
  EXPECT_DOUBLE_EQ(p.request_goodput, 1.5);
  EXPECT_TRUE(std::isnan(p.itl.mean));
  EXPECT_FALSE(std::isnan(p.itl.median));
  EXPECT_EQ(p.failed, 0);
}

TEST(BenchImport, KeepsGuidellmDefinitionOfTimePerToken) {
  const BenchSet set = read_bench(fixture("guidellm_constant.json")).at(0);
  EXPECT_EQ(set.tool, "guidellm 0.8.1");
  EXPECT_EQ(set.model, "mock");
  EXPECT_EQ(set.definitions.tpot, Definitions::Tpot::with_first);
  EXPECT_EQ(set.conditions.at("arrival"), "constant");
  const BenchPoint& p = set.points.at(0);
  EXPECT_EQ(p.request_rate, 8);
  EXPECT_EQ(p.completed, 6);
  EXPECT_EQ(p.output_len, 8);
  EXPECT_EQ(p.total_output_tokens, 48);
  EXPECT_NEAR(p.output_throughput, 48 / p.duration_s, 0.01);
  ASSERT_EQ(p.requests.size(), 6u);
  std::vector<double> with_first, after_first, ttft, latency, late;
  for (const RequestResult& r : p.requests) {
    with_first.push_back((r.end_s - r.sent_s) * 1e3 / r.output_tokens);
    after_first.push_back((r.end_s - r.first_token_s) * 1e3 / (r.output_tokens - 1));
    ttft.push_back((r.first_token_s - r.sent_s) * 1e3);
    EXPECT_GE(r.sent_s, r.intended_s);
    EXPECT_GE(r.intended_s, 0);
  }
  EXPECT_NEAR(latency_stats(with_first).mean, p.tpot.mean, 1e-3);
  EXPECT_NEAR(latency_stats(after_first).mean, p.itl.mean, 1e-3);  // what vLLM calls TPOT
  EXPECT_NEAR(latency_stats(ttft).mean, p.ttft.mean, 1e-3);
  EXPECT_GT(p.tpot.mean, 1.2 * p.itl.mean);
  EXPECT_GT(p.intended_e2el.mean, p.e2el.mean);
}

TEST(BenchImport, CountsFailedRequestsOfGuidellmWithoutTimes) {
  const BenchSet set = read_bench(fixture("guidellm_failing.json")).at(0);
  const BenchPoint& p = set.points.at(0);
  EXPECT_EQ(set.conditions.at("arrival"), "concurrent");
  EXPECT_EQ(p.max_concurrency, 2);
  EXPECT_TRUE(std::isnan(p.request_rate));
  EXPECT_EQ(p.completed, 4);
  EXPECT_EQ(p.failed, 2);
  EXPECT_EQ(p.num_prompts, 6);
  int failed = 0;
  for (const RequestResult& r : p.requests)
    if (!r.completed()) {
      ++failed;
      EXPECT_THAT(r.error, HasSubstr("500"));
      EXPECT_TRUE(std::isnan(r.first_token_s));
    }
  EXPECT_EQ(failed, 2);
  EXPECT_GT(p.ttft.percentile(1), 20);  // the failed ones would have taken 17 ms
}

TEST(Csv, EscapesFormulasButNotNumbers) {
  for (const char* formula : {"=1+1", "+1+cmd", "-1+cmd|' /C calc'!A0", "@SUM(A1)", "\tx", "\rx", "=", "--1"})
    EXPECT_EQ(spreadsheet_text(formula), "'" + std::string(formula));
  for (const char* text : {"-3.5", "+2", "-1e-5", "-12 %", "+0.5 %", "-", "name", "", "1=2", "a-b"})
    EXPECT_EQ(spreadsheet_text(text), text);
  EXPECT_EQ(csv_cell("=HYPERLINK(\"a\",\"b\")"), "\"'=HYPERLINK(\"\"a\"\",\"\"b\"\")\"");
}

// Reports of several GuideLLM versions about the same load (scripts/fixtures/guidellm_versions.py): 8 requests, all
// answered. Statistics are compared with the requests in the file.
struct GuidellmVersion {
  const char* version;
  const char* tool;
  Definitions::Tpot tpot;
};
class GuidellmVersions : public testing::TestWithParam<GuidellmVersion> {};

TEST_P(GuidellmVersions, CountsAndTimesMatchRequests) {
  const fs::path file = fixture("guidellm_" + std::string(GetParam().version) + ".json");
  EXPECT_EQ(bench_kind(file), BenchKind::guidellm);
  const std::vector<BenchSet> sets = read_bench(file);
  ASSERT_EQ(sets.size(), 1u);
  const BenchSet& set = sets[0];
  EXPECT_EQ(set.tool, GetParam().tool);
  EXPECT_EQ(set.model, "mock");
  EXPECT_EQ(set.conditions.at("arrival"), "constant");
  EXPECT_EQ(set.definitions.tpot, GetParam().tpot);
  ASSERT_EQ(set.points.size(), 1u);
  const BenchPoint& p = set.points[0];
  EXPECT_EQ(p.request_rate, 10);
  EXPECT_EQ(p.num_prompts, 8);
  EXPECT_EQ(p.completed, 8);
  EXPECT_EQ(p.failed, 0);
  EXPECT_EQ(p.output_len, 8);
  EXPECT_EQ(p.total_output_tokens, 64);
  EXPECT_GT(p.duration_s, 0.1);
  ASSERT_EQ(p.requests.size(), 8u);
  std::vector<double> ttft, tpot, latency;
  for (const RequestResult& r : p.requests) {
    EXPECT_TRUE(r.completed());
    ttft.push_back((r.first_token_s - r.sent_s) * 1e3);
    latency.push_back((r.end_s - r.sent_s) * 1e3);
    const double decoding = (r.end_s - r.first_token_s) * 1e3;
    tpot.push_back(GetParam().tpot == Definitions::Tpot::with_first    ? latency.back() / r.output_tokens
                   : GetParam().tpot == Definitions::Tpot::after_first ? decoding / (r.output_tokens - 1)
                                                                       : decoding / r.output_tokens);
  }
  // Requests end a little after their last token: some of the report's figures count from the one, some from the other.
  EXPECT_NEAR(p.ttft.mean, latency_stats(ttft).mean, 0.01);
  EXPECT_NEAR(p.tpot.mean, latency_stats(tpot).mean, 0.5);
  EXPECT_NEAR(p.e2el.mean, latency_stats(latency).mean, 3);
  const double most = *std::max_element(ttft.begin(), ttft.end());
  EXPECT_NEAR(p.ttft.percentile(99), most, 0.05 * most);
  EXPECT_GE(p.ttft.mean, 15) << "milliseconds: the server waits 20 ms before the first token";
  EXPECT_LT(p.ttft.mean, 5000);
  EXPECT_NEAR(p.output_throughput, 64 / p.duration_s, 0.35 * p.output_throughput);
}
using Tpot = Definitions::Tpot;
INSTANTIATE_TEST_SUITE_P(Of, GuidellmVersions,
                         testing::Values(GuidellmVersion{"0.1.0", "guidellm 0.1", Tpot::after_first},
                                         GuidellmVersion{"0.2.1", "guidellm 0.2 or 0.3", Tpot::after_first_per_token},
                                         GuidellmVersion{"0.3.1", "guidellm 0.2 or 0.3", Tpot::after_first_per_token},
                                         GuidellmVersion{"0.4.0", "guidellm", Tpot::with_first},
                                         GuidellmVersion{"0.5.4", "guidellm 0.5.4", Tpot::with_first},
                                         GuidellmVersion{"0.6.1", "guidellm 0.6.1", Tpot::with_first},
                                         GuidellmVersion{"0.7.4", "guidellm 0.7.4", Tpot::with_first}),
                         [](const auto& p) {
                           std::string name = p.param.version;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

// A report of 0.3 with manually added `metadata` has its totals next to the metrics.
TEST(BenchImport, FindsGuidellmTotalsInBothPlaces) {
  Json report = read_json(fixture("guidellm_0.3.1.json"));
  report["metadata"] = {{"version", 1}};
  const Scratch folder;
  put(folder / "report.json", report.dump());
  EXPECT_EQ(read_bench(folder / "report.json").at(0).points.at(0).completed, 8);
  report["benchmarks"][0].erase("request_totals");
  put(folder / "report.json", report.dump());
  try {
    read_bench(folder / "report.json");
    FAIL() << "a report without totals";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("request_totals"));
  }
}

TEST(BenchImport, ReadsAllFormsOfLlamaBench) {
  const auto sets = read_bench(fixture("llama_bench.json"));
  ASSERT_EQ(sets.size(), 2u);
  EXPECT_EQ(sets[1].conditions.at("kv_dtype"), "q8_0/f16");
  EXPECT_EQ(sets[0].conditions.at("kv_dtype"), "f16");
  EXPECT_EQ(sets[0].conditions.at("version"), "b6500abc");
  ASSERT_EQ(sets[0].points.size(), 3u);
  const BenchPoint &prompt = sets[0].points[0], &answer = sets[0].points[1], &both = sets[0].points[2];
  EXPECT_EQ(prompt.input_len, 512);
  EXPECT_EQ(prompt.output_len, 0);
  EXPECT_NEAR(prompt.ttft.median, 1.1 * 512, 1e-6);
  EXPECT_NEAR(answer.tpot.mean, 14, 1e-6);
  EXPECT_NEAR(answer.output_throughput, 1000 / 14.0, 0.1);
  EXPECT_FALSE(answer.ttft.known());
  EXPECT_NEAR(both.e2el.mean, 3.7 * 640, 1e-6);
  EXPECT_EQ(prompt.max_concurrency, 1);
  EXPECT_EQ(prompt.completed, 3);
  const auto lines = read_bench(fixture("llama_bench.jsonl"));
  EXPECT_EQ(to_json(lines.at(1), Detail::requests)["points"], to_json(sets[1], Detail::requests)["points"]);
  const auto csv = read_bench(fixture("llama_bench.csv"));  // has means only
  ASSERT_EQ(csv.size(), 2u);
  EXPECT_NEAR(csv[0].points.at(0).ttft.mean, prompt.ttft.mean, 1e-6);
  EXPECT_EQ(csv[1].conditions.at("kv_dtype"), "q8_0/f16");
}

TEST(BenchImport, CsvWithOtherNamesNeedsMapping) {
  const Scratch folder;
  write_file_atomically(folder / "own.csv",
                        "platform,qps,\"TTFT, median\",gen tok/s,mean_tpot_ms\n"
                        "tpu,4,61.5,1206,23.9\n\ntpu,inf,,1404,\n\"h100, two\",4,1443,728,31.2\n");
  const CsvMapping mapping{{{"request_rate", "qps"},
                            {"median_ttft_ms", "TTFT, median"},
                            {"output_throughput", "gen tok/s"},
                            {"name", "platform"}}};
  const auto sets = read_bench(folder / "own.csv", mapping);
  ASSERT_EQ(sets.size(), 2u);
  EXPECT_EQ(sets[0].name, "tpu");
  EXPECT_EQ(sets[1].name, "h100, two");
  ASSERT_EQ(sets[0].points.size(), 2u);
  EXPECT_EQ(sets[0].points[0].ttft.median, 61.5);
  EXPECT_EQ(sets[0].points[0].tpot.mean, 23.9);
  EXPECT_TRUE(std::isinf(sets[0].points[1].request_rate));
  EXPECT_FALSE(sets[0].points[1].ttft.known());

  EXPECT_EQ(refusal(folder / "own.csv").id, "BENCH-KIND");
  const Problem missing = refusal(folder / "own.csv", {{{"request_rate", "rate"}}});
  EXPECT_EQ(missing.found, "rate");
  EXPECT_THAT(missing.expected, HasSubstr("qps"));
  write_file_atomically(folder / "bad.csv", "request_rate,median_ttft_ms\n4,61\n8,fast\n");
  EXPECT_EQ(refusal(folder / "bad.csv").place, "line 3: median_ttft_ms");
  write_file_atomically(folder / "short.csv", "request_rate,median_ttft_ms\n4\n");
  EXPECT_EQ(refusal(folder / "short.csv").place, "line 2");
  write_file_atomically(folder / "twice.csv", "request_rate,completed,completed\n4,1,1\n");
  EXPECT_EQ(refusal(folder / "twice.csv").found, "completed");
  write_file_atomically(folder / "open.csv", "request_rate,completed\n4,\"1\n");
  EXPECT_THAT(refusal(folder / "open.csv").message, HasSubstr("not closed"));
}

TEST(BenchImport, ReadsOwnFilesWithOneOrMoreSets) {
  const Scratch folder;
  BenchSet set{.name = "a", .provenance = ResultProvenance::measured, .points = {BenchPoint{}}};
  const Json one = to_json(set, Detail::summary);
  set.name = "b";
  const Json other = to_json(set, Detail::summary);
  write_file_atomically(folder / "one.json", one.dump());
  write_file_atomically(folder / "list.json", Json::array({one, other}).dump());
  write_file_atomically(folder / "sets.json", Json{{"sets", {one, other}}}.dump());
  EXPECT_EQ(read_bench(folder / "one.json").at(0).provenance, ResultProvenance::measured);
  EXPECT_EQ(read_bench(folder / "list.json").at(1).name, "b");
  EXPECT_EQ(read_bench(folder / "sets.json").size(), 2u);
  Json wrong = one;
  wrong["points"][0]["duration"] = -1;
  write_file_atomically(folder / "wrong.json", Json{{"sets", {one, wrong}}}.dump());
  const Problem problem = refusal(folder / "wrong.json");
  EXPECT_EQ(problem.place, "sets[1].points[0].duration");
  EXPECT_EQ(problem.file, (folder / "wrong.json").string());
  write_file_atomically(folder / "null.json", R"({"sets": null})");
  EXPECT_EQ(refusal(folder / "null.json").id, "BENCH");
}

TEST(BenchImport, ReportsPlaceInTruncatedAndForeignFiles) {
  const Scratch folder;
  const std::string appended = read_file(fixture("vllm_appended.json"));
  write_file_atomically(folder / "cut.json", appended.substr(0, appended.size() - 300));
  const Problem cut = refusal(folder / "cut.json");
  EXPECT_THAT(cut.place, HasSubstr("line 6, column"));
  EXPECT_THAT(cut.fix, HasSubstr("copy the file again"));
  EXPECT_EQ(cut.file, (folder / "cut.json").string());
  write_file_atomically(folder / "x.pytorch.json", R"([{"benchmark": {"name": "b"}, "metric": {"name": "latency"}}])");
  EXPECT_THAT(refusal(folder / "x.pytorch.json").fix, HasSubstr("without .pytorch"));
  EXPECT_EQ(refusal(fixture("VERSIONS.json")).id, "BENCH-KIND");
  write_file_atomically(folder / "empty.json", "");
  EXPECT_EQ(refusal(folder / "empty.json").id, "BENCH-KIND");
  write_file_atomically(folder / "none.json", R"({"metadata": {}, "benchmarks": []})");
  EXPECT_THAT(refusal(folder / "none.json").message, HasSubstr("no measured point"));
  write_file_atomically(folder / "odd.json", R"({"metadata": {}, "benchmarks": [{"metrics": 3}]})");
  EXPECT_EQ(refusal(folder / "odd.json").place, "benchmarks[0].metrics");
  EXPECT_THROW(read_bench("/no/such/file.json"), Error);
}

// Successive random edits: flipped bytes, cuts, repeated and foreign parts.
std::string damaged(std::string text, Rng& rng) {
  static const char* const kTokens[] = {"{", "}", "[", "]", ",", ":", "\"", "null", "-1", "1e999", "NaN", "\n", "inf"};
  for (std::uint64_t n = 1 + rng.below(4); n > 0 && !text.empty(); --n) {
    const size_t at = static_cast<size_t>(rng.below(text.size()));
    switch (rng.below(6)) {
      case 0:
        text[at] = static_cast<char>(rng.below(256));
        break;
      case 1:
        text.resize(at);
        break;
      case 2:
        text.erase(at, rng.below(60));
        break;
      case 3:
        text.insert(at, text.substr(static_cast<size_t>(rng.below(text.size())), rng.below(200)));
        break;
      case 4:
        text.insert(at, kTokens[rng.below(std::size(kTokens))]);
        break;
      default:
        if (text[at] >= '0' && text[at] <= '9') text[at] = static_cast<char>('0' + rng.below(10));
    }
  }
  return text;
}

TEST(BenchImportFuzz, DamagedFilesAreReadOrRejected) {
  const Scratch folder;
  std::vector<std::string> files;
  for (const char* name : {"vllm_plain.json", "vllm_detailed.json", "vllm_appended.json", "vllm_old.json",
                           "guidellm_constant.json", "llama_bench.json", "llama_bench.jsonl", "llama_bench.csv"})
    files.push_back(read_file(fixture(name)));
  files.push_back("name,request_rate,median_ttft_ms,chips\n\"a \"\"b\"\"\",4,61,8\nc,inf,,2\n");
  files.push_back(to_json(read_bench(fixture("vllm_detailed.json")).at(0), Detail::requests).dump());
  Rng rng{11};
  int read = 0;
  const fs::path file = folder / "damaged";
  for (int i = 0; i < 3000; ++i) {
    std::ofstream(file, std::ios::binary) << damaged(files[static_cast<size_t>(rng.below(files.size()))], rng);
    try {
      for (const BenchSet& set : read_bench(file)) {
        EXPECT_FALSE(set.name.empty());
        for (const BenchPoint& p : set.points) {
          EXPECT_GE(p.completed, 0);
          EXPECT_FALSE(p.duration_s < 0);
          EXPECT_TRUE(std::isnan(p.request_rate) || p.request_rate > 0);
          bench_point(to_json(p, Detail::requests));  // what was read can be kept
        }
      }
      ++read;
    } catch (const Error& error) {
      EXPECT_FALSE(error.problem().message.empty());
      EXPECT_EQ(valid_utf8(to_text(error.problem())), to_text(error.problem()));  // errors are printed as JSON
    }
  }
  EXPECT_GT(read, 300);
  EXPECT_LT(read, 2700);
}

// Form of results/nvfp4/5090/chatbot/r1.2/profile_export_aiperf.json of anud18/qwen36-vllm-aiperf-benchmark (AIPerf
// 0.10.0); the numbers are our own.
TEST(BenchImport, ReadsPhaseAndMetricsOfAiperf) {
  const BenchSet set = read_bench(fixture("aiperf_0.10.0.json")).at(0);
  EXPECT_EQ(set.tool, "aiperf 0.10.0");
  EXPECT_EQ(set.model, "gemma-3-1b-it");
  EXPECT_EQ(set.conditions.at("arrival"), "poisson");
  const BenchPoint& p = set.points.at(0);
  EXPECT_EQ(p.request_rate, 2.5) << "the rate of the warm-up is 9";
  EXPECT_EQ(p.completed, 40);
  EXPECT_EQ(p.failed, 2);
  EXPECT_EQ(p.input_len, 512);
  EXPECT_EQ(p.total_output_tokens, 4040);
  EXPECT_EQ(p.duration_s, 20);
  EXPECT_EQ(p.request_goodput, 1.5);
  EXPECT_EQ(p.ttft.percentile(99), 250);
  EXPECT_EQ(p.tpot.median, 6.5);
  EXPECT_EQ(p.itl.median, 6.4) << "inter-chunk latency";
  EXPECT_EQ(p.e2el.deviation, 200);
}

// Form of the GenAI-Perf report in issue 298 of triton-inference-server/perf_analyzer.
TEST(BenchImport, ReadsGenaiPerfWithoutCountsAndRate) {
  const BenchSet set = read_bench(fixture("genai_perf.json")).at(0);
  EXPECT_EQ(set.model, "ensemble");
  const BenchPoint& p = set.points.at(0);
  EXPECT_TRUE(std::isnan(p.request_rate));
  EXPECT_EQ(p.max_concurrency, 100);
  EXPECT_EQ(p.completed, 0);
  EXPECT_EQ(p.output_len, 500);
  EXPECT_TRUE(std::isnan(p.duration_s));
  EXPECT_FALSE(p.itl.known());
}

TEST(BenchImport, ConvertsUnitsOfAiperfAndRejectsUnknownOnes) {
  const Scratch folder;
  Json report = Json::parse(read_file(fixture("genai_perf.json")));
  report["time_to_first_token"]["unit"] = "sec";
  write_file_atomically(folder / "seconds.json", report.dump());
  EXPECT_EQ(read_bench(folder / "seconds.json").at(0).points.at(0).ttft.median, 172000);
  report["time_to_first_token"]["unit"] = "fortnights";
  write_file_atomically(folder / "odd.json", report.dump());
  const Problem problem = refusal(folder / "odd.json");
  EXPECT_EQ(problem.place, "time_to_first_token.unit");
  EXPECT_EQ(problem.found, "\"fortnights\"");
}

// Form of demos/kubecon-na-2025/vllm/results/{stage_3,summary}_lifecycle_metrics.json of
// kubernetes-sigs/inference-perf.
TEST(BenchImport, ReadsStageOfInferencePerfInMilliseconds) {
  const BenchSet set = read_bench(fixture("inference_perf_stage.json")).at(0);
  const BenchPoint& p = set.points.at(0);
  EXPECT_EQ(p.request_rate, 4);
  EXPECT_EQ(p.completed, 118);
  EXPECT_EQ(p.failed, 2);
  EXPECT_EQ(p.duration_s, 32);
  EXPECT_EQ(p.total_input_tokens, 15989);
  EXPECT_EQ(p.ttft.median, 200);
  EXPECT_DOUBLE_EQ(p.e2el.percentile(99.9), 5800);
  EXPECT_EQ(p.tpot.median, 17);
  EXPECT_EQ(set.definitions.tpot, Definitions::Tpot::after_first);
}

TEST(BenchImport, ReadsSummaryOfInferencePerfWithoutStreaming) {
  const BenchSet set = read_bench(fixture("inference_perf_summary.json")).at(0);
  const BenchPoint& p = set.points.at(0);
  EXPECT_TRUE(std::isnan(p.request_rate));
  EXPECT_FALSE(p.ttft.known());
  EXPECT_EQ(p.tpot.median, 62.5);
  EXPECT_EQ(set.definitions.tpot, Definitions::Tpot::with_first);
  EXPECT_THAT(p.note, HasSubstr("all stages"));
}

// Form of a line of SGLang 0.4 in a public script (request_rate 5, sharegpt), and of a newer one with Infinity,
// total_throughput and server_info.
TEST(BenchImport, ReadsLinesOfSglangUnderNamesOfVllm) {
  const auto sets = read_bench(fixture("sglang.jsonl"));
  ASSERT_EQ(sets.size(), 2u);
  const BenchPoint& first = sets[0].points.at(0);
  EXPECT_EQ(first.request_rate, 5);
  EXPECT_EQ(first.input_len, 303) << "the mean: random_input_len is not used by this data";
  EXPECT_EQ(first.e2el.median, 1500);
  EXPECT_EQ(first.itl.percentile(95), 18.75);
  EXPECT_EQ(sets[0].conditions.at("dataset"), "sharegpt");
  EXPECT_EQ(sets[1].model, "google/gemma-3-1b-it");
  EXPECT_EQ(sets[1].conditions.at("tp"), "2");
  ASSERT_EQ(sets[1].points.size(), 2u);
  EXPECT_TRUE(std::isinf(sets[1].points[0].request_rate));
  EXPECT_EQ(sets[1].points[0].input_len, 1024);
  EXPECT_EQ(sets[1].points[0].total_token_throughput, 2490);
  EXPECT_TRUE(std::isnan(sets[1].points[1].request_rate)) << "a trace has own times";
}

// Forms of Server and Offline summaries of AMD's v6.0 submission; names are those of loadgen/results.cc.
TEST(BenchImport, ReadsSummariesOfLoadGen) {
  const BenchSet server = read_bench(fixture("mlperf_server.txt")).at(0);
  const BenchPoint& p = server.points.at(0);
  EXPECT_EQ(server.conditions.at("scenario"), "Server");
  EXPECT_EQ(p.request_rate, 10.05);
  EXPECT_EQ(p.request_throughput, 9.75);
  EXPECT_EQ(p.output_throughput, 2800.5);
  EXPECT_EQ(p.e2el.median, 15000);
  EXPECT_EQ(p.ttft.percentile(99), 2100);
  EXPECT_EQ(p.tpot.mean, 61.5);
  EXPECT_THAT(p.note, HasSubstr("INVALID: performance constraints"));
  const BenchPoint offline = read_bench(fixture("mlperf_offline.txt")).at(0).points.at(0);
  EXPECT_TRUE(std::isinf(offline.request_rate));
  EXPECT_EQ(offline.completed, 1375);
  EXPECT_EQ(offline.duration_s, 20);
  EXPECT_EQ(offline.output_throughput, 95004);
  EXPECT_FALSE(offline.ttft.known());
  EXPECT_TRUE(offline.note.empty());
}

TEST(BenchImport, RefusesSummaryOfAccuracyRun) {
  const Scratch folder;
  std::string text = read_file(fixture("mlperf_server.txt"));
  text.replace(text.find("PerformanceOnly"), 15, "AccuracyOnly");
  write_file_atomically(folder / "mlperf_log_summary.txt", text);
  EXPECT_EQ(refusal(folder / "mlperf_log_summary.txt").place, "Mode");
}

// Form of raw_data/{summary,individual}/anyscale_70b.json of ray-project/llmperf-leaderboard (LLMPerf 2023-08-31).
TEST(BenchImport, ReadsSummaryAndResponsesOfLlmperf) {
  const BenchSet summary = read_bench(fixture("llmperf_summary.json")).at(0);
  EXPECT_EQ(summary.model, "google/gemma-3-1b-it");
  EXPECT_EQ(summary.definitions.tpot, Definitions::Tpot::with_first);
  const BenchPoint& p = summary.points.at(0);
  EXPECT_EQ(p.max_concurrency, 5);
  EXPECT_EQ(p.completed, 150);
  EXPECT_EQ(p.failed, 2);
  EXPECT_EQ(p.request_throughput, 2);
  EXPECT_EQ(p.duration_s, 75);
  EXPECT_EQ(p.ttft.median, 212.5);
  EXPECT_EQ(p.tpot.median, 14.5);
  EXPECT_EQ(p.total_output_tokens, 22050);
  const BenchPoint r = read_bench(fixture("llmperf_responses.json")).at(0).points.at(0);
  EXPECT_EQ(r.completed, 5);
  EXPECT_EQ(r.failed, 1);
  EXPECT_DOUBLE_EQ(r.e2el.median, 2500);
  EXPECT_EQ(r.output_len, 152);
  EXPECT_TRUE(r.requests.empty()) << "the file has no times of sending";
  EXPECT_TRUE(std::isnan(r.output_throughput));
}

}  // namespace
}  // namespace mw::formats
