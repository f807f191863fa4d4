// SPDX-License-Identifier: GPL-3.0-or-later
// plan, checker, search, size and sweep answer from the same facts: thousands of random experiments, the same at every
// run unless scripts/random-plans.sh asks for others.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <map>

#include "core/jobs/sweep_run.h"
#include "core/plan/document/diagnostics.h"
#include "core/plan/experiment/predict_sizes.h"
#include "core/plan/experiment/search_experiment.h"
#include "core/serve/load/sweep.h"
#include "tests/plan/documents/random_experiments.h"
#include "tests/random_inputs.h"

namespace mw::plan {
namespace {

using experiment::Experiment;
using test::context;
using test::random_inputs;
using test::random_seed;
using test::RandomExperiments;

// The answer of `plan`; `error`: it cannot plan at all.
struct Answer {
  plan::Request request{};
  plan::Plan plan{};
  std::string error{};
  bool refuses() const { return !error.empty() || !plan.refusals.empty(); }
};

plan::Request planned_request(const Experiment& e) {
  plan::Request request = plan_request(e, context());
  const experiment::BoundExperiment config = e.config();
  if (config.kind == experiment::Kind::size)
    request = with_case(std::move(request), config.size, size_cases(config.size).front());
  return request;
}

Answer answer(const Experiment& e) {
  Answer out;
  try {
    out.request = planned_request(e);
    out.plan = plan::predict(out.request);
  } catch (const Error& error) {
    out.error = error.problem().id;
  }
  return out;
}

template <class Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.problem().id;
  }
  return {};
}

std::vector<std::string> refusals_of_checker(const Experiment& e, const Answer& plan) {
  plan::DiagnosticFacts known;
  if (plan.error.empty()) known = {.plan = &plan.plan, .request = &plan.request};
  std::vector<std::string> ids;
  for (const plan::Diagnostic& d : plan::diagnose(e, context(), known).found)
    if (lint::is_refusal(d.problem.id, d.problem.severity) || (!plan.error.empty() && d.problem.id == plan.error))
      ids.push_back(d.problem.id);
  return ids;
}

TEST(Consistency, WhatPlanRefusesTheCheckerSizeAndSweepRefuse) {
  RandomExperiments random(random_seed(27));
  int refused = 0, runs = 0;
  for (int i = 0; i < random_inputs(1200); ++i) {
    const std::string kind = random.one_of(std::array{"train", "serve", "size"});
    const Experiment e = random.next(kind);
    const Answer plan = answer(e);
    ++(plan.refuses() ? refused : runs);
    SCOPED_TRACE(e.text());
    if (i % 10 == 0) {  // the checker reads every tensor several times
      EXPECT_EQ(plan.refuses(), !refusals_of_checker(e, plan).empty())
          << "plan: " << plan.error << (plan.plan.refusals.empty() ? "" : plan.plan.refusals.front().message);
    }
    EXPECT_FALSE(plan.refuses() && plan.error.empty() && plan.plan.fits());
    if (kind == "size") {
      EXPECT_EQ(plan.refuses(), !error_of([&] { predicted_sizes(e, context()); }).empty());
    }
    if (kind == "serve" && (plan.refuses() || plan.plan.fits())) {
      EXPECT_EQ(plan.refuses(), !error_of([&] { jobs::make_backend(e, context(), [](const auto&) {}); }).empty());
    }
    if (testing::Test::HasFailure()) break;
  }
  std::printf("%d experiments refused by all, %d planned by all\n", refused, runs);
  EXPECT_GT(refused, 300);
  EXPECT_GT(runs, 300);
}

