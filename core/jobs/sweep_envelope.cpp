// SPDX-License-Identifier: Apache-2.0
#include "core/jobs/sweep_envelope.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <thread>

#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/plan/document/diagnostics.h"
#include "core/plan/experiment/serving_search.h"
#include "core/serve/load/sweep.h"

namespace mw::jobs {
namespace {

constexpr int kLeastRepeats = 5;  // fewer give intervals that are too wide to be useful

// The document with the sweep that every mesh gets.
experiment::Experiment repeated(experiment::Experiment e) {
  e.set_value("kind", "serve");
  e.set_value("sweep.backend", "model");
  const options::Sweep sweep = e.config().sweep;
  if (sweep.arrival != options::Arrival::poisson && sweep.arrival != options::Arrival::constant)
    throw Error(
        "ENVELOPE", "an envelope compares meshes by request rate",
        {.place = "sweep.arrival", .found = std::string(to_string(sweep.arrival)), .expected = "poisson or constant"});
  e.set_value("sweep.repeats", std::max(sweep.repeats, kLeastRepeats));
  return e;
}

std::vector<plan::ServingCell> cells_of(const experiment::Experiment& e, const plan::PlanContext& context) {
  const hardware::Target target = context.catalogue.target(e.config().target.id);
  if (target.chip.vendor == hardware::Vendor::cpu)
    throw Error("TARGET", "meshes of this machine are virtual and do not serve",
                {.place = "target.id",
                 .found = target.id,
                 .expected = "a TPU slice or GPUs, such as v6e-8 or 8xh100",
                 .fix = "set target.id, e.g. --set target.id=v6e-8"});
  std::vector<plan::ServingCell> cells = plan::serving_meshes(e, context);
  if (std::none_of(cells.begin(), cells.end(), [](const auto& cell) { return cell.refusal.empty(); }))
    throw Error("ENVELOPE", "the server fits on no mesh of the target",
                {.place = "target.id",
                 .found = cells.empty() ? "no legal mesh"
                                        : mesh::to_text(cells.front().choice.mesh) + ": " + cells.front().refusal,
                 .expected = "a target with more memory"});
  return cells;
}

std::vector<EnvelopeMesh> meshes_of(const std::vector<plan::ServingCell>& cells) {
  std::vector<EnvelopeMesh> out;
  for (const plan::ServingCell& cell : cells) {
    const plan::PlanChoice& c = cell.choice;
    out.push_back({.mesh = c.mesh,
                   .replicas = c.replicas,
                   .target = c.target,
                   .name = (c.replicas > 1 ? counted(c.replicas, "replica") + ", " : "") + mesh::to_text(c.mesh),
                   .refusal = cell.refusal,
                   .edits = cell.edits});
  }
  return out;
}

template <class T>
std::vector<T> ascending(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return values;
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

Json mesh_json(const EnvelopeMesh& mesh, const std::vector<formats::BenchPoint>& of_mesh) {
  Json sizes = Json::object(), points = Json::array();
  for (const formats::BenchPoint& p : of_mesh) points.push_back(formats::to_json(p, formats::Detail::summary));
  for (const mesh::MeshAxis& axis : mesh.mesh.axes) sizes[axis.name] = axis.size;
  Json out{{"mesh", sizes},
           {"replicas", mesh.replicas},
           {"target", mesh.target},
           {"name", mesh.name},
           {"simulated", mesh.refusal.empty()},
           {"set", plan::sets_json(mesh.edits)},
           {"points", std::move(points)}};
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
  const experiment::Experiment e = repeated(given);
  const serve::SweepSettings sweep = serve::sweep_settings(e.config());
  return {.repeats = sweep.repeats,
          .requests = sweep.fewest_prompts(),
          .target = e.config().target.id,
          .meshes = meshes_of(cells_of(e, context))};
}

std::string envelope_note(const EnvelopePlan& plan) {
  const auto simulated =
      std::count_if(plan.meshes.begin(), plan.meshes.end(), [](const auto& m) { return m.refusal.empty(); });
  return std::to_string(simulated) + " of " + counted(plan.meshes.size(), "mesh") + " and replicas of " + plan.target +
         ", each load " + counted(plan.repeats, "time") + ". " + serve::percentile_text(99, plan.requests) + ".";
}

EnvelopeRuns simulate_envelope(const experiment::Experiment& given, const plan::PlanContext& context,
                               const EnvelopeProgress& progress, const std::stop_token& stop) {
  const experiment::Experiment e = repeated(given);
  const serve::SweepSettings sweep = serve::sweep_settings(e.config());
  std::vector<plan::ServingCell> cells = cells_of(e, context);
  const plan::SearchOptions options{.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency())),
                                    .progress = progress};
  plan::simulate(cells, e, context, options, stop);
  EnvelopeRuns runs{.target = e.config().target.id,
                    .meshes = meshes_of(cells),
                    .repeats = sweep.repeats,
                    .requests = sweep.fewest_prompts(),
                    .input_lens = ascending(sweep.input_lens),
                    .rates = ascending(sweep.request_rates),
                    .points = {}};
  for (plan::ServingCell& cell : cells) {
    std::stable_sort(cell.points.begin(), cell.points.end(), [](const auto& a, const auto& b) {
      return std::pair(a.input_len, a.request_rate) < std::pair(b.input_len, b.request_rate);
    });
    runs.points.push_back(std::move(cell.points));
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
  for (size_t m = 0; m < runs.meshes.size(); ++m) meshes.push_back(mesh_json(runs.meshes[m], runs.points[m]));
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
