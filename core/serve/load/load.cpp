// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/load.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/rng.h"
#include "core/base/text.h"
#include "core/base/units.h"

namespace mw::serve {
namespace {

constexpr std::uint64_t kMaxBytes = 1ull << 30;
constexpr double kMaxTokens = 1 << 24;  // of a prompt or a completion

using Names = std::vector<std::string>;  // of a column, the preferred one first
const Names kArrival{"arrival_s", "arrival", "arrived_at", "intended_s", "time_s"};
const Names kPrompt{"prompt_tokens", "prompt_len", "input_len", "input_tokens", "num_prefill_tokens"};
const Names kOutput{"output_tokens", "output_len", "num_decode_tokens"};

struct Place {
  const std::filesystem::path& file;
  std::string at;
};

[[noreturn]] void reject(const Place& place, std::string message, std::string found, std::string expected) {
  throw Error("WORKLOAD", std::move(message),
              {.file = place.file.string(),
               .place = place.at,
               .found = valid_utf8(found.substr(0, 60)),
               .expected = std::move(expected),
               .fix = "give arrival_s, prompt_tokens and output_tokens for each request"});
}

RecordedRequest checked(const Place& place, double at_s, double prompt, double output) {
  if (!std::isfinite(at_s) || std::abs(at_s) > 1e12)
    reject(place, "the arrival is not a time", std::to_string(at_s), "seconds");
  for (const double tokens : {prompt, output})
    if (!(tokens >= 1 && tokens <= kMaxTokens && tokens == std::floor(tokens)))
      reject(place, "the length is not a number of tokens", number_text(tokens), "a whole number, at least 1");
  return {at_s, static_cast<int>(prompt), static_cast<int>(output)};
}

std::vector<std::string_view> fields(std::string_view line) {
  std::vector<std::string_view> all;
  for (;;) {
    const size_t comma = line.find(',');
    std::string_view field = line.substr(0, comma);
    while (!field.empty() && (field.front() == ' ' || field.front() == '"')) field.remove_prefix(1);
    while (!field.empty() && (field.back() == ' ' || field.back() == '"')) field.remove_suffix(1);
    all.push_back(field);
    if (comma == std::string_view::npos) return all;
    line.remove_prefix(comma + 1);
  }
}

std::optional<size_t> column(const std::vector<std::string_view>& header, const Names& names) {
  for (const std::string& name : names)
    if (const auto it = std::find(header.begin(), header.end(), name); it != header.end())
      return static_cast<size_t>(it - header.begin());
  return std::nullopt;
}

double number_in(const Place& place, const std::vector<std::string_view>& row, size_t column) {
  const std::string_view field = column < row.size() ? row[column] : std::string_view{};
  const auto value = parse_number<double>(field);
  if (!value) reject(place, "no number in column " + std::to_string(column + 1), std::string(field), "a number");
  return *value;
}

std::vector<RecordedRequest> from_csv(std::string_view text, const std::filesystem::path& file) {
  const std::string_view first = take_line(text);
  const auto header = fields(first);
  const auto at = column(header, kArrival), prompt = column(header, kPrompt), output = column(header, kOutput);
  if (!prompt || !output)
    reject({file, "line 1"}, "the header lacks columns", std::string(first), "arrival_s,prompt_tokens,output_tokens");
  std::vector<RecordedRequest> all;
  for (long line = 2; !text.empty(); ++line) {
    const std::string_view content = take_line(text);
    if (content.find_first_not_of(" \t") == std::string_view::npos) continue;
    const Place place{file, "line " + std::to_string(line)};
    const auto row = fields(content);
    all.push_back(checked(place, at ? number_in(place, row, *at) : 0, number_in(place, row, *prompt),
                          number_in(place, row, *output)));
  }
  return all;
}

std::optional<double> number_of(const Place& place, const Json& row, const Names& names) {
  for (const std::string& name : names)
    if (const auto it = row.find(name); it != row.end()) {
      if (!it->is_number()) reject(place, "\"" + name + "\" is not a number", json_excerpt(*it), "a number");
      return it->get<double>();
    }
  return std::nullopt;
}

RecordedRequest row_of(const Place& place, const Json& row) {
  if (!row.is_object())
    reject(place, "the value is not a request", json_excerpt(row), "{\"arrival_s\": 0.5, \"prompt_tokens\": ...}");
  const auto prompt = number_of(place, row, kPrompt), output = number_of(place, row, kOutput);
  if (!prompt || !output)
    reject(place, "the request has no lengths", json_excerpt(row), "\"prompt_tokens\" and \"output_tokens\"");
  return checked(place, number_of(place, row, kArrival).value_or(0), *prompt, *output);
}

bool is_result(const Json& json) {
  return json.is_object() && (json.contains("input_lens") || json.contains("requests"));
}

std::vector<RecordedRequest> requests_of(const Place& place, const formats::BenchPoint& point) {
  std::vector<RecordedRequest> all;
  for (const formats::RequestResult& r : point.requests)
    if (r.completed()) all.push_back(checked(place, r.intended_s, r.prompt_tokens, r.output_tokens));
  if (all.empty())
    reject(place, "the result does not contain its requests", "a summary", "a result that was saved with its requests");
  return all;
}

std::vector<RecordedRequest> from_document(const Json& json, const std::filesystem::path& file) {
  if (is_result(json)) return requests_of({file, ""}, formats::bench_point(json));
  if (json.is_object() && json.contains("points")) {
    const formats::BenchSet set = formats::bench_set(json);
    if (set.points.size() != 1)
      reject({file, "points"}, "the result has more than one point or none", counted(set.points.size(), "point"),
             "a result of one point");
    return requests_of({file, "points[0]"}, set.points.front());
  }
  if (json.is_object()) return {row_of({file, ""}, json)};
  std::vector<RecordedRequest> all;
  for (const Json& row : json) all.push_back(row_of({file, "[" + std::to_string(all.size()) + "]"}, row));
  return all;
}

std::vector<RecordedRequest> from_lines(std::string_view text, const std::filesystem::path& file) {
  std::vector<RecordedRequest> all;
  for (long line = 1; !text.empty(); ++line) {
    const std::string_view content = take_line(text);
    if (content.find_first_not_of(" \t") == std::string_view::npos) continue;
    const Place place{file, "line " + std::to_string(line)};
    const Json row = parse_json(content, file.string() + ", " + place.at);
    if (is_result(row))
      reject(place, "the file has several results", "one result per line", "one result, or one request per line");
    all.push_back(row_of(place, row));
  }
  return all;
}

// Whether the text has more than one line and the first is a JSON document.
bool is_jsonl(std::string_view text) {
  const std::string_view first = take_line(text);
  return text.find_first_not_of(" \t\r\n") != std::string_view::npos && Json::accept(first);
}

}  // namespace

std::vector<RecordedRequest> read_workload(const std::filesystem::path& file) {
  const std::string content = read_text(file, kMaxBytes);
  std::string_view text = content;
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(" \t\r\n")));
  const bool json = text.starts_with('{') || text.starts_with('[');
  std::vector<RecordedRequest> all = !json            ? from_csv(text, file)
                                     : is_jsonl(text) ? from_lines(text, file)
                                                      : from_document(parse_json(text, file.string()), file);
  if (all.empty())
    reject({file, ""}, "the file has no requests", std::to_string(content.size()) + " bytes", "one request per line");
  std::stable_sort(all.begin(), all.end(),
                   [](const RecordedRequest& a, const RecordedRequest& b) { return a.at_s < b.at_s; });
  const double first = all.front().at_s;
  for (RecordedRequest& r : all) r.at_s -= first;
  return all;
}

