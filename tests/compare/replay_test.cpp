// SPDX-License-Identifier: GPL-3.0-or-later
// Recorded requests served by another server: the same server gives what was recorded, others what they would.
#include "core/compare/replay.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "core/base/files.h"
#include "core/compare/recording.h"
#include "core/formats/huggingface/hf_weights.h"
#include "core/jobs/sweep_run.h"
#include "core/plan/document/engine_request.h"
#include "core/serve/load/simulated_backend.h"
#include "core/serve/load/sweep.h"
#include "tests/shipped.h"
#include "tests/store/store_fixture.h"

namespace mw::compare {
namespace {

using formats::BenchPoint;
using formats::BenchSet;
using test::context;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

experiment::Experiment server(const char* target) {
  experiment::Experiment e;
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{{"kind", "serve"},
                                                                                   {"model.id", "gemma3-1b"},
                                                                                   {"target.id", target},
                                                                                   {"mesh.tp", "1"},
                                                                                   {"train.dtype", "bf16"},
                                                                                   {"sweep.request_rates", "[4, 16]"},
                                                                                   {"sweep.num_prompts", "20"},
                                                                                   {"sweep.output_len", "64"}})
    e.set(key, value);
  return e;
}

BenchPoint played(const experiment::Experiment& e, double rate, int len = 512) {
  return simulated_point(e, {rate, len}, context());
}

// As a run of the store is read again.
ComparedRun run_of(const experiment::Experiment& e, std::vector<BenchPoint> points) {
  BenchSet set = serve::sweep_facts(e.config(), context().catalogue);
  set.name = "recorded";
  set.points = std::move(points);
  ComparedRun run = compared(std::move(set));
  run.experiment = e;
  return run;
}

TEST(Replay, SameServerReproducesTheRecording) {
  const experiment::Experiment e = server("v6e-1");
  const Recording recording = recording_of(run_of(e, {played(e, 4), played(e, 16)}));
  const BenchSet again = replay(recording, recording.server, context());
  ASSERT_EQ(again.points.size(), 2u);
  EXPECT_EQ(again.provenance, formats::ResultProvenance::predicted);
  EXPECT_EQ(again.name, "recorded replayed");
  for (size_t i = 0; i < 2; ++i) {
    const BenchPoint &was = recording.set.points[i], &is = again.points[i];
    EXPECT_EQ(is.completed, 20);
    EXPECT_EQ(is.total_output_tokens, was.total_output_tokens);
    EXPECT_NEAR(is.ttft.median, was.ttft.median, 1e-6 * was.ttft.median);
    EXPECT_NEAR(is.tpot.median, was.tpot.median, 1e-6 * was.tpot.median);
    // Under the recording's name of the load: they stand beside each other in a comparison.
    EXPECT_EQ(is.request_rate, was.request_rate);
    EXPECT_EQ(is.input_len, was.input_len);
    EXPECT_THAT(is.note, IsEmpty());
  }
}

TEST(Replay, AServerThatKeepsItsCacheStartsAnewAtEveryColdPoint) {
  experiment::Experiment e = server("v6e-1");
  e.set_value("sweep.prompts", "replayed");
  e.set_value("sweep.request_rates", Json::array({4, 16}));
  const Recording recording =
      recording_of(run_of(e, {played(e, 4), played(e, 16), played(e, 4, 256), played(e, 16, 256)}));
  const BenchSet again = replay(recording, recording.server, context());
  ASSERT_EQ(again.points.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(again.points[i].prefix_hits, recording.set.points[i].prefix_hits);
    EXPECT_EQ(again.points[i].prefix_hits > 0.9, i % 2 == 1);
  }
}

experiment::Experiment engine_here() {
  experiment::Experiment e;
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"kind", "serve"},
                                                        {"model.id", "tiny"},
                                                        {"model.path", MW_RESOURCES "/base-model"},
                                                        {"target.id", "cpu"},
                                                        {"serve.max_num_seqs", "8"},
                                                        {"serve.max_model_len", "512"}})
    e.set(key, value);
  return e;
}

constexpr int kAnswer = 32, kAnswers = 60;
constexpr double kTokens = kAnswer * kAnswers;

