// SPDX-License-Identifier: Apache-2.0
#include "core/plan/calibration/calibrate.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/counted.h"
#include "core/base/text.h"
#include "core/model/inventory.h"

namespace mw::plan {
namespace {

const Efficiencies::Named& named(const std::string& name) {
  std::vector<std::string> all;
  for (const auto& n : Efficiencies::names()) {
    if (n.name == name) return n;
    all.emplace_back(n.name);
  }
  throw Error("CALIBRATION", "no such efficiency",
              {.place = "names", .found = name, .expected = nearest_names_text(name, all)});
}

bool is_share(std::string_view name) {
  return name == "matmul" || name == "experts" || name == "fp8" || name == "attention" || name == "memory" ||
         name == "collectives" || name == "kv_reads" || name == "triton_reads" || name == "sampling" ||
         name.starts_with("overlap");
}

// The value of an efficiency after calibration. A share that is 0 by default cannot be scaled; its complement is.
double scaled(std::string_view name, double before, double factor) {
  if (before == 0 && is_share(name)) return std::clamp(1 - factor, 0.0, 1.0);
  return is_share(name) ? std::min(1.0, before * factor) : before * factor;
}

struct Bounds {
  double low, high, trust;
};
// Fixed costs of software vary more between versions than shares of a chip's peaks.
Bounds bounds_of(const FitOptions& options, std::string_view name) {
  if (!is_share(name) && name != "kernel_s") return {options.shortest / 4, options.longest * 4, options.trust * 4};
  return {options.shortest, options.longest, options.trust};
}

void scale(Efficiency& efficiency, const CalibrationFactor& factor, bool own_chip, const Calibration& from) {
  const double before = efficiency.value;
  const double ends[] = {scaled(factor.name, before, factor.low), scaled(factor.name, before, factor.high)};
  efficiency.value = scaled(factor.name, before, factor.value);
  efficiency.low = std::min(ends[0], ends[1]);
  efficiency.high = std::max(ends[0], ends[1]);
  efficiency.origin = own_chip ? Origin::measured : Origin::transferred;
  efficiency.source = to_text(factor.basis ? *factor.basis : from.basis) + ", fitted to " +
                      counted(factor.rows.size(), "measured step") + (own_chip ? "" : " of other chips") +
                      "; before: " + efficiency.source;
}

// How far the chip that a factor was fitted on is from another: 0 for the same, then chips with the same die in their
// order, then the mean of the maker's chips, then the mean of all.
constexpr size_t kUnfit = 1 << 20;
size_t distance(const CalibrationFactor& factor, const hardware::Chip& chip) {
  if (factor.chip == chip.id) return 0;
  if (factor.chip.empty()) {
    if (factor.vendor != chip.vendor) return kUnfit;
    if (factor.maker.empty()) return kUnfit - 1;
    return factor.maker == chip.maker ? kUnfit - 2 : kUnfit;
  }
  const auto at = std::find(chip.same_die.begin(), chip.same_die.end(), factor.chip);
  return at == chip.same_die.end() ? kUnfit : static_cast<size_t>(at - chip.same_die.begin()) + 1;
}

struct Group {
  model::Stack stack;
  hardware::Vendor vendor;
  std::string chip, maker;
  std::vector<const Measurement*> rows;
};

bool is_loaded_ttft(const Measurement& row) {
  return kind_of(row.what) == FigureKind::ttft && row.load.concurrency > 1;
}

std::vector<Group> groups_of(const std::vector<Measurement>& rows, const FitOptions& options) {
  const auto is_included = [&](const Measurement& m) {
    const bool is_simulated = options.simulated && is_loaded_ttft(m);
    return is_fitted(m) || (is_simulated && m.purpose == MeasurementUse::calibration && m.counted());
  };
  std::vector<Group> groups;
  for (const Measurement& m : rows) {
    if (!is_included(m)) continue;
    const hardware::Chip& chip = m.request.target.chip;
    const auto same = [&](const Group& g) { return g.stack == m.request.stack && g.chip == chip.id; };
    auto found = std::find_if(groups.begin(), groups.end(), same);
    if (found == groups.end())
      found = groups.insert(groups.end(), {m.request.stack, chip.vendor, chip.id, chip.maker, {}});
    found->rows.push_back(&m);
  }
  return groups;
}

double huber(double x, double knee) {
  const double a = std::abs(x);
  return a <= knee ? x * x : 2 * knee * a - knee * knee;
}

// Golden-section search: the loss is unimodal over the logarithm of a factor, because every time decreases with an
// efficiency.
double minimise(double a, double b, const std::function<double(double)>& loss) {
  const double golden = (std::sqrt(5.0) - 1) / 2;
  double c = b - golden * (b - a), d = a + golden * (b - a), at_c = loss(c), at_d = loss(d);
  while (b - a > 1e-5) {
    if (at_c < at_d) {
      b = d, d = c, at_d = at_c;
      c = b - golden * (b - a), at_c = loss(c);
    } else {
      a = c, c = d, at_c = at_d;
      d = a + golden * (b - a), at_d = loss(d);
    }
  }
  return (a + b) / 2;
}

constexpr int kCorrections = 3, kMostRounds = 30;
constexpr double kSettled = 2e-4;  // of the logarithm of a factor
// Times to first token under load vary about three times as much as rates.
constexpr double kLoadedTtftWeight = 0.1;

class Fitter {
 public:
  Fitter(const Group& group, const FitOptions& options, std::stop_token stop)
      : group_(group),
        options_(options),
        names_(serves(group.stack) ? options.serving : options.names),
        stop_(std::move(stop)) {
    for (const Measurement* m : group.rows)
      if (is_serving(m->what)) servers_.emplace(m, m->request);
    std::erase_if(names_, [this](const std::string& name) { return !is_constrained(name); });
    logs_.assign(names_.size(), 0.0);
    for (const std::string& name : names_) bounds_.push_back(bounds_of(options, name));
  }