double GammaIntervals::uniform() {
  const std::uint32_t high = static_cast<std::uint32_t>(bits_()) >> 5, low = static_cast<std::uint32_t>(bits_()) >> 6;
  return (high * 67108864.0 + low) * 0x1p-53;
}

double GammaIntervals::exponential() {
  return -std::log(1 - uniform());
}

// Marsaglia's polar method.
double GammaIntervals::normal() {
  if (has_kept_) {
    has_kept_ = false;
    return kept_;
  }
  double first = 0, second = 0, square = 0;
  do {
    first = 2 * uniform() - 1, second = 2 * uniform() - 1;
    square = first * first + second * second;
  } while (square >= 1 || square == 0);
  const double factor = std::sqrt(-2 * std::log(square) / square);
  kept_ = factor * first, has_kept_ = true;
  return factor * second;
}

// Marsaglia and Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000).
double GammaIntervals::gamma_above_one(double shape) {
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    double x = 0, v = 0;
    do {
      x = normal();
      v = 1 + c * x;
    } while (v <= 0);
    v = v * v * v;
    const double u = uniform();
    if (u < 1 - 0.0331 * (x * x) * (x * x) || std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v))) return d * v;
  }
}

// Ahrens and Dieter, "Computer methods for sampling from gamma, beta, poisson and binomial distributions" (1974), with
// an exponential in the place of the second uniform number.
double GammaIntervals::gamma_below_one(double shape) {
  for (;;) {
    const double u = uniform(), limit = exponential();
    if (u <= 1 - shape) {
      if (const double x = std::pow(u, 1 / shape); x <= limit) return x;
    } else {
      const double y = -std::log((1 - u) / shape);
      if (const double x = std::pow(1 - shape + shape * y, 1 / shape); x <= limit + y) return x;
    }
  }
}

double GammaIntervals::next(double shape) {
  if (shape == 1) return exponential();
  return shape < 1 ? gamma_below_one(shape) : gamma_above_one(shape);
}

RandomArrivals::RandomArrivals(std::uint64_t seed, double burstiness, std::int64_t requests)
    : burstiness_(burstiness), intervals_(seed) {
  GammaIntervals all(seed);
  double total = 0;
  for (std::int64_t i = 0; i < requests; ++i) total += all.next(burstiness);
  if (total > 0) scale_ = static_cast<double>(requests) / total;
}

double RandomArrivals::next() {
  return scale_ * (time_ += intervals_.next(burstiness_));
}

