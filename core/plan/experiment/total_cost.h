// SPDX-License-Identifier: Apache-2.0
// Total cost of a model that is trained once and then served for months to a growing number of requests. Plain values;
// any thread.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/plan/prediction/serve_step.h"

namespace mw::plan {

struct ServiceLevel {  // seconds; 0: no limit
  double ttft_s = 0, tpot_s = 0, e2e_s = 0;
  double share = 0.99;  // of the requests that must meet the limits of waiting
  bool any() const { return ttft_s > 0 || tpot_s > 0 || e2e_s > 0; }
};
// Capacity of one server. Requests arrive at random; those that find all slots taken wait (M/M/c, Erlang's C).
struct ServerCapacity {
  double requests_per_s = 0;                 // 0: no load meets the level
  int concurrency = 0;                       // slots: requests that run at once
  double ttft_s = 0, tpot_s = 0, e2e_s = 0;  // of a request that does not wait, with all slots taken
  double wait_s = 0;                         // that `share` of the requests stay below; 0 without a limit of waiting
  bool waits_without_limit = false;          // no limit includes waiting: the highest stable rate
};
// With equal requests of server.input_len and output_len.
ServerCapacity server_capacity(const ServeStepModel& model, const ServeWork& server, const ServiceLevel& level);
// The probability that a request has to wait, for `offered` = rate x service time < slots.
double waiting_probability(int slots, double offered);

struct CostInputs {
  double train_hours = 0, train_usd_per_hour = 0;  // of all chips; 0: nothing is trained
  double serve_usd_per_hour = 0;                   // of one server
  double requests_per_day = 0;                     // in the first month
  double growth = 0;                               // of requests by month: 0.1 is +10 %
  int months = 12;
  double peak = 1;              // largest rate relative to the mean
  double capacity = 0;          // requests/s of one server
  double start_hours = 0;       // of a server until it serves: compilation
  double preemptions = 0;       // of each machine by day
  double lost_train_hours = 0;  // by a preemption: since the last checkpoint, and compilation
};
struct TotalCost {  // USD
  double training = 0, serving = 0, starting = 0, preempted = 0;
  int first_servers = 0, last_servers = 0;  // in the first and the last month
  double requests = 0;
  double total() const { return training + serving + starting + preempted; }
};
TotalCost total_cost(const CostInputs& inputs);

// The total with one input lower and higher by `variation` (0.25: 25 %), the input that moves it most first; without
// inputs that move nothing.
struct Swing {
  std::string input;
  double low_usd = 0, high_usd = 0;  // with the lower and the higher input
  double span() const;
};
std::vector<Swing> swings(const CostInputs& inputs, double variation);

// The number of requests by day above which the same one stays the cheaper, up to a billion; everything else as given.
// Empty: it is the cheaper one from one request on. Servers are whole, so that below it the cheaper may change often.
std::optional<double> break_even_requests(const CostInputs& a, const CostInputs& b);
// The hours of serving the first month's requests after which both have cost the same.
std::optional<double> break_even_hours(const CostInputs& a, const CostInputs& b);

// Total cost of ownership of a tuned model: training once, then serving by the hour.
struct Tco {
  std::string name;
  double train_hours = 0, train_usd_per_hour = 0, serve_usd_per_hour = 0;
  Usd train() const { return Usd(train_hours * train_usd_per_hour); }
  Usd after(double serve_hours) const { return Usd(train().value + serve_hours * serve_usd_per_hour); }
};

// The hours of serving after which both have cost the same; none if one is always cheaper.
std::optional<double> break_even_hours(const Tco& a, const Tco& b);

}  // namespace mw::plan
