// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/sweep.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/serve/load/saturation.h"

namespace mw::serve {
namespace {

using formats::BenchPoint;
using formats::LatencyStats;

// The value that an SLO limits: the 99th percentile if the source has it, otherwise the median.
double slo_value(const LatencyStats& intended, const LatencyStats& sent) {
  const LatencyStats& stats = intended.known() ? intended : sent;
  const double p99 = stats.percentile(99);
  return std::isnan(p99) ? stats.median : p99;
}

struct RatePoint {  // means over the repeats of one request rate
  double rate = 0;
  double ttft = 0, tpot = 0, e2e = 0;  // ms; NaN: unknown
  double latency = 0;                  // median of the whole request, ms
  int repeats = 0, overloaded = 0, too_short = 0;
  bool is_overloaded() const { return 2 * overloaded > repeats; }
  bool is_too_short() const { return 2 * too_short > repeats; }
};

std::vector<RatePoint> rates_of(const std::vector<BenchPoint>& points) {
  std::vector<RatePoint> all;
  for (const BenchPoint& p : points) {
    if (!std::isfinite(p.request_rate) || p.completed == 0) continue;
    auto at = std::find_if(all.begin(), all.end(), [&](const RatePoint& r) { return r.rate == p.request_rate; });
    if (at == all.end()) at = all.insert(at, RatePoint{.rate = p.request_rate});
    at->ttft += slo_value(p.intended_ttft, p.ttft);
    at->tpot += slo_value(p.tpot, p.tpot);
    at->e2e += slo_value(p.intended_e2el, p.e2el);
    at->latency += p.intended_e2el.known() ? p.intended_e2el.median : p.e2el.median;
    at->overloaded += p.verdict == to_string(Saturation::overloaded) ? 1 : 0;
    at->too_short += is_too_short(p) ? 1 : 0;
    ++at->repeats;
  }
  for (RatePoint& r : all)
    for (double* sum : {&r.ttft, &r.tpot, &r.e2e, &r.latency}) *sum /= r.repeats;
  std::sort(all.begin(), all.end(), [](const RatePoint& a, const RatePoint& b) { return a.rate < b.rate; });
  return all;
}

bool all_meet(const RatePoint& r, const options::Slo& slo) {
  const auto within = [](double value, double limit) { return limit <= 0 || value <= limit; };
  return !r.is_overloaded() && within(r.ttft, slo.ttft_ms) && within(r.tpot, slo.tpot_ms) && within(r.e2e, slo.e2e_ms);
}

// The rate at which the first limit is reached between `good`, which meets all, and `bad`, which does not.
double interpolate_slo(const RatePoint& good, const RatePoint& bad, const options::Slo& slo) {
  double share = 1;
  bool crossed = false;
  const auto cross = [&](double below, double above, double limit) {
    if (limit <= 0 || !(above > limit)) return;
    crossed = true;
    share = std::min(share, (limit - below) / (above - below));
  };
  cross(good.ttft, bad.ttft, slo.ttft_ms);
  cross(good.tpot, bad.tpot, slo.tpot_ms);
  cross(good.e2e, bad.e2e, slo.e2e_ms);
  return crossed ? good.rate + share * (bad.rate - good.rate) : good.rate;
}

// Kneedle (Satopaa et al., 2011) without smoothing: with both axes scaled to 0..1, the point farthest below the chord.
double find_knee(std::vector<RatePoint> rates) {
  std::erase_if(rates, [](const RatePoint& r) { return r.is_too_short(); });
  if (rates.size() < 3) return formats::kUnknown;
  const RatePoint &first = rates.front(), &last = rates.back();
  if (!(last.latency > first.latency)) return formats::kUnknown;
  double farthest = 0.05, knee = formats::kUnknown;  // a nearly straight curve has no knee
  for (const RatePoint& r : rates) {
    const double distance =
        (r.rate - first.rate) / (last.rate - first.rate) - (r.latency - first.latency) / (last.latency - first.latency);
    if (distance > farthest) farthest = distance, knee = r.rate;
  }
  return knee;
}

}  // namespace

Capacity find_capacity(const std::vector<BenchPoint>& same_length, const options::Slo& slo) {
  const std::vector<RatePoint> rates = rates_of(same_length);
  Capacity capacity;
  capacity.knee = find_knee(rates);
  // Searches from above, because at low rates a cold cache or too few requests can miss an SLO that higher rates meet.
  const auto shows = [&](const RatePoint& r) { return !r.is_too_short() && all_meet(r, slo); };
  const auto above = std::find_if(rates.rbegin(), rates.rend(), shows).base();
  for (auto r = above; r != rates.end(); ++r)
    if (all_meet(*r, slo)) capacity.too_short.push_back(r->rate);
  if (above == rates.begin()) return capacity;
  const RatePoint& best = *(above - 1);
  capacity.beyond_last = above == rates.end();
  capacity.at_slo = capacity.beyond_last || above->is_too_short() ? best.rate : interpolate_slo(best, *above, slo);
  for (auto r = rates.begin(); r != above; ++r)
    if (!all_meet(*r, slo)) capacity.failing_below.push_back(r->rate);
  return capacity;
}

namespace {

std::string rates_text(const std::vector<double>& rates) {
  std::string out;
  for (size_t i = 0; i < rates.size(); ++i)
    out += (i == 0 ? "" : i + 1 == rates.size() ? " and " : ", ") + number_text(rates[i], 3);
  return out + " requests/s";
}

}  // namespace

std::string slo_text(const Capacity& c) {
  const std::string ended = rates_text(c.too_short) + " the arrivals ended before the server was full";
  if (!std::isfinite(c.at_slo))
    return c.too_short.empty() ? "no rate meets the SLO" : "too short to tell which rate meets the SLO: at " + ended;
  std::string out = "meets the SLO to " + rates_text({c.at_slo});
  if (c.beyond_last) out += ", the highest that was offered";
  if (!c.failing_below.empty()) out += ", but not at " + rates_text(c.failing_below);
  return out + (c.too_short.empty() ? "" : "; at " + ended);
}

namespace {

struct SweepPoint {
  options::LoadSettings load;
  int repeat = 0;
  bool is_cold = false;
};

// Depends on the values of a point, not on its index, so resumed sweeps get the same points. Prompts repeat at the
// rates of one server only, because the cache of a server over HTTP outlives it.
std::uint64_t salt_of(const SweepSettings& s, double rate, int input_len, int repeat) {
  const double of_rate = s.keeps_cache() || std::isnan(rate) ? 0.0 : rate;
  return mix64(std::bit_cast<std::uint64_t>(of_rate) ^
               mix64(static_cast<std::uint64_t>(input_len) ^ mix64(static_cast<std::uint64_t>(repeat))));
}

std::vector<SweepPoint> points_of(const SweepSettings& s) {
  std::vector<SweepPoint> points;
  const std::vector<double> rates = s.rates();
  for (int repeat = 0; repeat < s.repeats; ++repeat)
    for (const int input_len : s.input_lens)
      for (const double& rate : rates) {
        SweepPoint p{s.load, repeat, s.keeps_cache() && &rate == &rates.front()};
        if (!std::isnan(rate)) p.load.request_rate = rate;
        p.load.input_len = input_len;
        p.load.num_prompts = s.num_prompts(input_len);
        p.load.seed += static_cast<std::uint64_t>(repeat);
        p.load.salt = salt_of(s, rate, input_len, repeat);
        points.push_back(std::move(p));
      }
  return points;
}

bool is_same_rate(double rate, double other) {
  return rate == other || (std::isnan(rate) && std::isnan(other));
}

// Points in `done` are the first repeats of their rate and length.
bool is_done(const SweepPoint& p, const std::vector<formats::BenchPoint>& done) {
  const double rate = p.load.arrival == options::Arrival::closed ? formats::kUnknown : p.load.request_rate;
  return p.repeat < std::count_if(
                        done.begin(), done.end(),
                        [&](const formats::BenchPoint& d) {
                          return is_same_rate(d.request_rate, rate) && d.input_len == p.load.input_len;
                        });
}

// A server of its own takes the rates of one length and repeat.
bool is_same_server(const SweepPoint& a, const SweepPoint& b) {
  return a.repeat == b.repeat && a.load.input_len == b.load.input_len;
}

// Points that are taken again because the cache they leave is needed.
bool fills_cache(const SweepSettings& s, const std::vector<SweepPoint>& points, size_t at,
                 const std::vector<formats::BenchPoint>& done) {
  return s.keeps_cache() &&
         std::any_of(points.begin() + static_cast<std::ptrdiff_t>(at), points.end(), [&](const SweepPoint& later) {
           return is_same_server(later, points[at]) && !is_done(later, done);
         });
}

std::string point_name(const SweepPoint& p) {
  const options::LoadSettings& s = p.load;
  const std::string load = s.arrival == options::Arrival::closed ? counted(s.concurrency, "user")
                           : std::isinf(s.request_rate)          ? "all at once"
                                                                 : number_text(s.request_rate) + " requests/s";
  return load + ", " + counted(s.input_len, "token");
}

formats::BenchPoint point_of(const options::LoadSettings& settings, const options::Slo& slo, LoadBackend& backend,
                             const LoadBackend::OnProgress& progress, const std::stop_token& stop) {
  if (settings.num_prompts > kMostKeptRequests)
    if (auto point = backend.measure(settings, slo, progress, stop); point || stop.stop_requested())
      return point.value_or(formats::BenchPoint{});
  const Load load = make_load(settings);
  return summarise(load, backend.run(load, progress, stop), slo);
}

}  // namespace

int SweepSettings::num_prompts(int input_len) const {
  const auto other =
      std::find_if(num_prompts_at.begin(), num_prompts_at.end(), [&](const auto& at) { return at.first == input_len; });
  return other == num_prompts_at.end() ? load.num_prompts : other->second;
}

std::vector<double> SweepSettings::rates() const {
  if (load.arrival == options::Arrival::closed) return {formats::kUnknown};
  if (load.arrival == options::Arrival::burst) return {std::numeric_limits<double>::infinity()};
  return request_rates;
}

long SweepSettings::requests() const {
  long each = 0;
  for (const int input_len : input_lens) each += num_prompts(input_len);
  return each * static_cast<long>(rates().size()) * repeats;
}

int SweepSettings::fewest_prompts() const {
  int fewest = load.num_prompts;
  for (size_t i = 0; i < input_lens.size(); ++i)
    fewest = i == 0 ? num_prompts(input_lens[i]) : std::min(fewest, num_prompts(input_lens[i]));
  return fewest;
}

bool run_sweep(const SweepSettings& settings, LoadBackend& backend, const std::vector<formats::BenchPoint>& done,
               const SweepCallbacks& callbacks, std::stop_token stop) {
  const std::vector<SweepPoint> points = points_of(settings);
  if (points.empty())
    throw Error("LOAD", "the sweep has no points",
                {.found = "no rate, no length or no repeat", .expected = "at least one rate, length and repeat"});
  for (const SweepPoint& p : points) {  // reports an invalid point before the first one runs
    options::LoadSettings small = p.load;
    small.num_prompts = 1, small.warmups = 0;
    make_load(small);
  }
  long before = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    const SweepPoint& p = points[i];
    if (i == 0 || !is_same_server(p, points[i - 1])) backend.restart();
    const bool is_known = is_done(p, done);
    if (!is_known || fills_cache(settings, points, i, done)) {
      if (callbacks.before_point) callbacks.before_point();
      if (stop.stop_requested()) return false;
      const auto progress = [&](long requests, long) {
        if (callbacks.progress)
          callbacks.progress((is_known ? "filling the cache again: " : "") + point_name(p), before + requests,
                             settings.requests());
      };
      formats::BenchPoint point = point_of(p.load, settings.slo, backend, progress, stop);
      if (stop.stop_requested()) return false;  // an interrupted point is dropped
      point.is_cold = p.is_cold;
      if (!is_known) callbacks.point(point);
    }
    before += p.load.num_prompts;
  }
  return true;
}