// An engine whose steps follow a law, at some speed that falls by a third for the last third of the load, and are told.
class LawfulEngine : public serve::Executor {
 public:
  LawfulEngine(model::Config config, double slowness, std::vector<formats::TimedStep>& told)
      : config_(std::move(config)), slowness_(slowness), told_(told) {}
  serve::StepResult run(const serve::Step& step, const serve::Scheduler&) override {
    const formats::ServingStepWork w = serve::step_work(step, config_);
    answered_ += w.sampled;
    const double wanders = answered_ < 0.65 * kTokens ? 1 : 1.5;
    const double seconds = wanders * slowness_ * (2e-4 + 3e-5 * w.tokens + 1e-5 * w.sampled + 1e-10 * w.read);
    told_.push_back({w, seconds, 1, (answered_ - w.sampled / 2) / kTokens});
    serve::StepResult result{seconds, {}};
    for (const serve::StepItem& item : step.items)
      if (item.samples) result.sampled.push_back({item.id, 0});
    return result;
  }

 private:
  model::Config config_;
  double slowness_, answered_ = 0;
  std::vector<formats::TimedStep>& told_;
};

BenchPoint served_here(const experiment::Experiment& e, double rate, double slowness) {
  const model::Config config = formats::read_config(e.path("model.path"));
  std::vector<formats::TimedStep> told;
  const auto engine = serve::make_simulated_backend(std::make_unique<LawfulEngine>(config, slowness, told),
                                                    plan::engine_server(e.config(), config));
  const serve::Load load = serve::make_load(
      {.request_rate = rate, .input_len = 100, .output_len = kAnswer, .num_prompts = kAnswers, .seed = 3});
  BenchPoint point = serve::summarise(load, engine->run(load, {}, {}), {});
  point.steps = serve::merge_similar_steps(told);
  return point;
}

double tpot_of(const BenchPoint& point, double percent) {
  std::vector<double> all;
  for (const formats::RequestResult& r : point.requests)
    all.push_back((r.end_s - r.first_token_s) / (r.output_tokens - 1));
  std::sort(all.begin(), all.end());
  return all[static_cast<size_t>(percent / 100 * static_cast<double>(all.size()))];
}

// The machine wandered between the loads and in each: they are simulated as fast as it was then.
TEST(Replay, SimulatesASweepOfThisEngineFromItsSteps) {
  const experiment::Experiment e = engine_here();
  const std::vector<BenchPoint> points{served_here(e, 10, 1), served_here(e, 20, 1.6), served_here(e, 120, 0.8)};
  const Recording recording = recording_of(run_of(e, points));
  const BenchSet again = replay(recording, recording.server, context());
  EXPECT_EQ(again.provenance, formats::ResultProvenance::predicted);
  EXPECT_THAT(again.conditions.at("calibration"), HasSubstr("the recording's own"));
  EXPECT_THAT(again.notes, Contains(HasSubstr("predicted from recorded steps")));
  ASSERT_EQ(again.points.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    for (const double share : {10.0, 50.0, 90.0})
      EXPECT_NEAR(tpot_of(again.points[i], share) / tpot_of(points[i], share), 1, 0.06) << i << " at " << share;
    EXPECT_NEAR(again.points[i].ttft.median / points[i].ttft.median, 1, 0.1) << i;  // prompts are few
    EXPECT_NEAR(again.points[i].output_throughput / points[i].output_throughput, 1, 0.02) << i;
  }
  // What the same machine would have done with another scheduler.
  const BenchSet alone = replay(recording, counterfactual(e, {{"serve.max_num_seqs", "1"}}, context()), context());
  EXPECT_LE(alone.points[2].tpot.median, again.points[2].tpot.median);
  EXPECT_GT(alone.points[2].ttft.median, 2 * again.points[2].ttft.median);
}

TEST(Replay, RefusesAServerThatWouldNotStart) {
  const auto error_of = [](const Recording& recording, const experiment::Experiment& e) -> std::string {
    try {
      replay(recording, e, context());
    } catch (const Error& error) {
      return error.problem().id;
    }
    return "";
  };
  const experiment::Experiment e = server("v6e-1");
  const Recording recording = recording_of(run_of(e, {played(e, 4)}));
  experiment::Experiment whole = e;
  whole.set("serve.chunked_prefill", "false");
  whole.set("serve.max_num_batched_tokens", "512");
  EXPECT_EQ(error_of(recording, whole), "SERVE-1");
  EXPECT_THROW(played(whole, 4), Error);
  // Simulated from recorded steps, too. A mesh of this machine serves as one device, so that nothing is split.
  const experiment::Experiment here = engine_here();
  const Recording told = recording_of(run_of(here, {served_here(here, 10, 1), served_here(here, 120, 1)}));
  experiment::Experiment split = here;
  split.set("mesh.tp", "3");
  ASSERT_TRUE(RecordedSteps::of(told, split));
  EXPECT_EQ(error_of(told, split), "");
  experiment::Experiment longer = here;
  longer.set("serve.max_model_len", "1000000");
  EXPECT_EQ(error_of(told, longer), "CONTEXT");
  EXPECT_EQ(error_of(told, here), "");
}