  std::vector<CalibrationFactor> run() {
    const int corrections = options_.simulated && !servers_.empty() ? kCorrections : 1;
    for (int i = 0; i < corrections; ++i) {
      if (options_.simulated) correct();
      descend();
    }
    const double spread = std::clamp(residual(), group_.rows.size() > 1 ? 0.05 : 0.15, 0.5);
    std::vector<CalibrationFactor> out;
    for (size_t i = 0; i < logs_.size(); ++i) {
      CalibrationFactor f{group_.stack, group_.chip, group_.vendor, names_[i], std::exp(logs_[i])};
      f.low = f.value * std::exp(-spread);
      f.high = f.value * std::exp(spread);
      f.maker = group_.maker;
      for (const Measurement* m : group_.rows) f.rows.push_back(m->id);
      out.push_back(std::move(f));
    }
    return out;
  }

 private:
  // Minimises over one factor after the other, and after each round along the round's total change: factors that
  // multiply each other (matmul and fp8) compensate each other, so that minimising over one at a time takes short
  // steps.
  void descend() {
    for (int round = 0; round < kMostRounds; ++round) {
      const std::vector<double> before = logs_;
      for (size_t i = 0; i < logs_.size(); ++i)
        logs_[i] = minimise(std::log(bounds_[i].low), std::log(bounds_[i].high), [&](double x) {
          std::vector<double> tried = logs_;
          tried[i] = x;
          return loss(tried);
        });
      if (logs_.size() == 1) return;
      double moved = 0;
      for (size_t i = 0; i < logs_.size(); ++i) moved = std::max(moved, std::abs(logs_[i] - before[i]));
      if (moved < kSettled) return;
      const std::vector<double> after = logs_;
      const auto along = [&](double steps) {
        std::vector<double> tried = before;
        for (size_t i = 0; i < tried.size(); ++i)
          tried[i] = std::clamp(before[i] + steps * (after[i] - before[i]), std::log(bounds_[i].low),
                                std::log(bounds_[i].high));
        return tried;
      };
      logs_ = along(minimise(1, 20, [&](double steps) { return loss(along(steps)); }));
      if (loss(logs_) > loss(after)) logs_ = after;
    }
  }
  // Sets by how much the simulation of each server differs from its steady state at the current factors.
  void correct() {
    corrections_.clear();
    for (const Measurement* m : group_.rows) {
      if (!servers_.contains(m)) continue;
      Measurement scaled = *m;
      scaled.request.efficiencies = efficiencies(*m, logs_);
      corrections_[m] = std::log1p(compare(*m, options_.simulated(scaled)).error) - error(*m, logs_);
    }
  }
  // Whether the time of any row depends on the efficiency.
  bool is_constrained(const std::string& name) const {
    return std::any_of(group_.rows.begin(), group_.rows.end(), [&](const Measurement* m) {
      Efficiencies all = m->request.efficiencies;
      const double before = error(*m, all);
      Efficiency& e = all.*named(name).member;
      e.value = scaled(name, e.value, 0.9);
      return std::abs(error(*m, all) - before) > 1e-9;
    });
  }
  Efficiencies efficiencies(const Measurement& m, const std::vector<double>& logs) const {
    Efficiencies all = m.request.efficiencies;
    for (size_t i = 0; i < logs.size(); ++i) {
      Efficiency& e = all.*named(names_[i]).member;
      e.value = scaled(names_[i], e.value, std::exp(logs[i]));
    }
    return all;
  }
  double error(const Measurement& m, const std::vector<double>& logs) const { return error(m, efficiencies(m, logs)); }
  double error(const Measurement& m, const Efficiencies& all) const {
    if (stop_.stop_requested()) throw cancelled("the fit");
    const auto server = servers_.find(&m);
    if (server != servers_.end()) {
      const auto correction = corrections_.find(&m);
      return std::log1p(predicted(m, server->second.with(all)).error) +
             (correction != corrections_.end() ? correction->second : 0);
    }
    Request r = m.request;
    r.efficiencies = all;
    return std::log1p(predicted(m, r).error);
  }
  double loss(const std::vector<double>& logs) const {
    double sum = 0;
    for (const Measurement* m : group_.rows)
      sum += (is_loaded_ttft(*m) ? kLoadedTtftWeight : 1) * huber(error(*m, logs), 0.2);
    for (size_t i = 0; i < logs.size(); ++i) sum += std::pow(0.1 * logs[i] / bounds_[i].trust, 2);
    return sum;
  }
  double residual() const {
    double sum = 0;
    double weight = 0;
    for (const Measurement* m : group_.rows) {
      const double own = is_loaded_ttft(*m) ? kLoadedTtftWeight : 1;
      sum += own * std::pow(error(*m, logs_), 2), weight += own;
    }
    return std::sqrt(sum / weight);
  }

