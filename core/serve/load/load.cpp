// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/load.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/base/units.h"
#include "core/serve/load/arrival_times.h"
#include "core/serve/load/workload.h"

namespace mw::serve {
namespace {

namespace stream {  // random streams of a seed
constexpr std::uint64_t kLengths = 2, kPrompts = 3, kShared = 4, kWarmups = 5, kTokens = 6, kChoices = 7;
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
  require(s.shared_prefixes >= 1, "shared_prefixes", s.shared_prefixes, "at least 1");
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

int uniform_length(Rng& draws, int mean, double spread) {
  const int low = std::max(1, static_cast<int>(std::floor(mean * (1 - spread)))),
            high = static_cast<int>(std::ceil(mean * (1 + spread)));
  return low + static_cast<int>(draws.below(static_cast<std::uint64_t>(high - low) + 1));
}

}  // namespace

struct LoadStream::Impl {
  Impl(const LoadSettings& from, Part which) : settings(from), part(which) {
    check(settings);
    if (settings.lengths == LengthDistribution::recorded || settings.arrival == Arrival::recorded)
      recorded = read_workload(settings.workload);
    if (settings.arrival == Arrival::recorded && !is_burst(settings)) rate = mean_rate(recorded);
    if (settings.arrival == Arrival::recorded && settings.request_rate == 0) settings.request_rate = rate;
    const std::uint64_t salt = mix64(settings.salt + 1);
    prompts = Rng{settings.seed, part == Part::requests ? stream::kPrompts : stream::kWarmups, salt};
    shared = Rng{settings.seed, stream::kShared, salt};
    if (part == Part::requests && settings.arrival == Arrival::poisson && !is_burst(settings))
      arrivals.emplace(settings.seed, settings.burstiness, settings.num_prompts);
  }

  // With the same seed, another rate only scales the times.
  double arrival() {
    if (part == Part::warmups || is_burst(settings)) return 0;
    if (settings.arrival == Arrival::recorded) {  // the workload repeats, with a mean interval between
      const size_t i = static_cast<size_t>(made), n = recorded.size(), rounds = i / n;
      return rate / settings.request_rate * (static_cast<double>(rounds * n) / rate + recorded[i % n].at_s);
    }
    return (arrivals ? arrivals->next() : static_cast<double>(made)) / settings.request_rate;
  }

  std::pair<int, int> prompt_and_output() {  // tokens
    if (settings.lengths == LengthDistribution::uniform) {
      const int prompt = uniform_length(lengths, settings.input_len, settings.spread);
      return {prompt, uniform_length(lengths, settings.output_len, settings.spread)};
    }
    if (settings.lengths == LengthDistribution::recorded) {
      const RecordedRequest& same = recorded[static_cast<size_t>(made) % recorded.size()];
      return {same.prompt_len, same.output_len};
    }
    return {settings.input_len, settings.output_len};
  }

  LoadSettings settings;
  Part part;
  std::vector<RecordedRequest> recorded;
  double rate = 0;  // of the recorded requests
  std::optional<RandomArrivals> arrivals{};
  Rng lengths{settings.seed, stream::kLengths}, prompts{}, shared{};
  std::int64_t made = 0;
};

LoadStream::LoadStream(const LoadSettings& settings, Part part) : impl_(std::make_unique<Impl>(settings, part)) {}
LoadStream::~LoadStream() = default;

const LoadSettings& LoadStream::settings() const {
  return impl_->settings;
}

std::int64_t LoadStream::size() const {
  return impl_->part == Part::requests ? impl_->settings.num_prompts : impl_->settings.warmups;
}

TimedRequest LoadStream::next() {
  Impl& im = *impl_;
  const double at_s = im.arrival();
  const auto [prompt_len, output_len] = im.prompt_and_output();
  return restore(im.made++, at_s, prompt_len, output_len);
}

TimedRequest LoadStream::restore(std::int64_t index, double at_s, int prompt_len, int output_len) const {
  const Impl& im = *impl_;
  const std::int64_t id = index + (im.part == Part::requests ? 0 : im.settings.num_prompts);
  return {.id = id,
          .at_s = at_s,
          .prompt_len = prompt_len,
          .output_len = output_len,
          .prompt_seed = im.prompts.at(static_cast<std::uint64_t>(index)),
          .shared_seed = im.shared.at(drawn_prefix(im.settings.seed, id, im.settings.shared_prefixes)),
          .shared = std::min(im.settings.shared_prefix, prompt_len)};
}

Load make_load(const LoadSettings& settings) {
  LoadStream warmups(settings, LoadStream::Part::warmups), requests(settings, LoadStream::Part::requests);
  Load load{requests.settings(), {}, {}};
  load.warmups.reserve(static_cast<size_t>(warmups.size()));
  load.requests.reserve(static_cast<size_t>(requests.size()));
  for (std::int64_t i = 0; i < warmups.size(); ++i) load.warmups.push_back(warmups.next());
  for (std::int64_t i = 0; i < requests.size(); ++i) load.requests.push_back(requests.next());
  return load;
}

std::uint64_t drawn_prefix(std::uint64_t seed, std::int64_t request, int shared_prefixes) {
  const Rng choices{seed, stream::kChoices};
  return shared_prefixes <= 1
             ? 0
             : choices.at(static_cast<std::uint64_t>(request)) % static_cast<std::uint64_t>(shared_prefixes);
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