TEST(Replay, DoesNotUseStepsOfAnotherEngine) {
  const experiment::Experiment e = engine_here();
  const Recording recording = recording_of(run_of(e, {served_here(e, 10, 1), served_here(e, 120, 1)}));
  EXPECT_TRUE(RecordedSteps::of(recording, e));
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
           {"train.dtype", "int8"}, {"target.id", "v6e-1"}, {"target.threads", "1"}, {"lora.adapter", "/elsewhere"}}) {
    experiment::Experiment other = e;
    other.set(key, value);
    EXPECT_FALSE(RecordedSteps::of(recording, other)) << key;
  }
  Recording untold = recording;
  for (BenchPoint& point : untold.set.points) point.steps.clear();
  EXPECT_FALSE(RecordedSteps::of(untold, e));
}

TEST(Replay, ClosedLoopKeepsTheNumberOfUsers) {
  experiment::Experiment e = server("v6e-1");
  e.set("sweep.arrival", "closed");
  e.set("sweep.concurrency", "4");
  BenchPoint point = played(e, 1);
  ASSERT_TRUE(std::isnan(point.request_rate));
  const Recording recording = recording_of(run_of(e, {point}));
  const BenchSet same = replay(recording, e, context());
  EXPECT_EQ(same.points[0].max_concurrency, 4);
  EXPECT_NEAR(same.points[0].output_throughput, point.output_throughput, 0.01 * point.output_throughput);
  const BenchSet slower = replay(recording, counterfactual(e, {{"target.id", "v5e-1"}}, context()), context());
  EXPECT_EQ(slower.points[0].max_concurrent_requests, 4);
  EXPECT_GT(slower.points[0].duration_s, 1.05 * point.duration_s) << "a slower server is asked more slowly";
}

TEST(Replay, ChipMeshKvTypeAndCacheEachChangeWhatIsPredicted) {
  experiment::Experiment e = server("v6e-1");
  e.set("sweep.prompts", "replayed");
  e.set("serve.prefix_cache", "true");
  const Recording recording = recording_of(run_of(e, {played(e, 4, 2048), played(e, 16, 2048)}));
  const auto with = [&](const std::vector<std::pair<std::string, std::string>>& changes) {
    return replay(recording, counterfactual(recording.server, changes, context()), context());
  };
  const BenchSet same = with({}), chip = with({{"target.id", "v5e-1"}}),
                 mesh = with({{"target.id", "v6e-4"}, {"mesh.tp", "4"}}), kv = with({{"serve.kv_dtype", "fp8"}}),
                 cold = with({{"serve.prefix_cache", "false"}});
  EXPECT_GT(chip.points[1].tpot.median, 1.1 * same.points[1].tpot.median);
  EXPECT_LT(mesh.points[1].tpot.median, same.points[1].tpot.median);
  EXPECT_LT(kv.points[1].tpot.median, same.points[1].tpot.median);
  EXPECT_GT(same.points[1].prefix_hits, 0.9) << "the second point's prompts are those of the first";
  EXPECT_EQ(cold.points[1].prefix_hits, 0);
  EXPECT_GT(cold.points[1].ttft.median, 1.2 * same.points[1].ttft.median);
  EXPECT_EQ(chip.name, "recorded replayed: v5e-1");
  EXPECT_EQ(kv.name, "recorded replayed: KV fp8");
  EXPECT_EQ(cold.name, "recorded replayed: no prefix cache");
  EXPECT_THAT(mesh.name, HasSubstr("tp 4"));
}