namespace {

namespace stream {  // random streams of a seed
constexpr std::uint64_t kLengths = 2, kPrompts = 3, kShared = 4, kWarmups = 5, kTokens = 6, kChoices = 7;
}

Error load_error(std::string message, std::string place, std::string found, std::string expected) {
  return Error("LOAD", std::move(message),
               {.place = std::move(place), .found = std::move(found), .expected = std::move(expected)});
}

void require(bool good, const char* key, double found, const char* expected) {
  if (!good) throw load_error("invalid load", key, number_text(found), expected);
}

void check(const options::LoadSettings& s) {
  require(s.num_prompts >= 1, "num_prompts", s.num_prompts, "at least 1 request");
  require(s.warmups >= 0, "warmups", s.warmups, "0 or more");
  require(s.input_len >= 1, "input_len", s.input_len, "at least one token");
  require(s.output_len >= 1, "output_len", s.output_len, "at least one token");
  require(s.shared_prefix >= 0, "shared_prefix", s.shared_prefix, "0 or more tokens");
  require(s.shared_prefixes >= 1, "shared_prefixes", s.shared_prefixes, "at least 1");
  require(s.concurrency >= 0, "concurrency", s.concurrency, "0 or more requests");
  require(s.spread >= 0 && s.spread <= 1, "spread", s.spread, "0 to 1");
  if (s.arrival == options::Arrival::poisson || s.arrival == options::Arrival::constant)
    require(s.request_rate > 0, "request_rate", s.request_rate, "more than 0 requests/s");
  if (s.arrival == options::Arrival::recorded)
    require(s.request_rate >= 0, "request_rate", s.request_rate, "0 (its own pace) or more requests/s");
  if (s.arrival == options::Arrival::poisson)
    require(s.burstiness > 0 && std::isfinite(s.burstiness), "burstiness", s.burstiness, "more than 0");
  if (s.arrival == options::Arrival::closed)
    require(s.concurrency >= 1, "concurrency", s.concurrency, "at least one user");
  if ((s.lengths == options::LengthDistribution::recorded || s.arrival == options::Arrival::recorded) &&
      s.workload.empty())
    throw load_error("the load needs a recorded workload", "workload", "none", "a CSV, JSONL or result file");
}

bool is_burst(const options::LoadSettings& s) {
  return s.arrival == options::Arrival::burst || s.arrival == options::Arrival::closed || std::isinf(s.request_rate);
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
  Impl(const options::LoadSettings& from, Part which) : settings(from), part(which) {
    check(settings);
    if (settings.lengths == options::LengthDistribution::recorded || settings.arrival == options::Arrival::recorded)
      recorded = read_workload(settings.workload);
    if (settings.arrival == options::Arrival::recorded && !is_burst(settings)) rate = mean_rate(recorded);
    if (settings.arrival == options::Arrival::recorded && settings.request_rate == 0) settings.request_rate = rate;
    const std::uint64_t salt = mix64(settings.salt + 1);
    prompts = Rng{settings.seed, part == Part::requests ? stream::kPrompts : stream::kWarmups, salt};
    shared = Rng{settings.seed, stream::kShared, salt};
    if (part == Part::requests && settings.arrival == options::Arrival::poisson && !is_burst(settings))
      arrivals.emplace(settings.seed, settings.burstiness, settings.num_prompts);
  }

  // With the same seed, another rate only scales the times.
  double arrival() {
    if (part == Part::warmups || is_burst(settings)) return 0;
    if (settings.arrival == options::Arrival::recorded) {  // the workload repeats, with a mean interval between
      const size_t i = static_cast<size_t>(made), n = recorded.size(), rounds = i / n;
      return rate / settings.request_rate * (static_cast<double>(rounds * n) / rate + recorded[i % n].at_s);
    }
    return (arrivals ? arrivals->next() : static_cast<double>(made)) / settings.request_rate;
  }

  std::pair<int, int> prompt_and_output() {  // tokens
    if (settings.lengths == options::LengthDistribution::uniform) {
      const int prompt = uniform_length(lengths, settings.input_len, settings.spread);
      return {prompt, uniform_length(lengths, settings.output_len, settings.spread)};
    }
    if (settings.lengths == options::LengthDistribution::recorded) {
      const RecordedRequest& same = recorded[static_cast<size_t>(made) % recorded.size()];
      return {same.prompt_len, same.output_len};
    }
    return {settings.input_len, settings.output_len};
  }

  options::LoadSettings settings;
  Part part;
  std::vector<RecordedRequest> recorded;
  double rate = 0;  // of the recorded requests
  std::optional<RandomArrivals> arrivals{};
  Rng lengths{settings.seed, stream::kLengths}, prompts{}, shared{};
  std::int64_t made = 0;
};

LoadStream::LoadStream(const options::LoadSettings& settings, Part part)
    : impl_(std::make_unique<Impl>(settings, part)) {}
LoadStream::~LoadStream() = default;

const options::LoadSettings& LoadStream::settings() const {
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

Load make_load(const options::LoadSettings& settings) {
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
    throw load_error("there are no token ids for prompts", "vocabulary", counted(vocab, "token"),
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
