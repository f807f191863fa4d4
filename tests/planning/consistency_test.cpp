// SPDX-License-Identifier: GPL-3.0-or-later
// plan, checker, search, size and sweep answer from the same facts: thousands of random experiments, the same at every
// run.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>

#include "core/jobs/sweep_backends.h"
#include "core/planning/diagnostics.h"
#include "core/planning/predict_sizes.h"
#include "core/planning/search_experiment.h"
#include "tests/shipped.h"

namespace mw::planning {
namespace {

using experiment::Experiment;
using test::catalogue;

class RandomExperiments {
 public:
  explicit RandomExperiments(std::uint64_t seed) : random_(seed) {}

  Experiment next(const std::string& kind) {
    Experiment e;
    const std::string target = one_of(
        std::array{"v5p-8", "v5p-16", "v6e-8", "v5e-4", "1xh100", "2xh100", "4xh100", "8xh100", "8xh200", "8xmi300x"});
    e.set_value("kind", kind);
    e.set_value("model.id", one_of(std::array{"gemma2-2b", "gemma3-1b", "gemma3-4b", "gemma3-12b", "gemma4-31b",
                                              "gemma4-26b-a4b", "llama3.1-8b", "qwen3-32b"}));
    e.set_value("target.id", target);
    add_mesh(catalogue().target(target).devices(), e);
    e.set_value("train.dtype", one_of(std::array{"bf16", "bf16", "bf16", "f32", "int8"}));
    if (kind == "train") add_training(e);
    if (kind == "serve") add_serving(e);
    if (kind == "size") e.set_value("size.batches", Json::array({1, 64}));
    return e;
  }
  template <size_t N>
  std::string one_of(const std::array<const char*, N>& values) {
    return values[random_() % N];
  }
  template <size_t N>
  int one_of(const std::array<int, N>& values) {
    return values[random_() % N];
  }
  bool chance(unsigned of) { return random_() % of == 0; }