TEST(Replay, NotesWhatCannotBeReproduced) {
  const experiment::Experiment e = server("v6e-1");
  BenchPoint point = played(e, 16);
  point.requests[3].error = "timed out";
  point.prefix_hits = 0.5;
  for (auto& r : point.requests) r.intended_s = r.sent_s = 0;  // as by a tool that keeps no start times
  BenchPoint summary;
  summary.request_rate = 32, summary.input_len = 512;
  const ComparedRun run = run_of(e, {point, summary});
  const BenchSet again = replay(recording_of(run), e, context());
  ASSERT_EQ(again.points.size(), 1u);
  EXPECT_EQ(again.points[0].completed, 19);
  EXPECT_THAT(again.notes, Contains(HasSubstr("1 failed requests")));
  EXPECT_THAT(again.notes, Contains(HasSubstr("prefix cache")));
  EXPECT_THAT(again.notes, Contains(HasSubstr("evenly at 16/s")));
  EXPECT_THAT(again.notes, Contains(HasSubstr("1 point without recorded requests")));
  EXPECT_THROW(recording_of(run_of(e, {BenchPoint{}})), Error);
  EXPECT_FALSE(has_requests(run_of(e, {BenchPoint{}})));
}

TEST(Replay, AnImportedResultProvidesItsServer) {
  BenchSet set{.name = "theirs", .model = "gemma3-1b", .target = "v6e-8"};
  set.conditions = {{"kv_dtype", "fp8_e5m2 (claimed)"}, {"prefix_cache", "off"}, {"tp", "8"}, {"max_num_seqs", "many"}};
  set.points = {played(server("v6e-1"), 4)};
  const experiment::Experiment e = recording_of(compared(set)).server;
  EXPECT_EQ(e.value("target.id").get<std::string>(), "v6e-8");
  EXPECT_EQ(e.value("serve.kv_dtype").get<std::string>(), "fp8");
  EXPECT_FALSE(e.value("serve.prefix_cache").get<bool>());
  EXPECT_EQ(e.value("mesh.tp").get<long long>(), 8);
  EXPECT_FALSE(e.has("serve.max_num_seqs"));
}

class ReplayFiles : public testing::Test {
 protected:
  test::Scratch scratch_;
  const std::filesystem::path& folder_ = scratch_.path();
};

TEST_F(ReplayFiles, ReadsWorkloadsAndResultsAndRejectsOthers) {
  const auto csv = folder_ / "requests.csv";
  std::ofstream(csv) << "arrival_s,prompt_tokens,output_tokens\n0,100,20\n0.1,700,40\n0.5,50,10\n";
  const Recording workload = recording_of(csv);
  EXPECT_EQ(workload.requests(), 3);
  const BenchSet r = replay(workload, server("v6e-1"), context());
  EXPECT_EQ(r.points[0].completed, 3);
  EXPECT_EQ(r.points[0].total_input_tokens, 850);
  EXPECT_EQ(r.points[0].total_output_tokens, 70);

  const auto result = folder_ / "result.json";
  write_file_atomically(result, to_json(r, formats::Detail::requests).dump());
  EXPECT_EQ(recording_of(result).requests(), 3);
  write_file_atomically(result, to_json(r, formats::Detail::summary).dump());
  EXPECT_THROW(recording_of(result), Error);
  write_file_atomically(csv, "a,b\n1,2\n");
  EXPECT_THROW(recording_of(csv), Error);
}

TEST_F(ReplayFiles, StoresAFinishedPredictedRun) {
  const experiment::Experiment e = server("v6e-1");
  const Recording recording = recording_of(run_of(e, {played(e, 4)}));
  const experiment::Experiment other = counterfactual(e, {{"target.id", "v5e-1"}}, context());
  store::Store store(folder_ / "runs");
  const store::RunId run = record_replay(store, other, replay(recording, other, context()));
  const ComparedRun read = compared(store, run);
  EXPECT_EQ(read.provenance, formats::ResultProvenance::predicted);
  EXPECT_EQ(read.experiment.value("target.id").get<std::string>(), "v5e-1");
  EXPECT_EQ(read.sweep->set.points.size(), 1u);
  EXPECT_TRUE(has_requests(read)) << "it can be replayed in turn";
  EXPECT_EQ(store.find(run)->state, RunState::done);
}

TEST(Replay, AStopEndsItAndProgressCountsRequests) {
  const experiment::Experiment e = server("v6e-1");
  const Recording recording = recording_of(run_of(e, {played(e, 4), played(e, 16)}));
  std::stop_source stop;
  long last = 0;
  replay(recording, e, context(), [&](long done, long of) {
    EXPECT_GE(done, last);
    EXPECT_EQ(of, 40);
    last = done;
  });
  EXPECT_EQ(last, 40);
  try {
    replay(
        recording, e, context(), [&](long, long) { stop.request_stop(); }, stop.get_token());
    FAIL() << "went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::cancelled);
  }
}

}  // namespace
}  // namespace mw::compare