  const Group& group_;
  const FitOptions& options_;
  std::vector<std::string> names_;  // those that the rows constrain
  std::vector<Bounds> bounds_;
  std::map<const Measurement*, ServeStepModel> servers_;
  std::map<const Measurement*, double> corrections_;  // of the logarithm of their errors
  std::stop_token stop_;
  std::vector<double> logs_;
};

}  // namespace

std::string to_text(const CalibrationBasis& basis) {
  return std::string(basis.by == CalibrationAuthor::user ? "calibrated by you" : "calibrated") + ", " + basis.date +
         ", " + basis.source;
}

WorkSize work_size(const Request& request, int users) {
  WorkSize size;
  size.devices = request.mesh.devices();
  size.slices = request.target.slices;
  size.parameters = static_cast<double>(model::TensorInventory(request.model).parameters());
  if (request.work == Work::serve) {
    size.tokens = request.serve.input_len;
    size.answer = request.serve.output_len;
    size.users = users > 0 ? users : request.serve.max_num_seqs;
  } else {
    size.tokens = request.lengths.max_len;
  }
  return size;
}

bool is_fitted(const Measurement& row) {
  const bool is_prefill = kind_of(row.what) == FigureKind::ttft && row.load.concurrency == 1;
  return row.purpose == MeasurementUse::calibration && (is_speed(row.what) || is_prefill) && row.counted();
}

bool can_fit(std::string_view name) {
  return is_share(name) || name == "kernel_s" || name == "step_s" || name == "layer_s" || name == "sequence_s" ||
         name == "sum_s";
}

bool at_limit(const CalibrationFactor& factor, const Efficiency& before, const FitOptions& options) {
  const Bounds b = bounds_of(options, factor.name);
  return factor.value < b.low * 1.002 || factor.value > b.high * 0.998 ||
         scaled(factor.name, before.value, factor.value) < before.value * factor.value;
}

namespace {

// The geometric mean of the factors in `of`, which is not empty, for the chips of `maker`; empty: of all makers.
CalibrationFactor mean_of(const std::vector<const CalibrationFactor*>& of, const std::string& maker) {
  const CalibrationFactor& first = *of.front();
  CalibrationFactor mean{first.stack, "", first.vendor, first.name};
  mean.maker = maker;
  mean.basis = first.basis;
  mean.low = first.low, mean.high = first.high;
  double logs = 0, weight = 0;
  for (const CalibrationFactor* f : of) {
    const double own = std::max<double>(1, static_cast<double>(f->rows.size()));
    logs += own * std::log(f->value), weight += own;
    mean.low = std::min(mean.low, f->low), mean.high = std::max(mean.high, f->high);
    mean.rows.insert(mean.rows.end(), f->rows.begin(), f->rows.end());
    if (!f->basis || (mean.basis && f->basis->by == CalibrationAuthor::user)) mean.basis = f->basis;  // the newest
  }
  mean.value = std::exp(logs / weight);
  return mean;
}

}  // namespace

std::vector<CalibrationFactor> with_means(std::vector<CalibrationFactor> factors) {
  std::erase_if(factors, [](const CalibrationFactor& f) { return f.chip.empty(); });
  std::vector<CalibrationFactor> means;
  for (const CalibrationFactor& f : factors) {
    const auto same = [&](const CalibrationFactor& p) {
      return p.stack == f.stack && p.vendor == f.vendor && p.name == f.name;
    };
    if (std::any_of(means.begin(), means.end(), same)) continue;
    std::vector<const CalibrationFactor*> all;
    std::map<std::string, std::vector<const CalibrationFactor*>> by_maker;
    for (const CalibrationFactor& g : factors)
      if (same(g)) {
        all.push_back(&g);
        by_maker[g.maker].push_back(&g);
      }
    means.push_back(mean_of(all, by_maker.size() == 1 && f.name == "fp8" ? f.maker : ""));
    for (const auto& [maker, own] : by_maker)
      if (by_maker.size() > 1 && !maker.empty()) means.push_back(mean_of(own, maker));
  }
  factors.insert(factors.end(), means.begin(), means.end());
  return factors;
}

FitOptions shipped_fit_options() {
  FitOptions options;
  options.names = {"matmul", "overlap_network", "overlap_sums", "experts"};
  return options;
}

std::vector<CalibrationFactor> fit_factors(const std::vector<Measurement>& rows, const FitOptions& options,
                                           std::stop_token stop) {
  for (const auto* names : {&options.names, &options.serving})
    for (const std::string& name : *names)
      if (named(name); !can_fit(name))
        throw Error(
            "CALIBRATION", "no measurement constrains this efficiency",
            {.place = "names",
             .found = name,
             .expected =
                 "matmul, experts, fp8, attention, memory, collectives, overlap, overlap_network, overlap_sums, "
                 "kv_reads, triton_reads, sampling, kernel_s, step_s, layer_s, sequence_s, sum_s"});
  std::vector<CalibrationFactor> out;
  for (const Group& g : groups_of(rows, options)) {
    const std::vector<CalibrationFactor> factors = Fitter(g, options, stop).run();
    out.insert(out.end(), factors.begin(), factors.end());
  }
  return out;
}

void apply(const Calibration& calibration, Request& request) {
  const hardware::Chip& chip = request.target.chip;
  for (const Efficiencies::Named& n : Efficiencies::names()) {
    const CalibrationFactor* best = nullptr;
    for (const CalibrationFactor& f : calibration.factors) {
      if (f.stack != request.stack || f.name != n.name) continue;
      if (distance(f, chip) < (best ? distance(*best, chip) : kUnfit)) best = &f;
    }
    if (!best) continue;
    const bool own = best->chip == chip.id;
    scale(request.efficiencies.*n.member, *best, own, calibration);
    if (const CalibrationBasis& basis = best->basis ? *best->basis : calibration.basis;
        basis.by == CalibrationAuthor::user)
      request.calibrated = to_text(basis) + (own ? "" : " (other chips)");
  }
}

std::vector<RowPrediction> predict_all(const std::vector<Measurement>& rows, const Calibration& calibration,
                                       std::stop_token stop) {
  std::vector<RowPrediction> out;
  for (const Measurement& m : rows) {
    if (stop.stop_requested()) throw cancelled("the comparison");
    Request r = m.request;
    apply(calibration, r);
    out.push_back(predicted(m, r));
  }
  return out;
}

}  // namespace mw::plan
