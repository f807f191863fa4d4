// SPDX-License-Identifier: Apache-2.0
#include "core/jobs/sweep_envelope.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/base/error.h"
#include "core/base/units.h"
#include "core/plan/search/search.h"
#include "core/planning/plan_request.h"
#include "core/serve/load/simulated_backend.h"
#include "core/serve/load/sweep.h"
#include "core/serve/load/sweep_settings.h"

namespace mw::jobs {
namespace {

constexpr int kLeastRepeats = 5;  // fewer give intervals that are too wide to be useful

bool has_rates(const serve::SweepSettings& settings) {
  return settings.load.arrival == options::Arrival::poisson || settings.load.arrival == options::Arrival::constant;
}

// Points are found by position, so that lengths and rates are ascending and without repetitions.
serve::SweepSettings envelope_settings(const experiment::Experiment& e) {
  serve::SweepSettings settings = serve::sweep_settings(e.config());
  if (!has_rates(settings))
    throw Error({.id = "ENVELOPE",
                 .message = "an envelope compares meshes by request rate",
                 .place = "sweep.arrival",
                 .found = std::string(to_string(settings.load.arrival)),
                 .expected = "poisson or constant"});
  const auto ascending = [](auto& values) {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
  };
  ascending(settings.request_rates);
  ascending(settings.input_lens);
  settings.repeats = std::max(settings.repeats, kLeastRepeats);
  return settings;
}

experiment::Experiment served(experiment::Experiment e) {
  e.set_value("kind", "serve");
  return e;
}

plan::Request on_mesh(plan::Request request, const mesh::Mesh& mesh) {
  if (!(request.mesh == mesh)) request.places.clear();
  request.mesh = mesh;
  return request;
}

// Empty: the server fits.
std::string refusal_of(const plan::Request& request, const serve::SchedulerSettings& scheduler) {
  try {
    const plan::Plan plan = plan::predict(request);
    if (!plan.refusals.empty()) return plan.refusals.front().message;
    if (!plan.fits())
      return "does not fit: " + to_text(plan.memory.at_peak.total()) + " of " + to_text(plan.memory.capacity);
    serve::make_cost_model_backend(request, scheduler);
    return {};
  } catch (const Error& error) {
    return error.problem().message;
  }
}

std::string name_of(const mesh::Mesh& mesh, int replicas) {
  return (replicas > 1 ? std::to_string(replicas) + " replicas, " : std::string()) + mesh::to_text(mesh);
}

// One server of each size: all devices of the target, half of them, and so on, as far as the catalogue has such
// targets.
struct Servers {
  plan::Request request;
  int replicas = 1;
};
std::vector<Servers> servers_of(const experiment::Experiment& e, const plan::Request& request,
                                const plan::PlanContext& context) {
  std::vector<Servers> out{{request, 1}};
  const std::vector<std::string> ids = context.catalogue.target_ids();
  const int devices = request.target.devices();
  for (int replicas = 2; replicas <= devices; ++replicas) {
    if (devices % replicas != 0) continue;
    const auto id = std::find_if(ids.begin(), ids.end(), [&](const std::string& t) {
      const hardware::Target target = context.catalogue.target(t);
      return target.chip.id == request.target.chip.id && target.devices() * replicas == devices;
    });
    if (id == ids.end()) continue;
    experiment::Experiment smaller = e;
    smaller.set_value("target.id", *id);
    for (const mesh::MeshAxis& axis : request.mesh.axes) smaller.erase("mesh." + axis.name);
    Servers servers{planning::plan_request(smaller, context), replicas};
    servers.request.mesh = request.mesh;  // names the axes of its legal meshes
    out.push_back(std::move(servers));
  }
  return out;
}

struct Candidate {
  plan::Request request;  // of one server
  EnvelopeMesh mesh;
};
std::vector<Candidate> candidates_of(const experiment::Experiment& e, const plan::Request& request,
                                     const serve::SchedulerSettings& scheduler, const plan::PlanContext& context) {
  std::vector<Candidate> out;
  for (const Servers& servers : servers_of(e, request, context))
    for (const mesh::Mesh& mesh : plan::legal_meshes(servers.request)) {
      plan::Request one = on_mesh(servers.request, mesh);
      EnvelopeMesh entry{.mesh = mesh,
                         .replicas = servers.replicas,
                         .target = servers.request.target.id,
                         .name = name_of(mesh, servers.replicas),
                         .refusal = refusal_of(one, scheduler)};
      out.push_back({std::move(one), std::move(entry)});
    }
  return out;
}

std::vector<EnvelopeMesh> meshes_of(const std::vector<Candidate>& candidates) {
  std::vector<EnvelopeMesh> out;
  for (const Candidate& c : candidates) out.push_back(c.mesh);
  return out;
}

void require_one_that_fits(const std::vector<Candidate>& candidates) {
  const bool any =
      std::any_of(candidates.begin(), candidates.end(), [](const Candidate& c) { return c.mesh.refusal.empty(); });
  if (!any)
    throw Error({.id = "ENVELOPE",
                 .message = "the server fits on no mesh of the target",
                 .place = "target.id",
                 .found = candidates.empty() ? "no legal mesh"
                                             : candidates.front().mesh.name + ": " + candidates.front().mesh.refusal,
                 .expected = "a target with more memory"});
}

std::unique_ptr<serve::LoadBackend> backend_of(const Candidate& c, const serve::SchedulerSettings& scheduler) {
  return serve::make_cost_model_backend(c.request, scheduler,
                                        {.count = c.mesh.replicas, .routing = options::Routing::round_robin});
}

plan::Request request_of(const experiment::Experiment& e, const plan::PlanContext& context) {
  const hardware::Target target = context.catalogue.target(e.config().target.id);
  if (target.chip.vendor == hardware::Vendor::cpu)
    throw Error({.id = "TARGET",
                 .message = "meshes of this machine are virtual and do not serve",
                 .place = "target.id",
                 .found = target.id,
                 .expected = "a TPU slice or GPUs, such as v6e-8 or 8xh100",
                 .fix = "set target.id, e.g. --set target.id=v6e-8"});
  return planning::plan_request(e, context);
}

using Differences = std::vector<double>;  // of two meshes, by repeat

Differences differences(const EnvelopeRuns& runs, EnvelopeMetric metric, size_t len, size_t rate, size_t a, size_t b) {
  Differences out;
  for (int r = 0; r < runs.repeats; ++r)
    out.push_back(value_ms(runs.point(a, len, rate, r), metric) - value_ms(runs.point(b, len, rate, r), metric));
  return out;
}

EnvelopePoint point_of(const EnvelopeRuns& runs, EnvelopeMetric metric, size_t len, size_t rate) {
  EnvelopePoint out{.rate = runs.rates[rate], .meshes = {}, .overloaded = {}, .best = 0, .is_clear = true};
  bool any = false;
  for (size_t m = 0; m < runs.meshes.size(); ++m) {
    if (!runs.meshes[m].refusal.empty()) {
      out.meshes.push_back({formats::kUnknown, formats::kUnknown, formats::kUnknown});
      out.overloaded.push_back(false);
      continue;
    }
    std::vector<double> values;
    int overloaded = 0;
    for (int r = 0; r < runs.repeats; ++r) {
      const formats::BenchPoint& point = runs.point(m, len, rate, r);
      values.push_back(value_ms(point, metric));
      overloaded += point.verdict == "overloaded";
    }
    out.meshes.push_back(serve::mean_interval(values));
    out.overloaded.push_back(2 * overloaded > runs.repeats);
    if (!any || std::isnan(out.meshes[out.best].mean) || out.meshes[m].mean < out.meshes[out.best].mean) out.best = m;
    any = true;
  }
  for (size_t m = 0; m < runs.meshes.size(); ++m)
    if (m != out.best && runs.meshes[m].refusal.empty() &&
        !(serve::mean_interval(differences(runs, metric, len, rate, m, out.best)).low > 0))
      out.is_clear = false;
  return out;
}

// Where the straight line from (x0, y0) to (x1, y1), whose ends have different signs, is zero.
double zero_of(double x0, double y0, double x1, double y1) {
  return x0 + (x1 - x0) * y0 / (y0 - y1);
}

// The difference of two meshes by the logarithm of the rate, negative where the first one is better.
class PairedDifference {
 public:
  PairedDifference(const EnvelopeRuns& runs, EnvelopeMetric metric, size_t len, size_t a, size_t b) {
    for (size_t i = 0; i < runs.rates.size() && std::isfinite(runs.rates[i]); ++i) {
      x_.push_back(std::log(runs.rates[i]));
      y_.push_back(serve::mean_interval(differences(runs, metric, len, i, a, b)));
    }
  }
  // Between the points i and i + 1, where the mean changes its sign.
  double zero(size_t i) const { return zero_of(x_[i], y_[i].mean, x_[i + 1], y_[i + 1].mean); }
  // The last place before point i + 1 where the first mesh is surely better.
  double sure_until(size_t i) const {
    for (size_t k = i + 1; k-- > 0;)
      if (y_[k].high < 0) return zero_of(x_[k], y_[k].high, x_[k + 1], y_[k + 1].high);
    return x_.front();
  }
  // The first place after point i where the second mesh is surely better.
  double sure_from(size_t i) const {
    for (size_t k = i + 1; k < x_.size(); ++k)
      if (y_[k].low > 0) return zero_of(x_[k - 1], y_[k - 1].low, x_[k], y_[k].low);
    return x_.back();
  }

