// SPDX-License-Identifier: Apache-2.0
#include "core/formats/results/bench_result.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <set>

#include "core/base/text.h"
#include "core/base/units.h"
#include "core/formats/results/bench_fields.h"
#include "core/formats/results/bench_requests.h"

namespace mw::formats {
namespace {

// Computes percentiles in ascending order by selection instead of sorting: a long sweep has millions of values.
class Ranks {
 public:
  explicit Ranks(std::vector<double>& values) : values_(values) {}
  double at(double p) {
    const double rank = std::clamp(p, 0.0, 100.0) / 100 * static_cast<double>(values_.size() - 1);
    const auto below = static_cast<std::ptrdiff_t>(rank);
    std::nth_element(values_.begin() + done_, values_.begin() + below, values_.end());
    done_ = below;
    const double low = values_[static_cast<size_t>(below)];
    const auto above = std::min_element(values_.begin() + below + 1, values_.end());
    return above == values_.end() ? low : low + (rank - static_cast<double>(below)) * (*above - low);
  }

 private:
  std::vector<double>& values_;
  std::ptrdiff_t done_ = 0;  // values before this index are no larger than the others
};

std::vector<double> known_of(std::vector<double> values) {
  std::erase_if(values, [](double v) { return std::isnan(v); });
  return values;
}

using bench::bad;

// Tables shared by reading and writing.
template <class Value>
struct Field {
  const char* key;
  Value BenchPoint::*field;
};
constexpr Field<long> kCounts[]{{"num_prompts", &BenchPoint::num_prompts},
                                {"completed", &BenchPoint::completed},
                                {"failed", &BenchPoint::failed},
                                {"total_input_tokens", &BenchPoint::total_input_tokens},
                                {"total_output_tokens", &BenchPoint::total_output_tokens}};
constexpr Field<double> kNumbers[]{{"duration", &BenchPoint::duration_s},
                                   {"request_throughput", &BenchPoint::request_throughput},
                                   {"request_goodput", &BenchPoint::request_goodput},
                                   {"output_throughput", &BenchPoint::output_throughput},
                                   {"total_token_throughput", &BenchPoint::total_token_throughput},
                                   {"max_output_tokens_per_s", &BenchPoint::max_output_tokens_per_s},
                                   {"max_concurrent_requests", &BenchPoint::max_concurrent_requests},
                                   {"prefix_hits", &BenchPoint::prefix_hits}};
constexpr Field<LatencyStats> kLatencies[]{{"ttft", &BenchPoint::ttft},
                                           {"tpot", &BenchPoint::tpot},
                                           {"itl", &BenchPoint::itl},
                                           {"e2el", &BenchPoint::e2el},
                                           {"intended_ttft", &BenchPoint::intended_ttft},
                                           {"intended_e2el", &BenchPoint::intended_e2el},
                                           {"e2el_including_client_queue", &BenchPoint::intended_e2el}};  // vLLM's name

constexpr std::array kVerdicts{"stable", "backlogged", "overloaded"};

std::string percent_text(double p) {  // 99 -> "99", 99.9 -> "99.9", as in vLLM's field names
  std::array<char, 32> text{};
  char* const end = std::to_chars(text.data(), text.data() + text.size(), p).ptr;
  return {text.data(), end};
}

void put(Json& out, const std::string& key, double value) {
  if (!std::isnan(value)) out[key] = value;
}

void put(Json& out, const std::string& name, const LatencyStats& stats) {
  put(out, "mean_" + name + "_ms", stats.mean);
  put(out, "median_" + name + "_ms", stats.median);
  put(out, "std_" + name + "_ms", stats.deviation);
  for (const auto& [p, value] : stats.percentiles) put(out, "p" + percent_text(p) + "_" + name + "_ms", value);
}

// Reads fields such as "p99.9_ttft_ms"; false if the key is not a latency.
bool take_latency(BenchPoint& point, const std::string& key, const Json& value) {
  if (!key.ends_with("_ms")) return false;
  const size_t underscore = key.find('_');
  const std::string what = key.substr(0, underscore);
  if (underscore + 1 >= key.size() - 3) return false;
  const std::string name = key.substr(underscore + 1, key.size() - 3 - underscore - 1);
  const auto* const found =
      std::find_if(std::begin(kLatencies), std::end(kLatencies), [&](const auto& l) { return name == l.key; });
  if (found == std::end(kLatencies)) return false;
  LatencyStats& stats = point.*(found->field);
  const auto known = [&] { return value.is_null() ? kUnknown : bench::number_of(value, key); };
  if (what == "mean") return stats.mean = known(), true;
  if (what == "median") return stats.median = known(), true;
  if (what == "std") return stats.deviation = known(), true;
  const auto p = what.starts_with('p') ? parse_number<double>(what.substr(1)) : std::nullopt;
  if (!p) return false;
  if (!(*p >= 0 && *p <= 100)) bad(key, what, "a percentile from p0 to p100");
  if (!value.is_null()) stats.percentiles[*p] = known();
  return true;
}

double rate_of(const Json& point) {
  const Json* found = find_member(point, "request_rate");
  if (!found) return kUnknown;
  if (found->is_string() && (*found == "inf" || *found == "Infinity")) return std::numeric_limits<double>::infinity();
  if (!found->is_number() || !(found->get<double>() > 0) || !std::isfinite(found->get<double>()))
    bad("request_rate", *found, "requests per second above 0, or \"inf\"");
  return found->get<double>();
}

bool has(const auto& table, const std::string& key) {
  return std::any_of(std::begin(table), std::end(table), [&](const auto& row) { return key == row.key; });
}

// Fields that are read by name; others go to `rest`.
const std::set<std::string>& named_fields() {
  static const std::set<std::string> names = [] {
    std::set<std::string> all{"request_rate", "max_concurrency", "burstiness", "input_len",
                              "output_len",   "verdict",         "note",       "timeline",
                              "steps",        "generated_texts", "cold"};
    for (const std::string& key : bench::request_fields()) all.insert(key);
    return all;
  }();
  return names;
}

Json timeline_json(const std::vector<LoadSample>& samples) {
  Json all = Json::array();
  for (const LoadSample& s : samples)
    all.push_back({{"time_s", s.time_s},
                   {"running", s.running},
                   {"waiting", s.waiting},
                   {"kv_used", s.kv_used},
                   {"output_tokens_s", s.output_tokens_s}});
  return all;
}

std::vector<LoadSample> read_timeline(const Json& list) {
  std::vector<LoadSample> samples;
  for (const Json& s : list) {
    if (!s.is_object()) bad("timeline", s, "an object with time_s, running, waiting, kv_used, output_tokens_s");
    const auto known = [](double v) { return std::isnan(v) ? 0 : v; };
    samples.push_back({.time_s = known(bench::number(s, "time_s")),
                       .running = static_cast<int>(bench::count(s, "running", 1 << 30)),
                       .waiting = static_cast<int>(bench::count(s, "waiting", 1 << 30)),
                       .kv_used = known(bench::number(s, "kv_used")),
                       .output_tokens_s = known(bench::number(s, "output_tokens_s"))});
  }
  return samples;
}

// One row of numbers per entry, to keep the JSON short.
Json steps_json(const std::vector<TimedStep>& steps) {
  Json all = Json::array();
  for (const TimedStep& s : steps) {
    const ServingStepWork& w = s.work;
    all.push_back({w.tokens, w.requests, w.sampled, w.read, w.pairs, s.seconds, std::lround(s.count)});
    if (!std::isnan(s.progress)) all.back().push_back(s.progress);
  }
  return all;
}

std::vector<TimedStep> read_steps(const Json& list) {
  std::vector<TimedStep> steps;
  for (const Json& row : list) {
    if (!row.is_array() || row.size() < 7 || row.size() > 8)
      bad("steps", row, "seven or eight numbers: tokens, requests, sampled, read, pairs, seconds, count, progress");
    const auto at = [&](size_t i) { return bench::number_of(row[i], "steps"); };
    const auto count = static_cast<double>(bench::count_of(row[6], "steps"));
    steps.push_back({{at(0), at(1), at(2), at(3), at(4)}, at(5), count});
    TimedStep& s = steps.back();
    if (!(s.work.tokens > 0 && s.work.requests > 0 && s.seconds > 0 && s.count > 0))
      bad("steps", row, "tokens, requests, seconds and count above 0");
    if (row.size() == 8) s.progress = at(7);
    if (s.progress > 1) bad("steps", row, "a progress from 0 to 1");
  }
  return steps;
}

template <NamedEnum Enum>
void choose(Enum& value, const Json& object, const std::string& key) {
  const std::string text = bench::text(object, key);
  if (text.empty()) return;
  const auto chosen = parse<Enum>(text);
  const std::vector<std::string> all(kEnumNames<Enum>.begin(), kEnumNames<Enum>.end());
  if (!chosen) bad(key, text, nearest_names_text(text, all, all.size()));
  value = *chosen;
}

const std::vector<std::string> kSetFields{"format",      "name",   "provenance", "tool",         "source",
                                          "model",       "target", "chips",      "usd_per_hour", "conditions",
                                          "definitions", "notes",  "points"};

}  // namespace

double LatencyStats::percentile(double p) const {
  if (p == 50 && !std::isnan(median)) return median;
  const auto found = percentiles.find(p);
  return found == percentiles.end() ? kUnknown : found->second;
}

double percentile_of(std::vector<double> values, double p) {
  values = known_of(std::move(values));
  return values.empty() ? kUnknown : Ranks(values).at(p);
}

LatencyStats latency_stats(const std::vector<double>& ms) {
  LatencyStats stats;
  std::vector<double> values = known_of(ms);
  if (values.empty()) return stats;
  const auto n = static_cast<double>(values.size());
  stats.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double v : values) squares += (v - stats.mean) * (v - stats.mean);
  stats.deviation = std::sqrt(squares / n);
  Ranks ranks(values);
  for (const double p : {25, 50, 75, 90, 95, 99}) (p == 50 ? stats.median : stats.percentiles[p]) = ranks.at(p);
  return stats;
}