namespace {

constexpr double kMostRate = 1e6;
constexpr int kMostTokens = 1 << 20;

[[noreturn]] void refuse(const char* key, const std::string& found, const char* expected) {
  throw Error("SWEEP", "invalid value in the sweep", {.place = key, .found = found, .expected = expected});
}

template <class T>
T parsed_number(const char* key, const std::string& text, T least, T most, const char* expected) {
  const auto value = parse_number<T>(text);
  if (!value || !(*value >= least) || !(*value <= most)) refuse(key, text, expected);
  return *value;
}

// Returns the values in their order, without those that an earlier one equals.
template <class T, class Read>
std::vector<T> numbers(const std::vector<std::string>& texts, const char* key, Read read) {
  std::vector<T> all;
  for (const std::string& text : texts)
    if (const T value = read(text); std::find(all.begin(), all.end(), value) == all.end()) all.push_back(value);
  if (all.empty()) refuse(key, "an empty list", "at least one");
  return all;
}

double rate_of(const std::string& text) {
  if (text == "inf") return std::numeric_limits<double>::infinity();
  return parsed_number("sweep.request_rates", text, 1e-6, kMostRate, "requests per second above 0, or inf");
}

// "15360:6": input length and requests.
std::pair<int, int> num_prompts_at(const std::string& text) {
  constexpr const char* kKey = "sweep.num_prompts_at";
  constexpr const char* kExpected = "an input length and a number of requests, such as 15360:6";
  const size_t colon = text.find(':');
  if (colon == std::string::npos) refuse(kKey, text, kExpected);
  return {parsed_number(kKey, text.substr(0, colon), 1, kMostTokens, kExpected),
          parsed_number(kKey, text.substr(colon + 1), 1, 10'000'000, kExpected)};
}

std::string on_off(bool on) {
  return on ? "on" : "off";
}

std::string mesh_text(const mesh::Mesh& mesh) {
  return joined(mesh.axes, ", ",
                [](const mesh::MeshAxis& axis) { return axis.name + " " + std::to_string(axis.size); });
}

// Records the configuration of the server. Not called for an HTTP server, whose configuration is unknown.
void add_server(const experiment::BoundExperiment& config, formats::BenchSet& set) {
  auto& c = set.conditions;
  const options::Serving& serve = config.serve;
  c["kv_dtype"] = to_string(serve.kv_dtype);
  c["weight_dtype"] = serve.weight_dtype ? to_string(*serve.weight_dtype) : to_string(config.train.dtype);
  if (serve.products != model::DType::bf16) c["products"] = to_string(serve.products);
  c["prefix_cache"] = on_off(serve.prefix_cache);
  c["chunked_prefill"] = on_off(serve.chunked_prefill);
  c["sliding_window_kv"] = on_off(serve.sliding_window_kv);
  c["async_scheduling"] = on_off(serve.async_scheduling);
  if (serve.sampling != options::Sampling::greedy) c["sampling"] = to_string(serve.sampling);
  c["block_size"] = std::to_string(serve.block_size);
  c["max_num_seqs"] = std::to_string(serve.max_num_seqs);
  c["max_num_batched_tokens"] = std::to_string(serve.max_num_batched_tokens);
  c["max_model_len"] = std::to_string(serve.max_model_len);
  if (const std::string mesh = mesh_text(config.mesh); !mesh.empty()) c["mesh"] = mesh;
  for (const mesh::MeshAxis& axis : config.mesh.axes)
    if (axis.name == "tp") c["tp"] = std::to_string(axis.size);
}

void add_load(const options::Sweep& sweep, formats::BenchSet& set) {
  auto& c = set.conditions;
  c["arrival"] = to_string(sweep.arrival);
  if (sweep.burstiness != 1) c["burstiness"] = number_text(sweep.burstiness);
  if (sweep.concurrency > 0) c["concurrency"] = std::to_string(sweep.concurrency);
  c["lengths"] = to_string(sweep.lengths);
  c["prompts"] = to_string(sweep.prompts);
  if (sweep.shared_prefixes > 1) c["shared_prefixes"] = std::to_string(sweep.shared_prefixes);
  c["num_prompts"] = std::to_string(sweep.num_prompts);
  for (const std::string& text : sweep.num_prompts_at) c["num_prompts"] += ", " + text;
  c["output_len"] = std::to_string(sweep.output_len);
  c["seed"] = std::to_string(sweep.seed);
}

}  // namespace