TEST(Consistency, SearchOffersWhatRunsAndIsNotSlowerThanThePlan) {
  RandomExperiments random(random_seed(28));
  int changes = 0, searched = 0;
  for (int i = 0; i < random_inputs(30); ++i) {
    Experiment e = random.next(random.one_of(std::array{"train", "serve"}));
    e.set_value("sweep.request_rates", Json::array({2}));  // short sweeps: all candidates are simulated
    e.set_value("sweep.num_prompts", 10);
    const Answer plan = answer(e);
    SCOPED_TRACE(e.text());
    ExperimentSearch found;
    if (!error_of([&] { found = search_experiment(e, {}, context(), {}); }).empty()) {
      EXPECT_TRUE(plan.refuses());
      continue;
    }
    ++searched;
    EXPECT_EQ(found.fits, !plan.refuses() && plan.plan.fits());
    for (const lint::Fix& change : found.changes) {
      Experiment changed = e;
      plan::apply(changed, change);
      const Answer after = answer(changed);
      EXPECT_TRUE(after.plan.fits()) << change.label;
      EXPECT_EQ(after.plan.memory.at_peak.total(), change.outcome->peak) << change.label;
      EXPECT_DOUBLE_EQ(after.plan.step.seconds.value, change.outcome->seconds) << change.label;
      ++changes;
    }
    for (const plan::Candidate& c : found.result.candidates)
      EXPECT_FALSE(plan.refuses() && c.choice == plan::choice_of(plan.request));
    const bool uneven = plan.plan.run.steps > 0 &&
                        plan.request.train.batch * plan.request.train.accumulation % plan.request.mesh.devices() != 0;
    if (!found.fits || (uneven && found.result.candidates.empty())) continue;  // Tunix repeats such rows
    ASSERT_FALSE(found.result.candidates.empty());
    plan::Candidate own{.seconds = plan.plan.step.seconds.value, .tokens_per_second = plan.plan.run.tokens_per_second};
    if (found.result.candidates.front().sweep) {
      std::vector<ServingCell> cell{{plan::choice_of(plan.request), {}}};
      simulate(cell, e, context(), {}, {});
      EXPECT_EQ(cell.front().refusal, "");
      own.sweep = sweep_figures(cell.front(), serve::sweep_settings(e.config()), own);
    }
    EXPECT_LE(plan::ranked_time(found.result.candidates.front(), plan.request.work),
              plan::ranked_time(own, plan.request.work) * 1.000001);
    Experiment best = e;
    for (const lint::Edit& edit :
         edits_to(found, plan::choice_of(found.request), found.result.candidates.front().choice))
      plan::apply(best, {.edits = {edit}});
    const Answer after = answer(best);
    EXPECT_FALSE(after.refuses());
    EXPECT_TRUE(after.plan.fits());
    EXPECT_DOUBLE_EQ(after.plan.step.seconds.value, found.result.candidates.front().seconds);
    if (testing::Test::HasFailure()) break;
  }
  std::printf("%d searched and %d changes compared with the plan after them\n", searched, changes);
  EXPECT_GT(changes, 0);
}

// Applies the fix as the command line does.
Experiment after_fix(const Experiment& e, const lint::Fix& fix) {
  Experiment fixed = e;
  const Json json = to_json(plan::Diagnostic{.problem = {}, .why = {}, .evidence = {}, .fixes = {fix}});
  for (const Json& set : json["fixes"][0]["set"]) experiment::apply_sets(fixed, {set.get<std::string>()});
  return fixed;
}

void expect_promise(const lint::Fix& fix, const Experiment& fixed) {
  SCOPED_TRACE(fix.label + ": " + plan::set_text(fix));
  const Answer after = answer(fixed);
  ASSERT_EQ(after.error, "");
  EXPECT_EQ(fix.outcome->fits, after.plan.fits());
  EXPECT_DOUBLE_EQ(fix.outcome->seconds, after.plan.step.seconds.value);
  EXPECT_DOUBLE_EQ(fix.outcome->hours, after.plan.run.hours.value);
  const plan::RunTotals& run = after.plan.run;
  EXPECT_DOUBLE_EQ(fix.outcome->usd, run.usd.value);
  EXPECT_DOUBLE_EQ(fix.outcome->usd_per_million_tokens, run.usd_per_million_tokens);
  EXPECT_EQ(fix.outcome->peak, after.plan.memory.at_peak.total());
}

TEST(Consistency, AFixDoesWhatItPromises) {
  RandomExperiments random(random_seed(32));
  std::map<std::string, int> promised;  // by rule
  for (int i = 0; i < random_inputs(160); ++i) {
    const Experiment e = random.next(random.one_of(std::array{"train", "serve"}));
    const Answer plan = answer(e);
    if (!plan.error.empty()) continue;
    const plan::Fixes fixes = plan.plan.memory.fits() ? plan::Fixes::at_hand : plan::Fixes::searched;
    const plan::Diagnosis d = plan::diagnose(e, context(), {.plan = &plan.plan, .request = &plan.request}, fixes);
    for (const plan::Diagnostic& found : d.found)
      for (const lint::Fix& fix : found.fixes) {
        if (!fix.outcome) continue;
        SCOPED_TRACE(found.problem.id + "\n" + e.text());
        Experiment edited = e;
        plan::apply(edited, fix);
        expect_promise(fix, edited);
        expect_promise(fix, after_fix(e, fix));
        ++promised[found.problem.id];
        EXPECT_TRUE(found.problem.id != "MEMORY" || fix.outcome->fits);
        if (lint::is_refusal(found.problem.id, found.problem.severity)) {
          const plan::Diagnosis after = plan::diagnose(edited, context());
          EXPECT_TRUE(std::none_of(after.found.begin(), after.found.end(), [&](const plan::Diagnostic& other) {
            return other.problem.id == found.problem.id && other.problem.severity == Severity::error;
          }));
        }
      }
    if (testing::Test::HasFailure()) break;
  }
  for (const auto& [id, fixes] : promised) std::printf("%s: %d fixes\n", id.c_str(), fixes);
  for (const char* id : {"PAD-1", "MESH-2", "BATCH-1", "DTYPE-2", "SERVE-1", "SERVE-2", "SERVE-3", "TP-1", "MEMORY"})
    EXPECT_GT(promised[id], 0) << id;
}