Json to_json(const BenchPoint& point, Detail detail) {
  Json out = Json::object();
  if (std::isinf(point.request_rate))
    out["request_rate"] = "inf";
  else
    put(out, "request_rate", point.request_rate);
  out["burstiness"] = point.burstiness;
  out["max_concurrency"] = point.max_concurrency > 0 ? Json(point.max_concurrency) : Json(nullptr);
  out["input_len"] = point.input_len;
  out["output_len"] = point.output_len;
  for (const auto& c : kCounts) out[c.key] = point.*c.field;
  for (const auto& n : kNumbers) put(out, n.key, point.*n.field);
  std::set<std::string> written;
  for (const auto& l : kLatencies)
    if (&(point.*l.field) != &point.intended_e2el || written.insert("intended_e2el").second)
      put(out, l.key, point.*l.field);
  if (!point.verdict.empty()) out["verdict"] = point.verdict;
  if (point.is_cold) out["cold"] = true;
  if (!point.note.empty()) out["note"] = point.note;
  for (const auto& [key, value] : point.rest.items())
    if (!out.contains(key)) out[key] = value;
  if (detail == Detail::requests) {
    if (!point.requests.empty()) bench::add_requests(out, point.requests);
    if (!point.timeline.empty()) out["timeline"] = timeline_json(point.timeline);
    if (!point.steps.empty()) out["steps"] = steps_json(point.steps);
  }
  return out;
}

