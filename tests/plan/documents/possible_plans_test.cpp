// SPDX-License-Identifier: GPL-3.0-or-later
// No plan is physically impossible: `audit` finds no impossible number in the predictions of random experiments.
// MW_RANDOM_EXPERIMENTS sets their number, MW_RANDOM_SEED the first of them (scripts/random-plans.sh).
#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "core/audit/training_audit.h"
#include "core/plan/document/plan_request.h"
#include "core/serve/load/load_statistics.h"
#include "core/serve/load/simulated_backend.h"
#include "tests/base/instrumented.h"
#include "tests/plan/documents/random_experiments.h"
#include "tests/random_inputs.h"

namespace mw::plan {
namespace {

using audit::AuditFinding;
using audit::Verdict;
using plan::Estimate;
using plan::Work;
using test::context;
using test::RandomExperiments;

audit::AuditReference reference_of(const plan::Request& r) {
  return {.model = r.model,
          .target = r.target,
          .weight_bytes = static_cast<double>(plan::bytes_of(r.weights)),
          .kv_bytes = static_cast<double>(plan::bytes_of(r.kv))};
}

audit::TrainingClaim claim_of(const plan::Request& r, const plan::Plan& p) {
  audit::TrainingClaim claim{.model = r.model.id,
                             .target = r.target.id,
                             .dtype = std::string(r.products == model::DType::fp8 ? "fp8" : to_string(r.weights)),
                             .method = r.method,
                             .batch = static_cast<double>(r.train.batch),
                             .accumulation = static_cast<double>(r.train.accumulation),
                             .max_len = static_cast<double>(r.lengths.max_len),
                             .steps = static_cast<double>(p.run.steps),
                             .seconds_per_step = p.step.seconds.value,
                             .seconds = 3600 * p.run.hours.value,
                             .tokens_per_second = p.run.tokens_per_second,
                             .padded_tokens_per_second = p.run.padded_tokens_per_second};
  if (!p.run.utilisation.empty()) {
    claim.mfu = p.run.utilisation.front().share;
    claim.mfu_formula = p.run.utilisation.front().name;
  }
  if (p.memory.fits()) claim.peak_bytes = static_cast<double>(p.memory.at_peak.total().value);
  if (p.run.usd_per_hour > 0) {
    claim.usd = p.run.usd.value;
    claim.usd_per_hour = p.run.usd_per_hour;
  }
  return claim;
}

formats::BenchSet served_set(const plan::Request& r, std::vector<formats::BenchPoint> points) {
  formats::BenchSet set{.name = "predicted", .points = std::move(points)};
  set.conditions = {{"tp", std::to_string(r.mesh.size("tp"))},
                    {"prefix_cache", "off"},
                    {"max_model_len", std::to_string(r.serve.max_model_len)}};
  return set;
}

// The figures of the plan: of an idle server, of a step that only decodes, and under load.
formats::BenchSet served_set(const plan::Request& r, const plan::ServeNumbers& n) {
  const auto point = [&](double tpot_s, double tokens_per_s) {
    formats::BenchPoint p;
    p.input_len = r.serve.input_len;
    p.output_len = r.serve.output_len;
    p.tpot.median = 1e3 * tpot_s;
    p.output_throughput = tokens_per_s;
    p.prefix_hits = 0;  // of no prefix cache
    return p;
  };
  formats::BenchPoint idle = point(formats::kUnknown, formats::kUnknown);
  idle.ttft.median = 1e3 * n.ttft.value;
  std::vector<formats::BenchPoint> points{idle, point(n.decode_step.value, n.running / n.decode_step.value)};
  if (r.serve.output_len > 1) points.push_back(point(n.tpot.value, n.output_tokens_per_second));
  return served_set(r, std::move(points));
}

// Two loads on the simulated server: all requests at once, and one user.
formats::BenchSet simulated_set(const plan::Request& r) {
  const auto backend = serve::make_cost_model_backend(r, {.max_num_seqs = r.serve.max_num_seqs,
                                                          .max_num_batched_tokens = r.serve.max_num_batched_tokens,
                                                          .max_model_len = r.serve.max_model_len,
                                                          .prefix_cache = serve::PrefixCache::off,
                                                          .kv = {}});
  std::vector<formats::BenchPoint> points;
  for (const int users : {24, 1}) {
    const serve::Load load = serve::make_load({.arrival = options::Arrival::closed,
                                               .concurrency = users,
                                               .input_len = r.serve.input_len,
                                               .output_len = r.serve.output_len,
                                               .num_prompts = users == 1 ? 2 : users});
    points.push_back(serve::summarise(load, backend->run(load, {}, {}), {}));
  }
  return served_set(r, std::move(points));
}

// Of rollouts and forwards only the rate of all tokens.
formats::BenchSet sized_set(const plan::Request& r, const plan::Plan& p) {
  formats::BenchPoint point;
  point.total_token_throughput =
      r.work == Work::forward
          ? p.run.padded_tokens_per_second
          : static_cast<double>(r.rollout.batch) * (r.rollout.prompt + r.rollout.new_tokens) / p.step.seconds.value;
  point.prefix_hits = 0;
  formats::BenchSet set = served_set(r, {point});
  if (p.serve) {
    formats::BenchPoint decode;
    decode.input_len = r.rollout.prompt;
    decode.tpot.median = 1e3 * p.serve->decode_step.value;
    decode.output_throughput = static_cast<double>(r.rollout.batch) / p.serve->decode_step.value;
    set.points.push_back(decode);
  }
  set.conditions.clear();
  return set;
}

// Of dense models the floor of a decode step with several requests is one of physics, too; of experts it is an
// expectation.
bool is_impossible(const AuditFinding& f, const plan::Request& r) {
  return f.verdict == Verdict::impossible || (f.rule == "FLOOR-DECODE" && r.model.experts == 0);
}

std::string wrong_estimates(const plan::Plan& p) {
  std::string wrong;
  const auto check = [&](const char* name, const Estimate& e) {
    const double slack = 1e-9 * std::abs(e.value);
    if (!(std::isfinite(e.value) && e.value >= 0 && e.low <= e.value + slack && e.value <= e.high + slack))
      wrong += std::string(name) + ": " + std::to_string(e.low) + ", " + std::to_string(e.value) + ", " +
               std::to_string(e.high) + "\n";
  };
  check("step", p.step.seconds);
  check("compute", p.step.compute);
  check("memory", p.step.memory);
  check("communication", p.step.communication);
  check("hours", p.run.hours);
  check("peak", p.memory.total);
  if (p.serve) check("ttft", p.serve->ttft), check("decode step", p.serve->decode_step), check("tpot", p.serve->tpot);
  if (!(p.step.seconds.value > 0)) wrong += "a step takes no time\n";
  if (p.run.real_share <= 0 || p.run.real_share > 1 + 1e-9) wrong += "real share " + std::to_string(p.run.real_share);
  return wrong;
}

std::string impossible_numbers(const plan::Request& r, const plan::Plan& p, bool simulates) {
  std::string out = wrong_estimates(p);
  std::vector<AuditFinding> findings;
  const auto take = [&](std::vector<AuditFinding> more) { findings.insert(findings.end(), more.begin(), more.end()); };
  if (r.work == Work::train) {
    take(audit::audit(claim_of(r, p), reference_of(r)).findings);
  } else if (r.work == Work::serve) {
    take(audit::audit(served_set(r, *p.serve), reference_of(r)));
    if (simulates && p.fits()) take(audit::audit(simulated_set(r), reference_of(r)));
  } else {
    take(audit::audit(sized_set(r, p), reference_of(r)));
  }
  for (const AuditFinding& f : findings)
    if (is_impossible(f, r)) out += f.rule + " " + f.metric + ": " + f.text + " = " + f.formula + "\n";
  return out;
}

// The plan of the experiment; empty if it cannot be planned or is refused.
std::optional<std::pair<plan::Request, plan::Plan>> planned_for_audit(const experiment::Experiment& e) {
  try {
    plan::Request request = plan_request(e, context());
    const experiment::BoundExperiment config = e.config();
    if (config.kind == experiment::Kind::size)
      request = with_case(std::move(request), config.size, size_cases(config.size).front());
    plan::Plan plan = plan::predict(request);
    if (!plan.refusals.empty()) return std::nullopt;
    return std::pair(std::move(request), std::move(plan));
  } catch (const Error&) {
    return std::nullopt;
  }
}

TEST(PossiblePlans, AuditFindsNoImpossibleNumber) {
  constexpr long kSimulated = 8;  // one in this many servers is simulated, too
  const long wanted = test::environment_number("MW_RANDOM_EXPERIMENTS", test::kInstrumented ? 200 : 3000);
  RandomExperiments random(static_cast<std::uint64_t>(test::environment_number("MW_RANDOM_SEED", 32)));
  std::map<std::string, long> planned;
  long refused = 0, impossible = 0;
  for (long i = 0; i < wanted; ++i) {
    const experiment::Experiment e = random.next_of_everything(random.one_of(std::array{"train", "serve", "size"}));
    const auto plan = planned_for_audit(e);
    if (!plan) {
      ++refused;
      continue;
    }
    const std::string wrong = impossible_numbers(plan->first, plan->second, i % kSimulated == 0);
    ++planned[std::string(e.value("kind").get<std::string>())];
    if (!wrong.empty() && ++impossible <= 20) ADD_FAILURE() << wrong << e.text();
  }
  for (const auto& [kind, count] : planned) RecordProperty(kind, std::to_string(count));
  RecordProperty("refused", std::to_string(refused));
  std::printf("%ld experiments: %ld trainings, %ld servers and %ld sizes planned, %ld refused; %ld impossible\n",
              wanted, planned["train"], planned["serve"], planned["size"], refused, impossible);
  EXPECT_EQ(impossible, 0);
  for (const char* kind : {"train", "serve", "size"}) EXPECT_GT(planned[kind], wanted / 20) << kind;
}

}  // namespace
}  // namespace mw::plan