options::SweepBackend sweep_backend(const experiment::BoundExperiment& config) {
  return config.sweep.backend.value_or(config.target.id == "cpu" ? options::SweepBackend::engine
                                                                 : options::SweepBackend::model);
}

SweepSettings sweep_settings(const experiment::BoundExperiment& config) {
  SweepSettings s;
  s.request_rates = numbers<double>(config.sweep.request_rates, "sweep.request_rates", rate_of);
  s.input_lens = numbers<int>(config.sweep.input_lens, "sweep.input_lens", [](const std::string& text) {
    return parsed_number("sweep.input_lens", text, 1, kMostTokens, "whole numbers of tokens from 1");
  });
  for (const std::string& text : config.sweep.num_prompts_at) s.num_prompts_at.push_back(num_prompts_at(text));
  s.load = config.sweep;
  s.repeats = config.sweep.repeats;
  s.slo = config.sweep.slo;
  if (s.load.arrival == options::Arrival::closed && s.load.concurrency < 1)
    refuse("sweep.concurrency", std::to_string(s.load.concurrency), "users of the closed loop, from 1");
  if (s.load.lengths == options::LengthDistribution::recorded && s.load.workload.empty())
    refuse("sweep.workload", "nothing", "the file of recorded requests");
  if (config.sweep.replicas > 1 && sweep_backend(config) != options::SweepBackend::model)
    refuse("sweep.replicas",
           std::to_string(config.sweep.replicas) + " with the backend " + std::string(to_string(sweep_backend(config))),
           "1: only the backend model simulates several servers");
  const int longest = *std::max_element(s.input_lens.begin(), s.input_lens.end()) + s.load.output_len;
  if (longest > config.serve.max_model_len)
    refuse("serve.max_model_len", counted(config.serve.max_model_len, "token"),
           ("at least " + std::to_string(longest) + ": the longest prompt and its answer").c_str());
  const double spread = s.load.lengths == options::LengthDistribution::uniform ? s.load.spread : 0;
  const int prompt =
      static_cast<int>(std::ceil(*std::max_element(s.input_lens.begin(), s.input_lens.end()) * (1 + spread)));
  if (!config.serve.chunked_prefill && prompt > config.serve.max_num_batched_tokens)
    refuse(
        "serve.max_num_batched_tokens", counted(config.serve.max_num_batched_tokens, "token"),
        ("at least " + std::to_string(prompt) + ": without serve.chunked_prefill a step must hold the longest prompt")
            .c_str());
  return s;
}

