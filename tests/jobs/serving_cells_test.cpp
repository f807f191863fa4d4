// SPDX-License-Identifier: GPL-3.0-or-later
// A cell of a serving search or of an envelope is the sweep of the document with the cell's edits: equal as JSON, to
// the last digit.
#include <gtest/gtest.h>

#include <set>

#include "core/base/rng.h"
#include "core/jobs/sweep_envelope.h"
#include "core/jobs/sweep_run.h"
#include "core/plan/document/simulated_server.h"
#include "core/plan/experiment/search_experiment.h"
#include "core/serve/load/sweep.h"
#include "tests/shipped.h"

namespace mw::jobs {
namespace {

using test::context;

Json points_json(const std::vector<formats::BenchPoint>& points) {
  Json out = Json::array();
  for (const formats::BenchPoint& p : points) out.push_back(to_json(p, formats::Detail::summary));
  return out;
}

// What `sweep --json` prints.
Json swept(const experiment::Experiment& e) {
  std::vector<formats::BenchPoint> points;
  const EventSink sink = [&](const Event& event) {
    if (const auto* point = std::get_if<event::ResultPoint>(&event.body))
      points.push_back(formats::bench_point(point->values));
  };
  train::PauseGate gate;
  run_sweep({.experiment = e,
             .info = Json::object(),
             .context = [] { return std::make_shared<const plan::PlanContext>(context()); }},
            sink, {}, gate);
  return points_json(points);
}

experiment::Experiment with_sets(experiment::Experiment e, const Json& sets) {
  experiment::apply_sets(e, sets.get<std::vector<std::string>>());
  return e;
}

std::vector<experiment::Experiment> experiments() {
  std::vector<experiment::Experiment> out;
  for (const char* name : {"paper-serve-v6e-8", "paper-serve-2xh100"})
    for (const char* prompts : {"salted", "replayed"}) {
      experiment::Experiment e = experiment::Experiment::load(std::string(MW_RESOURCES "/examples/") + name + ".json");
      e.set_value("sweep.prompts", prompts);
      e.set_value("sweep.request_rates", Json::array({16, 2, "inf"}));
      e.set_value("sweep.input_lens", Json::array({2048, 512}));
      e.set_value("sweep.output_len", 24);
      e.set_value("sweep.num_prompts", 12);
      e.set_value("sweep.num_prompts_at", Json::array({"512:17"}));
      e.set_value("sweep.warmups", 1);
      e.set_value("sweep.shared_prefix", 64);
      e.set_value("sweep.slo_ttft_ms", 400);
      out.push_back(e);
      e.set_value("model.id", "gemma3-4b");  // has more meshes and replicas
      e.set_value("sweep.repeats", 2);
      e.set_value("sweep.routing", "prefix_aware");
      e.set_value("sweep.replicas", 2);
      out.push_back(e);
    }
  return out;
}

TEST(ServingCells, EnvelopeCellsAreSweepPoints) {
  int cells = 0;
  for (const experiment::Experiment& e : experiments()) {
    const EnvelopeRuns runs = simulate_envelope(e, context(), {}, {});
    const Json json = envelope_json(runs, EnvelopeMetric::p99_ttft);
    std::set<int> replicas;
    for (const Json& mesh : json["meshes"]) {
      if (!mesh["simulated"].get<bool>()) continue;
      experiment::Experiment cell = with_sets(e, mesh["set"]);
      cell.set_value("sweep.repeats", runs.repeats);
      const Json points = swept(cell);
      ASSERT_EQ(points.size(), 30u);
      Json sorted = points;  // as the envelope lists them, by length and rate
      std::stable_sort(sorted.begin(), sorted.end(), [](const Json& a, const Json& b) {
        const auto rate = [](const Json& p) {
          return p["request_rate"] == "inf" ? 1e9 : p["request_rate"].get<double>();
        };
        return std::pair(a["input_len"].get<int>(), rate(a)) < std::pair(b["input_len"].get<int>(), rate(b));
      });
      EXPECT_EQ(mesh["points"], sorted) << mesh["name"];
      // With fewer repeats a sweep has the first of these points.
      cell.set_value("sweep.repeats", 1);
      const Json once = swept(cell);
      EXPECT_EQ(once, Json(std::vector<Json>(points.begin(), points.begin() + 6))) << mesh["name"];
      replicas.insert(mesh["replicas"].get<int>());
      ++cells;
    }
    EXPECT_GT(replicas.size(), 1u);
  }
  EXPECT_GT(cells, 12);
}

TEST(ServingCells, SearchCellsAreSweepPoints) {
  Rng choose{57, 6};
  for (const experiment::Experiment& e : experiments()) {
    const plan::ExperimentSearch found = plan::search_experiment(e, {}, context(), {});
    const Json json = plan::searched_json(found, 0);
    ASSERT_GT(json["candidates"].size(), 4u);
    EXPECT_EQ(json["simulated"], json["candidates"].size());
    double before = 0;
    for (const Json& c : json["candidates"]) {
      const bool is_front = c["pareto"].get<bool>();
      const Json rate = c["sweep"]["rate_within_slo"];
      if (is_front) {  // the highest rate within the SLO first
        const double time = rate == "inf" ? 0 : 1 / rate.get<double>();
        EXPECT_GE(time, before);
        before = time;
      }
      if (!is_front && choose.below(4) != 0) continue;
      EXPECT_EQ(c["sweep"]["points"], swept(with_sets(e, c["set"]))) << c["set"];
    }
  }
}

TEST(ServingCells, SinglePointsAreThoseOfTheSweep) {
  for (const experiment::Experiment& e : experiments()) {
    const Json points = swept(e);
    for (size_t i = 0; i < 6; ++i) {
      formats::BenchPoint p = formats::bench_point(points[i]);
      const plan::LoadPoint at{p.request_rate, p.input_len};
      for (auto& [key, value] : points[i].items())  // one point has no intervals
        if (key.ends_with("_low") || key.ends_with("_high")) p.rest.erase(key);
      const formats::BenchPoint alone = plan::simulated_point(e, at, context());
      EXPECT_EQ(to_json(alone, formats::Detail::summary), to_json(p, formats::Detail::summary));
    }
  }
}

TEST(ServingCells, ALongSweepIsSimulatedForTheBestOfTheSteadyState) {
  experiment::Experiment e = experiments().front();
  const long each = serve::sweep_settings(e.config()).requests();
  const plan::ExperimentSearch found = plan::search_experiment(e, {}, context(), {}, {}, 3 * each);
  ASSERT_EQ(found.cells.size(), 3u);
  ASSERT_GT(found.result.candidates.size(), 3u);
  for (size_t i = 0; i < found.result.candidates.size(); ++i)
    EXPECT_EQ(found.result.candidates[i].sweep.has_value(), i < 3);
  const Json json = plan::searched_json(found, 0);
  EXPECT_EQ(json["simulated"], 3);
  EXPECT_TRUE(json["candidates"][3]["sweep"].is_null());
  EXPECT_NE(plan::searched_text(found, 0).find("ranked by the steady state"), std::string::npos);
  e.set_value("serve.max_model_len", 64);  // its prompts do not fit: the steady state ranks, and the reason is said
  const plan::ExperimentSearch refused = plan::search_experiment(e, {}, context(), {});
  EXPECT_TRUE(refused.cells.empty());
  EXPECT_NE(refused.not_simulated.find("serve.max_model_len"), std::string::npos);
  EXPECT_FALSE(refused.result.candidates.empty());
}

TEST(ServingCells, StopEndsASearch) {
  std::stop_source stop;
  plan::SearchOptions options;
  options.progress = [&](std::int64_t, std::int64_t) { stop.request_stop(); };
  EXPECT_THROW(plan::search_experiment(experiments().front(), {}, context(), options, stop.get_token()), Error);
}

}  // namespace
}  // namespace mw::jobs