TEST(Consistency, TheOrderOfKeysDoesNotMatter) {
  RandomExperiments random(random_seed(30));
  int reordered = 0;
  for (int i = 0; i < random_inputs(800); ++i) {
    const Experiment e = random.next(random.one_of(std::array{"train", "serve", "size"}));
    Json reversed = Json::object();
    for (const auto& [section, values] : e.json().items()) {
      if (!values.is_object()) {
        reversed[section] = values;
        continue;
      }
      std::vector<std::pair<std::string, Json>> keys;
      for (const auto& [key, value] : values.items()) keys.emplace_back(key, value);
      reversed[section] = Json::object();
      std::reverse(keys.begin(), keys.end());
      for (const auto& [key, value] : keys) reversed[section][key] = value;
    }
    const Answer a = answer(e), b = answer(Experiment::from_json(reversed));
    SCOPED_TRACE(e.text());
    EXPECT_EQ(a.error, b.error);
    EXPECT_DOUBLE_EQ(a.plan.step.seconds.value, b.plan.step.seconds.value);
    EXPECT_EQ(a.plan.memory.at_peak.total(), b.plan.memory.at_peak.total());
    EXPECT_EQ(a.plan.run.tokens_per_second, b.plan.run.tokens_per_second);
    reordered += a.request.mesh.axes.size() > 1 && !(a.request.mesh == b.request.mesh) ? 1 : 0;
    EXPECT_EQ(a.plan.refusals.empty(), b.plan.refusals.empty());
    if (testing::Test::HasFailure()) break;
  }
  std::printf("%d meshes in another order\n", reordered);
  EXPECT_GT(reordered, 100);
}

// The time of the best plan in the steady state, which may use fewer chips of the target; 0: no plan fits.
double best_time(const ExperimentSearch& found) {
  double best = 0;
  const auto take = [&](const plan::Candidate& c) {
    const double time = plan::time_of(c, found.request.work);
    if (best == 0 || time < best) best = time;
  };
  if (!found.result.candidates.empty()) take(found.result.candidates.front());
  if (found.fewer_chips) take(found.fewer_chips->plan);
  return best;
}

TEST(Consistency, TheBestPlanForMoreChipsIsNeverSlower) {
  RandomExperiments random(random_seed(31));
  const std::vector<std::vector<const char*>> families{{"v5p-8", "v5p-16", "v5p-32"},
                                                       {"v6e-1", "v6e-4", "v6e-8", "v6e-16"},
                                                       {"1xh100", "2xh100", "4xh100", "8xh100", "16xh100"}};
  int compared = 0, idle = 0;
  for (int i = 0; i < random_inputs(18); ++i) {
    Experiment e = random.next(i % 3 == 0 ? "train" : "serve");
    e.set_value("train.batch", random.one_of(std::array{4, 8}));
    double before = 0;
    for (const char* target : families[static_cast<size_t>(i) % families.size()]) {
      retarget(e, target, context());
      for (const char* axis : {"fsdp", "tp", "data", "pp", "cp", "ep", "dp"}) e.erase(std::string("mesh.") + axis);
      SCOPED_TRACE(e.text());
      ExperimentSearch found;
      if (!error_of([&] { found = search_experiment(e, {}, context(), {}, {}, 0); }).empty()) continue;
      const double time = best_time(found);
      if (before > 0) {
        ASSERT_GT(time, 0);
        EXPECT_LE(time, before * 1.000001);
        ++compared;
      }
      if (found.fewer_chips) {
        ++idle;
        Experiment fewer = e;
        for (const lint::Edit& edit : edits_to(found, plan::choice_of(found.request), found.fewer_chips->plan.choice))
          plan::apply(fewer, {.edits = {edit}});
        const Answer after = answer(fewer);
        EXPECT_TRUE(after.plan.fits());
        EXPECT_DOUBLE_EQ(after.plan.step.seconds.value, found.fewer_chips->plan.seconds);
        EXPECT_LT(after.request.target.chips(), found.request.target.chips());
      }
      before = time;
    }
  }
  std::printf("%d targets compared with a smaller one; %d best plans leave chips idle\n", compared, idle);
  EXPECT_GT(compared, 20);
  EXPECT_GT(idle, 0);
}

}  // namespace
}  // namespace mw::plan
