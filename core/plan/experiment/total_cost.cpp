// SPDX-License-Identifier: Apache-2.0
#include "core/plan/experiment/total_cost.h"

#include <algorithm>
#include <cmath>

#include "core/plan/prediction/steady_state.h"

namespace mw::plan {
namespace {

constexpr double kHoursPerMonth = 365.25 * 24 / 12, kDay = 86400;
constexpr int kHalvings = 60;

struct SlotState {
  int count = 0;
  SteadyState state{};
  double e2e_s = 0;
};

class CapacitySearch {
 public:
  CapacitySearch(const ServeStepModel& model, const ServeWork& server, const ServiceLevel& level)
      : model_(model), server_(server), level_(level) {}

  ServerCapacity best() const {
    int most = static_cast<int>(at(server_.max_num_seqs).state.running);
    if (!holds(at(1))) return {};
    int low = 1;  // holds; the time per token grows with the slots
    for (int high = most + 1; high - low > 1;) {
      const int middle = low + (high - low) / 2;
      (holds(at(middle)) ? low : high) = middle;
    }
    most = low;
    // Fewer slots are faster, which leaves more time to wait.
    ServerCapacity best = with(at(most));
    for (int n = most * 3 / 4; n >= 1; n = n * 3 / 4)
      if (ServerCapacity c = with(at(n)); c.requests_per_s > best.requests_per_s) best = c;
    return best;
  }

 private:
  SlotState at(int concurrency) const {
    SlotState s{.count = concurrency};
    s.state = steady_state(model_, server_, {concurrency, server_.input_len, server_.output_len});
    s.e2e_s = s.state.ttft_s + s.state.tpot_s * (server_.output_len - 1);
    return s;
  }
  static bool within(double value, double limit) { return limit <= 0 || value <= limit; }
  bool holds(const SlotState& s) const {
    return within(s.state.ttft_s, level_.ttft_s) && within(s.state.tpot_s, level_.tpot_s) &&
           within(s.e2e_s, level_.e2e_s);
  }
  ServerCapacity with(const SlotState& s) const {
    ServerCapacity out{.concurrency = s.count,
                       .ttft_s = s.state.ttft_s,
                       .tpot_s = s.state.tpot_s,
                       .e2e_s = s.e2e_s,
                       .waits_without_limit = level_.ttft_s <= 0 && level_.e2e_s <= 0};
    const double highest = s.state.output_tokens_per_s / server_.output_len;
    if (out.waits_without_limit) {
      out.requests_per_s = highest;
      return out;
    }
    double patience = 1e18;
    if (level_.ttft_s > 0) patience = std::min(patience, level_.ttft_s - s.state.ttft_s);
    if (level_.e2e_s > 0) patience = std::min(patience, level_.e2e_s - s.e2e_s);
    const double service = s.count / highest;  // seconds that a request holds its slot
    const auto late = [&](double rate) {       // share of the requests that wait longer
      return waiting_probability(s.count, rate * service) * std::exp(-(highest - rate) * patience);
    };
    double low = 0, high = highest;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (low + high) / 2;
      (late(middle) <= 1 - level_.share ? low : high) = middle;
    }
    out.requests_per_s = low;
    out.wait_s = std::max(0.0, patience);
    return out;
  }
  const ServeStepModel& model_;
  const ServeWork& server_;
  const ServiceLevel& level_;
};

int servers_for(const CostInputs& in, double requests_per_day) {
  const double rate = requests_per_day / kDay * in.peak;
  return in.capacity > 0 ? static_cast<int>(std::clamp(std::ceil(rate / in.capacity), 1.0, 1e9)) : 0;
}

}  // namespace

double waiting_probability(int slots, double offered) {
  if (offered <= 0) return 0;
  if (offered >= slots) return 1;
  double blocked = 1;  // Erlang's B by its recursion
  for (int n = 1; n <= slots; ++n) blocked = offered * blocked / (n + offered * blocked);
  const double busy = offered / slots;
  return blocked / (1 - busy * (1 - blocked));
}

ServerCapacity server_capacity(const ServeStepModel& model, const ServeWork& server, const ServiceLevel& level) {
  return CapacitySearch(model, server, level).best();
}