 private:
  void add_mesh(int devices, Experiment& e) {
    if (chance(4)) return;  // the default mesh
    if (chance(8)) return e.set_value("mesh.tp", 3);
    for (int left = devices; left > 1;) {
      const int size = one_of(std::array{2, left});
      if (left % size != 0) continue;
      const std::string axis =
          chance(8) ? one_of(std::array{"pp", "cp", "ep", "dp"}) : one_of(std::array{"fsdp", "tp", "data"});
      const std::string key = "mesh." + axis;
      e.set_value(key, (e.has(key) ? e.value(key).get<int>() : 1) * size);
      left /= size;
    }
  }
  void add_training(Experiment& e) {
    e.set_value("train.batch", one_of(std::array{1, 2, 3, 4, 8, 16}));
    e.set_value("train.accumulation", one_of(std::array{1, 2, 8}));
    e.set_value("train.remat", one_of(std::array{"none", "block", "layer"}));
    e.set_value("train.loss_chunk", one_of(std::array{0, 256}));
    e.set_value("train.method", one_of(std::array{"lora", "lora", "full"}));
    e.set_value("data.max_len", one_of(std::array{512, 2048, 8192}));
    e.set_value("data.rows", 10000);
    if (chance(2)) e.set_value("data.mean_len", 300);
    if (chance(4)) e.set_value("data.packing", true);
    if (chance(2)) e.set_value("train.epochs", 1);
    const bool gpu = e.value("target.id").get<std::string>().find('x') != std::string::npos;
    if (chance(2))
      e.set_value("train.stack", gpu ? one_of(std::array{"trl-fsdp", "torchtitan", "megatron"})
                                     : one_of(std::array{"tunix", "torchax", "maxtext"}));
  }
  void add_serving(Experiment& e) {
    e.set_value("serve.max_num_seqs", one_of(std::array{16, 64, 256}));
    e.set_value("serve.max_num_batched_tokens", one_of(std::array{32, 512, 2048, 8192}));
    e.set_value("serve.max_model_len", one_of(std::array{2048, 8192, 32768, 200000}));
    e.set_value("serve.kv_dtype", one_of(std::array{"bf16", "fp8"}));
    if (chance(4)) e.set_value("serve.chunked_prefill", false);
  }
  std::mt19937_64 random_;
};

// The answer of `plan`; `error`: it cannot plan at all.
struct Answer {
  plan::Request request{};
  plan::Plan plan{};
  std::string error{};
  bool refuses() const { return !error.empty() || !plan.refusals.empty(); }
};

plan::Request planned_request(const Experiment& e) {
  plan::Request request = plan_request(e, catalogue());
  const experiment::ExperimentConfig config = experiment::bind(e);
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
  DiagnosticFacts known;
  if (plan.error.empty()) known = {.plan = &plan.plan, .request = &plan.request};
  std::vector<std::string> ids;
  for (const Diagnostic& d : diagnose(e, catalogue(), known).found)
    if (lint::is_refusal(d.problem.id, d.problem.severity) || (!plan.error.empty() && d.problem.id == plan.error))
      ids.push_back(d.problem.id);
  return ids;
}

TEST(Consistency, WhatPlanRefusesTheCheckerSizeAndSweepRefuse) {
  RandomExperiments random(27);
  int refused = 0, runs = 0;
  for (int i = 0; i < 1200; ++i) {
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
      EXPECT_EQ(plan.refuses(), !error_of([&] { predicted_sizes(e, catalogue()); }).empty());
    }
    if (kind == "serve" && (plan.refuses() || plan.plan.fits())) {
      EXPECT_EQ(plan.refuses(), !error_of([&] { jobs::make_backend(e, catalogue(), [](const auto&) {}); }).empty());
    }
    if (testing::Test::HasFailure()) break;
  }
  EXPECT_GT(refused, 300);
  EXPECT_GT(runs, 300);
}

TEST(Consistency, SearchOffersWhatRunsAndIsNotSlowerThanThePlan) {
  RandomExperiments random(28);
  for (int i = 0; i < 30; ++i) {
    const Experiment e = random.next(random.one_of(std::array{"train", "serve"}));
    const Answer plan = answer(e);
    SCOPED_TRACE(e.text());
    ExperimentSearch found;
    if (!error_of([&] { found = search_experiment(e, {}, catalogue(), {}); }).empty()) {
      EXPECT_TRUE(plan.refuses());
      continue;
    }
    EXPECT_EQ(found.fits, !plan.refuses() && plan.plan.fits());
    for (const plan::Candidate& c : found.result.candidates)
      EXPECT_FALSE(plan.refuses() && c.choice == plan::choice_of(plan.request));
    const bool uneven = plan.plan.run.steps > 0 &&
                        plan.request.train.batch * plan.request.train.accumulation % plan.request.mesh.devices() != 0;
    if (!found.fits || (uneven && found.result.candidates.empty())) continue;  // Tunix repeats such rows
    ASSERT_FALSE(found.result.candidates.empty());
    const plan::Candidate own{.seconds = plan.plan.step.seconds.value,
                              .tokens_per_second = plan.plan.run.tokens_per_second};
    EXPECT_LE(plan::time_of(found.result.candidates.front(), plan.request.work),
              plan::time_of(own, plan.request.work) * 1.000001);
    Experiment best = e;
    for (const lint::Edit& edit :
         edits_to(found, plan::choice_of(found.request), found.result.candidates.front().choice))
      apply(best, {.edits = {edit}});
    const Answer after = answer(best);
    EXPECT_FALSE(after.refuses());
    EXPECT_TRUE(after.plan.fits());
    EXPECT_DOUBLE_EQ(after.plan.step.seconds.value, found.result.candidates.front().seconds);
    if (testing::Test::HasFailure()) break;
  }
}

// Applies the fix as the command line does.
Experiment after_fix(const Experiment& e, const lint::Fix& fix) {
  Experiment fixed = e;
  const Json json = to_json(Diagnostic{.problem = {}, .why = {}, .evidence = {}, .fixes = {fix}});
  for (const Json& set : json["fixes"][0]["set"]) experiment::apply_sets(fixed, {set.get<std::string>()});
  return fixed;
}

void expect_promise(const lint::Fix& fix, const Experiment& fixed) {
  SCOPED_TRACE(fix.label + ": " + set_text(fix));
  const Answer after = answer(fixed);
  ASSERT_EQ(after.error, "");
  EXPECT_EQ(fix.outcome->fits, after.plan.fits());
  EXPECT_DOUBLE_EQ(fix.outcome->seconds, after.plan.step.seconds.value);
  EXPECT_DOUBLE_EQ(fix.outcome->hours, after.plan.run.hours.value);
  EXPECT_DOUBLE_EQ(fix.outcome->usd, after.plan.run.usd.value);
  EXPECT_EQ(fix.outcome->peak, after.plan.memory.at_peak.total());
}

TEST(Consistency, AFixDoesWhatItPromises) {
  RandomExperiments random(29);
  std::map<std::string, int> promised;  // by rule
  for (int i = 0; i < 160; ++i) {
    const Experiment e = random.next(random.one_of(std::array{"train", "serve"}));
    const Answer plan = answer(e);
    if (!plan.error.empty()) continue;
    const Fixes fixes = i % 8 == 0 ? Fixes::searched : Fixes::at_hand;
    const Diagnosis d = diagnose(e, catalogue(), {.plan = &plan.plan, .request = &plan.request}, fixes);
    for (const Diagnostic& found : d.found)
      for (const lint::Fix& fix : found.fixes) {
        if (!fix.outcome) continue;
        SCOPED_TRACE(found.problem.id + "\n" + e.text());
        Experiment edited = e;
        apply(edited, fix);
        expect_promise(fix, edited);
        expect_promise(fix, after_fix(e, fix));
        ++promised[found.problem.id];
        EXPECT_TRUE(found.problem.id != "MEMORY" || fix.outcome->fits);
        if (lint::is_refusal(found.problem.id, found.problem.severity)) {
          const Diagnosis after = diagnose(edited, catalogue());
          EXPECT_TRUE(std::none_of(after.found.begin(), after.found.end(), [&](const Diagnostic& other) {
            return other.problem.id == found.problem.id && other.problem.severity == Severity::error;
          }));
        }
      }
    if (testing::Test::HasFailure()) break;
  }
  for (const char* id : {"PAD-1", "MESH-2", "BATCH-1", "DTYPE-2", "SERVE-1", "SERVE-2", "SERVE-3", "TP-1"})
    EXPECT_GT(promised[id], 0) << id;
}

// Except for the axes of a mesh, which take the links of the target in their order.
TEST(Consistency, TheOrderOfKeysDoesNotMatter) {
  RandomExperiments random(30);
  for (int i = 0; i < 800; ++i) {
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
      if (section != "mesh") std::reverse(keys.begin(), keys.end());
      for (const auto& [key, value] : keys) reversed[section][key] = value;
    }
    const Answer a = answer(e), b = answer(Experiment::from_json(reversed));
    SCOPED_TRACE(e.text());
    EXPECT_EQ(a.error, b.error);
    EXPECT_DOUBLE_EQ(a.plan.step.seconds.value, b.plan.step.seconds.value);
    EXPECT_EQ(a.plan.memory.at_peak.total(), b.plan.memory.at_peak.total());
    EXPECT_EQ(a.plan.refusals.empty(), b.plan.refusals.empty());
    if (testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace mw::planning