BenchPoint bench_point(const Json& json) {
  if (!json.is_object()) bad("", json, "an object with the fields of a vLLM benchmark result");
  BenchPoint point;
  point.request_rate = rate_of(json);
  point.max_concurrency = static_cast<int>(bench::count(json, "max_concurrency", 1 << 30));
  if (const double b = bench::number(json, "burstiness"); b > 0) point.burstiness = b;
  point.input_len = static_cast<int>(bench::count(json, "input_len", 1 << 30));
  point.output_len = static_cast<int>(bench::count(json, "output_len", 1 << 30));
  for (const auto& c : kCounts) point.*c.field = static_cast<long>(bench::count(json, c.key));
  for (const auto& n : kNumbers) point.*n.field = bench::number(json, n.key);
  if (std::isnan(point.request_goodput))
    point.request_goodput = bench::number(json, "request_goodput:");  // older versions of vLLM
  point.verdict = bench::text(json, "verdict");
  if (!point.verdict.empty() && std::find(kVerdicts.begin(), kVerdicts.end(), point.verdict) == kVerdicts.end())
    bad("verdict", point.verdict, "stable, backlogged or overloaded");
  point.note = bench::text(json, "note");
  if (const Json* cold = find_member(json, "cold")) point.is_cold = *cold == true;
  point.requests = bench::read_requests(json);
  if (const Json* list = bench::list(json, "timeline")) point.timeline = read_timeline(*list);
  if (const Json* list = bench::list(json, "steps")) point.steps = read_steps(*list);
  for (const auto& [key, value] : json.items()) {
    if (key == "request_goodput:" || has(kCounts, key) || has(kNumbers, key) || named_fields().contains(key) ||
        take_latency(point, key, value))
      continue;
    point.rest[key] = value;
  }
  return point;
}