TotalCost total_cost(const CostInputs& in) {
  TotalCost out;
  out.training = in.train_hours * in.train_usd_per_hour;
  double hours = 0, requests = in.requests_per_day;
  for (int month = 0; month < in.months; ++month, requests *= 1 + in.growth) {
    out.last_servers = servers_for(in, requests);
    if (month == 0) out.first_servers = out.last_servers;
    hours += out.last_servers * kHoursPerMonth;
    out.requests += requests * kHoursPerMonth / 24;
  }
  out.serving = hours * in.serve_usd_per_hour;
  out.starting = std::max(out.first_servers, out.last_servers) * in.start_hours * in.serve_usd_per_hour;
  // A machine that is taken away is replaced by another, which has to start.
  out.preempted = hours / 24 * in.preemptions * in.start_hours * in.serve_usd_per_hour +
                  in.train_hours / 24 * in.preemptions * in.lost_train_hours * in.train_usd_per_hour;
  return out;
}

double Swing::span() const {
  return std::abs(high_usd - low_usd);
}

std::vector<Swing> swings(const CostInputs& inputs, double variation) {
  struct Input {
    const char* name;
    double CostInputs::*value;
  };
  constexpr Input kInputs[] = {{"requests per day", &CostInputs::requests_per_day},
                               {"growth", &CostInputs::growth},
                               {"peak", &CostInputs::peak},
                               {"capacity of a server", &CostInputs::capacity},
                               {"price of serving", &CostInputs::serve_usd_per_hour},
                               {"price of training", &CostInputs::train_usd_per_hour},
                               {"training hours", &CostInputs::train_hours},
                               {"start of a server", &CostInputs::start_hours},
                               {"preemptions", &CostInputs::preemptions}};
  std::vector<Swing> out;
  const auto total = [&](const Input& input, double factor) {
    CostInputs changed = inputs;
    changed.*input.value *= factor;
    if (input.value == &CostInputs::peak) changed.peak = std::max(1.0, changed.peak);
    return total_cost(changed).total();
  };
  for (const Input& input : kInputs)
    out.push_back({input.name, total(input, 1 - variation), total(input, 1 + variation)});
  CostInputs shorter = inputs, longer = inputs;
  shorter.months = std::max(1, static_cast<int>(std::lround(inputs.months * (1 - variation))));
  longer.months = static_cast<int>(std::lround(inputs.months * (1 + variation)));
  out.push_back({"months", total_cost(shorter).total(), total_cost(longer).total()});
  std::erase_if(out, [](const Swing& s) { return s.span() <= 0; });
  std::stable_sort(out.begin(), out.end(), [](const Swing& a, const Swing& b) { return a.span() > b.span(); });
  return out;
}

std::optional<double> break_even_requests(const CostInputs& a, const CostInputs& b) {
  if (a.capacity <= 0 || b.capacity <= 0) return std::nullopt;
  const auto ahead = [&](double requests) {  // of a over b
    CostInputs x = a, y = b;
    x.requests_per_day = y.requests_per_day = requests;
    return total_cost(x).total() - total_cost(y).total();
  };
  constexpr double kMost = 1e9, kFactor = 1.05;
  // Servers are whole: where both need another one at almost the same volume, the cheaper may change for a moment.
  const auto sign = [](double v) { return v > 0 ? 1 : v < 0 ? -1 : 0; };
  const int last = sign(ahead(kMost));
  double high = kMost;
  while (high > 1 && sign(ahead(high)) == last) high /= kFactor;
  if (high <= 1 && sign(ahead(1)) == last) return std::nullopt;
  double low = high;  // another one is cheaper here
  high = std::min(kMost, high * kFactor);
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (sign(ahead(middle)) == last ? high : low) = middle;
  }
  return high;
}

std::optional<double> break_even_hours(const CostInputs& a, const CostInputs& b) {
  const auto life = [](const CostInputs& in) {
    return Tco{.name = {},
               .train_hours = in.train_hours,
               .train_usd_per_hour = in.train_usd_per_hour,
               .serve_usd_per_hour = in.serve_usd_per_hour * servers_for(in, in.requests_per_day)};
  };
  return break_even_hours(life(a), life(b));
}

std::optional<double> break_even_hours(const Tco& a, const Tco& b) {
  const double ahead = b.train().value - a.train().value, rate = a.serve_usd_per_hour - b.serve_usd_per_hour;
  if (rate == 0 || ahead / rate < 0) return std::nullopt;
  return ahead / rate;
}

}  // namespace mw::plan
