// SPDX-License-Identifier: Apache-2.0
// Simulates the sweep of an experiment on every mesh of its target, and on replicas on equal parts of it: which is best
// at each load, and where the best one changes. All meshes serve the same loads with the same seeds, so that their
// differences are paired. Every number is predicted. Thread-safe.
#pragma once
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/experiment/experiment.h"
#include "core/formats/results/bench_result.h"
#include "core/lint/check.h"
#include "core/mesh/layout/mesh.h"
#include "core/plan/calibration/plan_context.h"
#include "core/serve/load/saturation.h"

namespace mw::jobs {

using mw::to_string;

enum class EnvelopeMetric { median_ttft, p99_ttft, median_tpot, p99_tpot, median_e2el, p99_e2el };
double percentile_of(EnvelopeMetric metric);  // 50 or 99
double value_ms(const formats::BenchPoint& point, EnvelopeMetric metric);

struct EnvelopeMesh {
  mesh::Mesh mesh;      // of one server
  int replicas = 1;     // equal servers, each on its part of the devices; requests go to them in turn
  std::string target;   // of one server: "v6e-4"
  std::string name;     // "tp 8", "2 replicas, tp 4"
  std::string refusal;  // why it is not simulated; empty: it is
  std::vector<lint::Edit>
      edits{};  // of the document, whose sweep with the envelope's repeats has the points of the mesh
};
struct EnvelopeRuns {
  std::string target;
  std::vector<EnvelopeMesh> meshes;
  int repeats = 0;                                       // of every load
  long requests = 0;                                     // of one load, the fewest of any length
  std::vector<int> input_lens;                           // tokens
  std::vector<double> rates;                             // requests/s, ascending; infinity: all at once
  std::vector<std::vector<formats::BenchPoint>> points;  // by mesh: lengths x rates x repeats, without requests; each
                                                         // is a point of the mesh's sweep
  const formats::BenchPoint& point(size_t mesh, size_t len, size_t rate, int repeat) const;
};

// The settings and meshes to simulate. `sweep.repeats` below five counts as five.
struct EnvelopePlan {
  int repeats = 0;
  long requests = 0;  // of one load, the fewest of any length
  std::string target;
  std::vector<EnvelopeMesh> meshes;
};
// Throws Error for this machine as the target, and for a load without request rates.
EnvelopePlan envelope_plan(const experiment::Experiment& experiment, const plan::PlanContext& context);
// "2 of 3 meshes and replicas of v6e-8, each load 5 times. p99 of 30 requests ...": to be shown before the sweep.
std::string envelope_note(const EnvelopePlan& plan);

using EnvelopeProgress = std::function<void(std::int64_t done, std::int64_t total)>;  // requests
// Throws cancelled() after a stop.
EnvelopeRuns simulate_envelope(const experiment::Experiment& experiment, const plan::PlanContext& context,
                               const EnvelopeProgress& progress, const std::stop_token& stop);

struct EnvelopePoint {
  double rate = 0;
  std::vector<serve::MeanInterval> meshes;  // ms, over the repeats; by mesh, those that are not simulated are NaN
  std::vector<bool> overloaded;             // by mesh: in most repeats
  size_t best = 0;
  bool is_clear = false;  // paired differences to every other mesh exclude 0 at 95 % confidence
};
struct Crossover {  // between two rates, where the best mesh changes
  size_t from = 0, to = 0;
  double rate = 0;           // requests/s; interpolated in the logarithm of the rate
  double low = 0, high = 0;  // where the paired difference does not exclude 0; limited to the simulated rates
};
struct EnvelopeLine {
  int input_len = 0;
  std::vector<EnvelopePoint> points;
  std::vector<Crossover> crossovers;
};
std::vector<EnvelopeLine> envelope(const EnvelopeRuns& runs, EnvelopeMetric metric);

Json envelope_json(const EnvelopeRuns& runs, EnvelopeMetric metric);
std::string envelope_text(const EnvelopeRuns& runs, EnvelopeMetric metric);
std::string crossover_text(const EnvelopeRuns& runs,
                           const Crossover& crossover);  // "fsdp 2, tp 4 up to 6.1 (5.2 to 7.3) ..."

}  // namespace mw::jobs

template <>
inline constexpr mw::EnumNames<6> mw::kEnumNames<mw::jobs::EnvelopeMetric>{"median_ttft", "p99_ttft",    "median_tpot",
                                                                           "p99_tpot",    "median_e2el", "p99_e2el"};