 private:
  std::vector<double> x_;
  std::vector<serve::MeanInterval> y_;
};

std::vector<Crossover> crossovers_of(const EnvelopeRuns& runs, EnvelopeMetric metric, size_t len,
                                     const std::vector<EnvelopePoint>& points) {
  std::vector<Crossover> out;
  for (size_t i = 0; i + 1 < points.size() && std::isfinite(points[i + 1].rate); ++i) {
    const size_t from = points[i].best, to = points[i + 1].best;
    if (from == to) continue;
    const PairedDifference difference(runs, metric, len, from, to);
    out.push_back({.from = from,
                   .to = to,
                   .rate = std::exp(difference.zero(i)),
                   .low = std::exp(difference.sure_until(i)),
                   .high = std::exp(difference.sure_from(i))});
  }
  return out;
}

Json mesh_json(const EnvelopeMesh& mesh) {
  Json sizes = Json::object();
  for (const mesh::MeshAxis& axis : mesh.mesh.axes) sizes[axis.name] = axis.size;
  Json out{{"mesh", sizes},
           {"replicas", mesh.replicas},
           {"target", mesh.target},
           {"name", mesh.name},
           {"simulated", mesh.refusal.empty()}};
  if (!mesh.refusal.empty()) out["refusal"] = mesh.refusal;
  return out;
}

Json number_json(double value) {
  return std::isfinite(value) ? Json(value) : std::isinf(value) && value > 0 ? Json("inf") : Json(nullptr);
}

Json point_json(const EnvelopeRuns& runs, const EnvelopePoint& point) {
  Json meshes = Json::array();
  for (size_t m = 0; m < runs.meshes.size(); ++m)
    if (runs.meshes[m].refusal.empty())
      meshes.push_back({{"name", runs.meshes[m].name},
                        {"ms", number_json(point.meshes[m].mean)},
                        {"ms_low", number_json(point.meshes[m].low)},
                        {"ms_high", number_json(point.meshes[m].high)},
                        {"overloaded", static_cast<bool>(point.overloaded[m])}});
  return {{"request_rate", number_json(point.rate)},
          {"best", runs.meshes[point.best].name},
          {"clear", point.is_clear},
          {"meshes", std::move(meshes)}};
}

std::string rate_text(double rate) {
  return std::isinf(rate) ? "at once" : number_text(rate, 3);
}

}  // namespace

double percentile_of(EnvelopeMetric metric) {
  return metric == EnvelopeMetric::p99_ttft || metric == EnvelopeMetric::p99_tpot || metric == EnvelopeMetric::p99_e2el
             ? 99
             : 50;
}

double value_ms(const formats::BenchPoint& point, EnvelopeMetric metric) {
  const bool of_ttft = metric == EnvelopeMetric::median_ttft || metric == EnvelopeMetric::p99_ttft;
  const bool of_tpot = metric == EnvelopeMetric::median_tpot || metric == EnvelopeMetric::p99_tpot;
  return (of_ttft ? point.ttft : of_tpot ? point.tpot : point.e2el).percentile(percentile_of(metric));
}

const formats::BenchPoint& EnvelopeRuns::point(size_t mesh, size_t len, size_t rate, int repeat) const {
  return points[mesh][(len * rates.size() + rate) * static_cast<size_t>(repeats) + static_cast<size_t>(repeat)];
}

EnvelopePlan envelope_plan(const experiment::Experiment& given, const plan::PlanContext& context) {
  const experiment::Experiment e = served(given);
  const plan::Request request = request_of(e, context);
  const serve::SweepSettings settings = envelope_settings(e);
  const auto candidates = candidates_of(e, request, serve::scheduler_settings(e.config().serve), context);
  require_one_that_fits(candidates);
  return {.repeats = settings.repeats,
          .requests = settings.fewest_prompts(),
          .target = request.target.id,
          .meshes = meshes_of(candidates)};
}

std::string envelope_note(const EnvelopePlan& plan) {
  const auto simulated =
      std::count_if(plan.meshes.begin(), plan.meshes.end(), [](const auto& m) { return m.refusal.empty(); });
  return std::to_string(simulated) + " of " + std::to_string(plan.meshes.size()) + " meshes and replicas of " +
         plan.target + ", each load " + std::to_string(plan.repeats) + " times. " +
         serve::percentile_text(99, plan.requests) + ".";
}

EnvelopeRuns simulate_envelope(const experiment::Experiment& given, const plan::PlanContext& context,
                               const EnvelopeProgress& progress, const std::stop_token& stop) {
  const experiment::Experiment e = served(given);
  const plan::Request request = request_of(e, context);
  const serve::SweepSettings settings = envelope_settings(e);
  const serve::SchedulerSettings scheduler = serve::scheduler_settings(e.config().serve);
  const std::vector<Candidate> candidates = candidates_of(e, request, scheduler, context);
  require_one_that_fits(candidates);
  EnvelopeRuns runs{.target = request.target.id,
                    .meshes = meshes_of(candidates),
                    .repeats = settings.repeats,
                    .requests = settings.fewest_prompts(),
                    .input_lens = settings.input_lens,
                    .rates = settings.request_rates,
                    .points = {}};
  long each = 0;
  for (const int input_len : runs.input_lens)
    each += static_cast<long>(runs.rates.size()) * runs.repeats * settings.num_prompts(input_len);
  long done = 0;
  runs.points.resize(runs.meshes.size());
  const long simulated =
      std::count_if(runs.meshes.begin(), runs.meshes.end(), [](const auto& m) { return m.refusal.empty(); });
  for (size_t m = 0; m < runs.meshes.size(); ++m) {
    if (!runs.meshes[m].refusal.empty()) continue;
    const auto backend = backend_of(candidates[m], scheduler);
    const serve::SweepCallbacks callbacks{.point =
                                              [&](formats::BenchPoint point) {
                                                point.requests.clear();
                                                point.timeline.clear();
                                                point.steps.clear();
                                                runs.points[m].push_back(std::move(point));
                                              },
                                          .progress =
                                              [&](const std::string& phase, long requests, long) {
                                                if (progress)
                                                  progress(runs.meshes[m].name + ", " + phase, done + requests,
                                                           simulated * each);
                                              }};
    if (!serve::run_sweep(settings, *backend, {}, callbacks, stop)) throw cancelled("the envelope");
    done += each;
  }
  return runs;
}

std::vector<EnvelopeLine> envelope(const EnvelopeRuns& runs, EnvelopeMetric metric) {
  std::vector<EnvelopeLine> lines;
  for (size_t len = 0; len < runs.input_lens.size(); ++len) {
    EnvelopeLine line{.input_len = runs.input_lens[len], .points = {}, .crossovers = {}};
    for (size_t rate = 0; rate < runs.rates.size(); ++rate) line.points.push_back(point_of(runs, metric, len, rate));
    line.crossovers = crossovers_of(runs, metric, len, line.points);
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string crossover_text(const EnvelopeRuns& runs, const Crossover& crossover) {
  return "from " + runs.meshes[crossover.from].name + " to " + runs.meshes[crossover.to].name + " at " +
         number_text(crossover.rate, 3) + " requests/s (" + number_text(crossover.low, 3) + " to " +
         number_text(crossover.high, 3) + ")";
}

Json envelope_json(const EnvelopeRuns& runs, EnvelopeMetric metric) {
  const double p = percentile_of(metric);
  const serve::RankInterval ranks = serve::rank_interval(p, runs.requests);
  Json meshes = Json::array(), lengths = Json::array();
  for (const EnvelopeMesh& mesh : runs.meshes) meshes.push_back(mesh_json(mesh));
  for (const EnvelopeLine& line : envelope(runs, metric)) {
    Json points = Json::array(), crossovers = Json::array();
    for (const EnvelopePoint& point : line.points) points.push_back(point_json(runs, point));
    for (const Crossover& c : line.crossovers)
      crossovers.push_back({{"from", runs.meshes[c.from].name},
                            {"to", runs.meshes[c.to].name},
                            {"request_rate", c.rate},
                            {"low", c.low},
                            {"high", c.high}});
    lengths.push_back({{"input_len", line.input_len}, {"points", points}, {"crossovers", crossovers}});
  }
  return {{"target", runs.target},
          {"source", "predicted"},
          {"metric", to_string(metric)},
          {"confidence", serve::kConfidence},
          {"repeats", runs.repeats},
          {"percentile",
           {{"p", p},
            {"requests", runs.requests},
            {"rank_low", ranks.low ? Json(*ranks.low) : Json(nullptr)},
            {"rank_high", ranks.high ? Json(*ranks.high) : Json(nullptr)},
            {"needed", serve::samples_needed(p)}}},
          {"meshes", std::move(meshes)},
          {"lengths", std::move(lengths)}};
}

std::string envelope_text(const EnvelopeRuns& runs, EnvelopeMetric metric) {
  std::string out;
  char row[256];
  for (const EnvelopeMesh& mesh : runs.meshes)
    if (!mesh.refusal.empty()) out += mesh.name + " is not simulated: " + mesh.refusal + "\n";
  for (const EnvelopeLine& line : envelope(runs, metric)) {
    out += "\n" + std::to_string(line.input_len) + " prompt tokens, " + std::string(to_string(metric)) +
           " in ms with 95 % intervals, predicted\n";
    std::snprintf(row, sizeof row, "%10s  %-20s", "rate", "best mesh");
    out += row;
    for (const EnvelopeMesh& mesh : runs.meshes)
      if (mesh.refusal.empty()) {
        std::snprintf(row, sizeof row, " %26s", mesh.name.c_str());
        out += row;
      }
    out += "\n";
    for (const EnvelopePoint& point : line.points) {
      const std::string best = runs.meshes[point.best].name + (point.is_clear ? "" : " (not clear)");
      std::snprintf(row, sizeof row, "%10s  %-20s", rate_text(point.rate).c_str(), best.c_str());
      out += row;
      for (size_t m = 0; m < runs.meshes.size(); ++m) {
        if (!runs.meshes[m].refusal.empty()) continue;
        const serve::MeanInterval& i = point.meshes[m];
        const std::string text = number_text(i.mean, 4) + " (" + number_text(i.low, 3) + " to " +
                                 number_text(i.high, 3) + ")" + (point.overloaded[m] ? "!" : " ");
        std::snprintf(row, sizeof row, " %26s", text.c_str());
        out += row;
      }
      out += "\n";
    }
    for (const Crossover& crossover : line.crossovers)
      out += "best mesh changes " + crossover_text(runs, crossover) + "\n";
    if (line.crossovers.empty()) out += "one mesh is the best at every finite rate\n";
  }
  return out + "\n!: overloaded. not clear: another mesh may be as good at 95 % confidence.\n";
}

}  // namespace mw::jobs