std::string BenchSet::condition(const std::string& key) const {
  const auto found = conditions.find(key);
  return found == conditions.end() ? std::string() : found->second;
}

Json to_json(const BenchSet& set, Detail detail) {
  Json out{{"format", "meshwright-bench"}, {"name", set.name}, {"provenance", to_string(set.provenance)}};
  for (const auto& [key, value] :
       {std::pair("tool", &set.tool), {"source", &set.source}, {"model", &set.model}, {"target", &set.target}})
    if (!value->empty()) out[key] = *value;
  if (set.chips > 0) out["chips"] = set.chips;
  put(out, "usd_per_hour", set.usd_per_hour);
  if (!set.conditions.empty()) out["conditions"] = set.conditions;
  out["definitions"] = {{"tpot", to_string(set.definitions.tpot)},
                        {"start", to_string(set.definitions.start)},
                        {"peak", to_string(set.definitions.peak)}};
  if (!set.notes.empty()) out["notes"] = set.notes;
  out["points"] = Json::array();
  for (const BenchPoint& point : set.points) out["points"].push_back(to_json(point, detail));
  return out;
}

BenchSet bench_set(const Json& json) {
  if (!json.is_object()) bad("", json, "an object with a name and points");
  for (const auto& [key, value] : json.items())
    if (std::find(kSetFields.begin(), kSetFields.end(), key) == kSetFields.end())
      bad(key, key, "one of " + nearest_names_text(key, kSetFields, kSetFields.size()));
  if (const std::string format = bench::text(json, "format"); !format.empty() && format != "meshwright-bench")
    bad("format", format, "meshwright-bench");
  BenchSet set;
  set.name = bench::text(json, "name");
  choose(set.provenance, json, "provenance");
  set.tool = bench::text(json, "tool");
  set.source = bench::text(json, "source");
  set.model = bench::text(json, "model");
  set.target = bench::text(json, "target");
  set.chips = static_cast<int>(bench::count(json, "chips", 1 << 24));
  set.usd_per_hour = bench::number(json, "usd_per_hour");
  if (json.contains("conditions")) {
    if (!json["conditions"].is_object()) bad("conditions", json["conditions"], "an object of texts");
    for (const auto& [key, value] : json["conditions"].items())
      set.conditions[key] = bench::text_of(value, "conditions." + key);
  }
  if (json.contains("definitions")) {
    const Json& definitions = json["definitions"];
    if (!definitions.is_object()) bad("definitions", definitions, "an object with tpot, start, peak");
    bench::inside("definitions", [&] {
      choose(set.definitions.tpot, definitions, "tpot");
      choose(set.definitions.start, definitions, "start");
      choose(set.definitions.peak, definitions, "peak");
    });
  }
  if (const Json* notes = bench::list(json, "notes"))
    for (const Json& note : *notes) set.notes.push_back(bench::text_of(note, "notes"));
  if (const Json* points = bench::list(json, "points"))
    for (size_t i = 0; i < points->size(); ++i)
      set.points.push_back(
          bench::inside("points[" + std::to_string(i) + "]", [&] { return bench_point((*points)[i]); }));
  return set;
}

BenchSet& find_or_add_set(std::vector<BenchSet>& sets, const BenchSet& facts) {
  const auto same = [&](const BenchSet& s) {
    return s.name == facts.name && s.tool == facts.tool && s.model == facts.model && s.target == facts.target &&
           s.chips == facts.chips && s.conditions == facts.conditions && s.definitions == facts.definitions &&
           (s.usd_per_hour == facts.usd_per_hour || (std::isnan(s.usd_per_hour) && std::isnan(facts.usd_per_hour)));
  };
  const auto found = std::find_if(sets.begin(), sets.end(), same);
  return found != sets.end() ? *found : sets.emplace_back(facts);
}

void number_equal_names(std::vector<BenchSet>& sets) {
  std::map<std::string, int> counts, used;
  for (const BenchSet& set : sets) ++counts[set.name];
  for (BenchSet& set : sets)
    if (counts[set.name] > 1) set.name += " " + std::to_string(++used[set.name]);
}

}  // namespace mw::formats