SchedulerSettings scheduler_settings(const options::Serving& serve) {
  return {.max_num_seqs = serve.max_num_seqs,
          .max_num_batched_tokens = serve.max_num_batched_tokens,
          .max_model_len = serve.max_model_len,
          .chunked_prefill = serve.chunked_prefill ? ChunkedPrefill::on : ChunkedPrefill::off,
          .prefix_cache = serve.prefix_cache ? PrefixCache::on : PrefixCache::off,
          .policy = serve.policy,
          .kv = {.block_size = serve.block_size, .groups = {}, .capacity = {}}};
}

formats::BenchSet sweep_facts(const experiment::BoundExperiment& config, const hardware::Catalogue& catalogue) {
  const options::SweepBackend backend = sweep_backend(config);
  formats::BenchSet set;
  set.name = config.name;
  set.provenance = backend == options::SweepBackend::model ? formats::ResultProvenance::predicted
                                                           : formats::ResultProvenance::measured;
  set.tool = std::string("meshwright ") + MW_VERSION + ", " + std::string(to_string(backend));
  set.model = config.model.id.empty() ? config.model.path.filename().string() : config.model.id;
  if (backend == options::SweepBackend::http) {
    set.source = without_url_secrets(config.sweep.url);
    if (!config.sweep.model.empty()) set.model = config.sweep.model;
  } else {
    set.target = config.target.id;
    const hardware::Target target = catalogue.target(set.target);
    set.chips = target.chips() * config.sweep.replicas;
    double each = config.price.usd_per_chip_hour;
    if (const auto* price = catalogue.price(target.chip.id, config.price.region, config.price.price_class);
        each == 0 && price)
      each = price->usd_per_chip_hour;
    if (each > 0) set.usd_per_hour = each * set.chips;
    add_server(config, set);
    if (config.sweep.replicas > 1) {
      set.conditions["replicas"] = std::to_string(config.sweep.replicas);
      set.conditions["routing"] = to_string(config.sweep.routing);
    }
  }
  add_load(config.sweep, set);
  return set;
}

}  // namespace mw::serve
