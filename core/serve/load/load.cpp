// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/load.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/base/units.h"
#include "core/serve/load/workload.h"

namespace mw::serve {
namespace {

namespace stream {  // random streams of a seed
constexpr std::uint64_t kArrivals = 1, kLengths = 2, kPrompts = 3, kShared = 4, kWarmups = 5, kTokens = 6;
}

Error load_error(std::string message, std::string place, std::string found, std::string expected) {
  return Error({.id = "LOAD",
                .message = std::move(message),
                .place = std::move(place),
                .found = std::move(found),
                .expected = std::move(expected)});
}

void require(bool good, const char* key, double found, const char* expected) {
  if (!good) throw load_error("invalid load", key, number_text(found), expected);
}

void check(const LoadSettings& s) {
  require(s.num_prompts >= 1, "num_prompts", s.num_prompts, "at least 1 request");
  require(s.warmups >= 0, "warmups", s.warmups, "0 or more");
  require(s.input_len >= 1, "input_len", s.input_len, "at least one token");
  require(s.output_len >= 1, "output_len", s.output_len, "at least one token");
  require(s.shared_prefix >= 0, "shared_prefix", s.shared_prefix, "0 or more tokens");
  require(s.concurrency >= 0, "concurrency", s.concurrency, "0 or more requests");
  require(s.spread >= 0 && s.spread <= 1, "spread", s.spread, "0 to 1");
  if (s.arrival == Arrival::poisson || s.arrival == Arrival::constant)
    require(s.request_rate > 0, "request_rate", s.request_rate, "more than 0 requests/s");
  if (s.arrival == Arrival::recorded)
    require(s.request_rate >= 0, "request_rate", s.request_rate, "0 (its own pace) or more requests/s");
  if (s.arrival == Arrival::poisson)
    require(s.burstiness > 0 && std::isfinite(s.burstiness), "burstiness", s.burstiness, "more than 0");
  if (s.arrival == Arrival::closed) require(s.concurrency >= 1, "concurrency", s.concurrency, "at least one user");
  if ((s.lengths == LengthDistribution::recorded || s.arrival == Arrival::recorded) && s.workload.empty())
    throw load_error("the load needs a recorded workload", "workload", "none", "a CSV, JSONL or result file");
}

class Distributions {
 public:
  explicit Distributions(Rng rng) : rng_(rng) {}
  double uniform() { return (static_cast<double>(rng_.next() >> 11) + 0.5) * 0x1p-53; }  // (0, 1)
  double normal() { return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform()); }
  // Mean `shape`. Marsaglia and Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000).
  double gamma(double shape) {
    if (shape == 1) return -std::log(uniform());
    if (shape < 1) return gamma(shape + 1) * std::pow(uniform(), 1 / shape);
    const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
    for (;;) {
      const double x = normal(), v = std::pow(1 + c * x, 3);
      if (v > 0 && std::log(uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
    }
  }
  int between(int low, int high) {
    return low + static_cast<int>(rng_.below(static_cast<std::uint64_t>(high - low) + 1));
  }

 private:
  Rng rng_;
};

bool is_burst(const LoadSettings& s) {
  return s.arrival == Arrival::burst || s.arrival == Arrival::closed || std::isinf(s.request_rate);
}

double mean_rate(const std::vector<RecordedRequest>& recorded) {
  const double span = recorded.back().at_s;
  if (!(span > 0))
    throw load_error("the recorded requests have no arrival times", "workload",
                     count_text(static_cast<double>(recorded.size())), "arrival times, or another kind of arrival");
  return static_cast<double>(recorded.size() - 1) / span;
}

// The first request arrives at 0. With the same seed, another rate only scales the times.
std::vector<double> arrival_times(const LoadSettings& s, const std::vector<RecordedRequest>& recorded) {
  std::vector<double> at(static_cast<size_t>(s.num_prompts), 0.0);
  if (is_burst(s)) return at;
  if (s.arrival == Arrival::recorded) {  // the workload repeats, with a mean interval between
    const double rate = mean_rate(recorded), stretch = rate / s.request_rate;
    for (size_t i = 0; i < at.size(); ++i) {
      const size_t n = recorded.size(), rounds = i / n;
      at[i] = stretch * (static_cast<double>(rounds * n) / rate + recorded[i % n].at_s);
    }
    return at;
  }
  Distributions draws(Rng{s.seed, stream::kArrivals});
  double time = 0;
  for (double& t : at) {
    t = time / s.request_rate;
    time += s.arrival == Arrival::constant ? 1 : draws.gamma(s.burstiness) / s.burstiness;
  }
  return at;
}

int uniform_length(Distributions& draws, int mean, double spread) {
  return draws.between(std::max(1, static_cast<int>(std::floor(mean * (1 - spread)))),
                       static_cast<int>(std::ceil(mean * (1 + spread))));
}

void set_lengths(const LoadSettings& s, const std::vector<RecordedRequest>& recorded,
                 std::vector<TimedRequest>& requests) {
  Distributions draws(Rng{s.seed, stream::kLengths});
  for (size_t i = 0; i < requests.size(); ++i) {
    TimedRequest& r = requests[i];
    r.prompt_len = s.input_len, r.output_len = s.output_len;
    if (s.lengths == LengthDistribution::uniform) {
      r.prompt_len = uniform_length(draws, s.input_len, s.spread);
      r.output_len = uniform_length(draws, s.output_len, s.spread);
    } else if (s.lengths == LengthDistribution::recorded) {
      r.prompt_len = recorded[i % recorded.size()].prompt_len;
      r.output_len = recorded[i % recorded.size()].output_len;
    }
    r.shared = std::min(s.shared_prefix, r.prompt_len);
  }
}

void set_prompts(const LoadSettings& s, std::uint64_t which, std::vector<TimedRequest>& requests) {
  const std::uint64_t salt = s.prompts == PromptMode::salted ? mix64(s.salt + 1) : 0;
  const Rng own{s.seed, which, salt};
  const std::uint64_t shared_seed = Rng{s.seed, stream::kShared, salt}.at(0);
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt_seed = own.at(i);
    requests[i].shared_seed = shared_seed;
  }
}

}  // namespace

Load make_load(const LoadSettings& s) {
  check(s);
  std::vector<RecordedRequest> recorded;
  if (s.lengths == LengthDistribution::recorded || s.arrival == Arrival::recorded) recorded = read_workload(s.workload);
  Load load{s, std::vector<TimedRequest>(static_cast<size_t>(s.warmups)),
            std::vector<TimedRequest>(static_cast<size_t>(s.num_prompts))};
  if (s.arrival == Arrival::recorded && s.request_rate == 0) load.settings.request_rate = mean_rate(recorded);
  const std::vector<double> at = arrival_times(load.settings, recorded);
  std::int64_t id = 0;
  for (TimedRequest& r : load.requests) {
    r.at_s = at[static_cast<size_t>(id)];
    r.id = id++;
  }
  for (TimedRequest& r : load.warmups) r.id = id++;
  set_lengths(s, recorded, load.requests);
  set_lengths(s, recorded, load.warmups);
  set_prompts(s, stream::kPrompts, load.requests);
  set_prompts(s, stream::kWarmups, load.warmups);
  return load;
}

std::vector<int> prompt_ids(const TimedRequest& request, int first_id, int vocab) {
  if (first_id < 0 || first_id >= vocab)
    throw load_error("there are no token ids for prompts", "vocabulary", std::to_string(vocab) + " tokens",
                     "more than " + std::to_string(first_id));
  std::vector<int> ids(static_cast<size_t>(request.prompt_len));
  const Rng shared{request.shared_seed, stream::kTokens}, own{request.prompt_seed, stream::kTokens};
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::uint64_t draw = (static_cast<int>(i) < request.shared ? shared : own).at(i) >> 32;
    ids[i] = first_id + static_cast<int>((draw * static_cast<std::uint64_t>(vocab - first_id)) >> 32);
  }
  return ids;
}

}  // namespace mw::serve
