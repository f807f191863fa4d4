// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/http_backend.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>

#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/base/text.h"
#include "core/serve/load/metrics_poller.h"

namespace mw::serve {
namespace {

using namespace std::chrono_literals;
constexpr auto kAhead = 50ms;  // time for the thread of a request to prepare

HttpClock::duration seconds(double s) {
  return std::chrono::duration_cast<HttpClock::duration>(std::chrono::duration<double>(s));
}

}  // namespace

HttpLoadDriver::HttpLoadDriver(const HttpRequestSource& source, const std::vector<TimedRequest>& requests,
                               options::Arrival arrival, int max_in_flight, std::stop_token stop)
    : source_(source),
      requests_(requests),
      arrival_(arrival),
      max_in_flight_(static_cast<size_t>(std::max(max_in_flight, 1))),
      stop_(std::move(stop)),
      origin_(HttpClock::now() + 2 * kAhead),
      completions_(requests.size()) {
  for (StreamedCompletion& a : completions_) a.stopped = true;
}

std::vector<StreamedCompletion> HttpLoadDriver::run(const LoadBackend::OnProgress& progress) {
  for (size_t i = 0; i < requests_.size() && !stop_.stop_requested(); ++i) {
    if (arrival_ != options::Arrival::closed) wait_until(origin_ + seconds(requests_[i].at_s) - kAhead, progress);
    dispatch(i);
  }
  {
    const std::lock_guard lock(mutex_);
    all_dispatched_ = true;
    if (stop_.stop_requested()) due_.clear();
  }
  changed_.notify_all();
  wait_for_all(progress);
  workers_.clear();  // joins
  report(progress);
  return std::move(completions_);
}

void HttpLoadDriver::dispatch(size_t index) {
  bool needs_worker = false;
  {
    const std::lock_guard lock(mutex_);
    due_.push_back(index);
    needs_worker = due_.size() > idle_ && workers_.size() < max_in_flight_;
  }
  changed_.notify_all();
  if (!needs_worker) return;
  try {
    workers_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {  // no more threads: an existing one sends it, and the delay is measured
    if (workers_.empty()) throw;
  }
}

bool HttpLoadDriver::take(size_t& index) {
  std::unique_lock lock(mutex_);
  ++idle_;
  const bool has_due = changed_.wait(lock, stop_, [&] { return !due_.empty() || all_dispatched_; }) && !due_.empty();
  --idle_;
  if (!has_due || stop_.stop_requested()) return false;
  index = due_.front();
  due_.pop_front();
  return true;
}

void HttpLoadDriver::work() {
  StreamClient client(source_.target);
  for (size_t index = 0; take(index);) {
    send(client, index);
    {
      const std::lock_guard lock(mutex_);
      ++done_;
    }
    changed_.notify_all();
  }
}

void HttpLoadDriver::send(StreamClient& client, size_t index) {
  const TimedRequest& request = requests_[index];
  const std::string body = source_.body(request);
  if (arrival_ != options::Arrival::closed) std::this_thread::sleep_until(origin_ + seconds(request.at_s));
  StreamedCompletion completion = client.complete(body, source_.expected(request), origin_, stop_);
  completion.result.intended_s = arrival_ == options::Arrival::closed ? completion.result.sent_s : request.at_s;
  completion.text.clear();
  completions_[index] = std::move(completion);
}

void HttpLoadDriver::report(const LoadBackend::OnProgress& progress) {
  size_t done = 0;
  {
    const std::lock_guard lock(mutex_);
    done = done_;
  }
  if (progress && done != reported_) progress(static_cast<long>(done), static_cast<long>(requests_.size()));
  reported_ = done;
}

void HttpLoadDriver::wait_until(HttpClock::time_point time, const LoadBackend::OnProgress& progress) {
  while (HttpClock::now() < time && !stop_.stop_requested()) {
    std::this_thread::sleep_until(std::min(time, HttpClock::now() + 100ms));
    report(progress);
  }
}

void HttpLoadDriver::wait_for_all(const LoadBackend::OnProgress& progress) {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (changed_.wait_for(lock, 100ms, [&] { return done_ == requests_.size(); }) || stop_.stop_requested()) return;
    }
    report(progress);
  }
}

namespace {

constexpr std::array<std::string_view, 96> kWords = {
    "time",    "year",    "people", "way",     "day",     "man",     "thing",    "woman",    "life",   "child",
    "world",   "school",  "state",  "family",  "student", "group",   "country",  "problem",  "hand",   "part",
    "place",   "case",    "week",   "company", "system",  "program", "question", "work",     "number", "night",
    "point",   "home",    "water",  "room",    "mother",  "area",    "money",    "story",    "fact",   "month",
    "lot",     "right",   "study",  "book",    "eye",     "job",     "word",     "business", "issue",  "side",
    "kind",    "head",    "house",  "service", "friend",  "father",  "power",    "hour",     "game",   "line",
    "end",     "member",  "law",    "car",     "city",    "name",    "team",     "minute",   "idea",   "body",
    "back",    "parent",  "face",   "level",   "office",  "door",    "health",   "person",   "art",    "war",
    "history", "party",   "result", "change",  "morning", "reason",  "research", "girl",     "guy",    "moment",
    "air",     "teacher", "force",  "food",    "door",    "field"};

std::string sentence(std::uint64_t seed, std::uint64_t from, std::uint64_t count) {
  const Rng rng{seed, 0x776f726473};  // "words"
  std::string out;
  for (std::uint64_t i = from; i < from + count; ++i) {
    if (i > from) out += ' ';
    out += kWords[rng.at(i) % kWords.size()];
  }
  return out;
}

}  // namespace

WordPrompts::WordPrompts(const std::function<int(const std::string&)>& count) {
  constexpr int few = 32, many = 160;
  const int a = count(sentence(1, 0, few)), b = count(sentence(1, 0, many));
  if (b <= a || a < 1)
    throw Error("SERVER", "the server does not count prompt tokens",
                {.found = std::to_string(a) + " for " + counted(few, "word") + ", " + std::to_string(b) + " for " +
                          std::to_string(many),
                 .expected = "usage.prompt_tokens that grows with the prompt",
                 .fix = "set the model of the experiment, so that prompts can be sent as token ids"});
  per_word_ = static_cast<double>(b - a) / (many - few);
  fixed_ = a - per_word_ * few;
}

double WordPrompts::words(int tokens) const {
  return std::max(1.0, std::round((tokens - fixed_) / per_word_));
}

std::string WordPrompts::text(const TimedRequest& request) const {
  const auto all = static_cast<std::uint64_t>(words(request.prompt_len));
  const auto shared =
      std::min(all, static_cast<std::uint64_t>(request.shared > 0 ? std::floor(request.shared / per_word_) : 0));
  std::string out = sentence(request.shared_seed, 0, shared);
  if (shared > 0 && shared < all) out += ' ';
  return out + sentence(request.prompt_seed, shared, all - shared);
}

namespace {

constexpr double kLateSend = 0.005;  // s; a client that sends later than this distorts the latencies

std::string number(double x, const char* format = "%.3g") {
  char text[32];
  std::snprintf(text, sizeof text, format, x);
  return text;
}

Error server_error(const HttpTarget& target, const std::string& message, const std::string& found,
                   const std::string& expected, const std::string& fix = {}) {
  return Error("SERVER", message, {.place = target.url, .found = found, .expected = expected, .fix = fix});
}

std::string describe(const StreamClient::Response& response) {
  if (response.status == 0) return response.error;
  return "HTTP " + std::to_string(response.status) + " " + excerpt(response.body, 200);
}

class HttpBackend : public LoadBackend {
 public:
  explicit HttpBackend(HttpLoadOptions options) : options_(std::move(options)), client_(options_.target) {
    select_model();
  }
  LoadResult run(const Load& load, const OnProgress& progress, std::stop_token stop) override;

 private:
  void select_model();
  std::string request_body(const Json& prompt, int output_len) const;
  Json prompt_of(const TimedRequest& request) const;
  int count_tokens(const std::string& text);
  HttpRequestSource make_source() const;
  void warn(const Load& load, const std::vector<StreamedCompletion>& completions, LoadResult& result) const;

  HttpLoadOptions options_;
  StreamClient client_;
  std::optional<WordPrompts> words_;
};

void HttpBackend::select_model() {
  const HttpTarget& target = options_.target;
  const StreamClient::Response response = client_.get("/v1/models");
  if (response.status == 0)
    throw server_error(target, "no server completions", response.error, "an OpenAI-compatible server",
                       "start the server or check the address");
  if (response.status == 401 || response.status == 403)
    throw server_error(
        target, "the server refuses access", describe(response), "HTTP 200",
        "set MESHWRIGHT_API_KEY, or give user and password in the URL (they are not recorded; to resume a sweep, "
        "give the URL again with --url)");
  std::vector<std::string> names;
  const Json json = Json::parse(response.body, nullptr, false);
  if (json.is_object() && json.contains("data") && json["data"].is_array())
    for (const Json& m : json["data"])
      if (m.is_object() && m.contains("id") && m["id"].is_string()) names.push_back(m["id"].get<std::string>());
  std::string& wanted = options_.target.model;
  if (wanted.empty() && names.empty())
    throw server_error(target, "the server does not list its models", describe(response), "a list at /v1/models",
                       "set sweep.model");
  if (wanted.empty()) wanted = names.front();
  if (!names.empty() && std::find(names.begin(), names.end(), wanted) == names.end())
    throw server_error(target, "the server does not have this model", wanted,
                       "one of its models, e.g. " + names.front());
}

std::string HttpBackend::request_body(const Json& prompt, int output_len) const {
  return Json{{"model", options_.target.model},
              {"prompt", prompt},
              {"max_tokens", output_len},
              {"temperature", 0},
              {"ignore_eos", true},
              {"stream", true},
              {"stream_options", {{"include_usage", true}}}}
      .dump();
}

Json HttpBackend::prompt_of(const TimedRequest& request) const {
  if (words_) return words_->text(request);
  return prompt_ids(request, options_.first_id, options_.vocab);
}

// Returns the prompt tokens of `text` as the server counts them; 0 if it does not.
int HttpBackend::count_tokens(const std::string& text) {
  const Json body{{"model", options_.target.model}, {"prompt", text}, {"max_tokens", 1}, {"temperature", 0}};
  const StreamClient::Response response = client_.post("/v1/completions", body.dump());
  const Json json = Json::parse(response.body, nullptr, false);
  if (response.status != 200 || !json.is_object())
    throw server_error(options_.target, "the server cannot complete a short text", describe(response), "HTTP 200");
  const Json* usage = find_member(json, "usage");
  const Json* tokens = usage ? find_member(*usage, "prompt_tokens") : nullptr;
  return tokens && tokens->is_number() ? static_cast<int>(std::clamp(tokens->get<double>(), 0.0, 1e9)) : 0;
}

HttpRequestSource HttpBackend::make_source() const {
  return {.target = options_.target,
          .body = [this](const TimedRequest& r) { return request_body(prompt_of(r), r.output_len); },
          .expected =
              [this](const TimedRequest& r) {
                return ExpectedUsage{.prompt_tokens = r.prompt_len,
                                     .output_tokens = r.output_len,
                                     .prompt_slack = words_ ? r.prompt_len / 2 : 0};
              }};
}

LoadResult HttpBackend::run(const Load& load, const OnProgress& progress, std::stop_token stop) {
  if (options_.vocab == 0 && !words_) words_.emplace([this](const std::string& text) { return count_tokens(text); });
  const HttpRequestSource source = make_source();
  const options::LoadSettings& s = load.settings;
  const int limit = s.concurrency > 0 ? std::min(s.concurrency, options_.max_in_flight) : options_.max_in_flight;
  if (!load.warmups.empty()) HttpLoadDriver(source, load.warmups, options::Arrival::burst, limit, stop).run({});
  HttpLoadDriver driver(source, load.requests, s.arrival, limit, stop);
  MetricsPoller poller(options_.target, driver.origin());
  const std::vector<StreamedCompletion> completions = driver.run(progress);
  MetricsPoller::Observations observed = poller.finish();

  LoadResult result;
  result.timeline = std::move(observed.timeline);
  result.prefix_hits = observed.prefix_hits;
  double first = 0, last = 0;
  for (size_t i = 0; i < completions.size(); ++i) {
    if (completions[i].stopped) continue;
    formats::RequestResult r = completions[i].result;
    if (r.prompt_tokens == 0) r.prompt_tokens = load.requests[i].prompt_len;
    first = result.requests.empty() ? r.intended_s : std::min(first, r.intended_s);
    last = std::max(last, r.end_s);
    result.requests.push_back(std::move(r));
  }
  result.duration_s = std::max(0.0, last - first);
  warn(load, completions, result);
  return result;
}

void warn_of_failures(const LoadResult& result, std::vector<std::string>& warnings) {
  std::map<std::string, long> reasons;
  for (const formats::RequestResult& r : result.requests)
    if (!r.completed()) ++reasons[r.error];
  size_t listed = 0;
  for (const auto& [reason, n] : reasons) {
    if (++listed > 4) {
      warnings.push_back(std::to_string(reasons.size() - 4) + " other kinds of failures");
      break;
    }
    warnings.push_back(counted(n, "request") + " failed: " + reason);
  }
}

void warn_of_lateness(const options::LoadSettings& s, int max_in_flight, const LoadResult& result,
                      std::vector<std::string>& warnings) {
  std::vector<double> late;
  for (const formats::RequestResult& r : result.requests) late.push_back(r.sent_s - r.intended_s);
  if (s.arrival == options::Arrival::closed || late.empty()) return;
  const double p99 = formats::percentile_of(late, 99), worst = *std::max_element(late.begin(), late.end());
  if (p99 < kLateSend) return;
  const std::string times = "99 % of the requests were sent within " + number(p99 * 1e3) +
                            " ms of their time, the last one " + number(worst * 1e3) + " ms late";
  if (s.concurrency > 0)
    warnings.push_back("requests waited in the client, whose limit is " + std::to_string(s.concurrency) +
                       " in flight: " + times);
  else
    warnings.push_back("the client sent requests late (its limit is " + std::to_string(max_in_flight) +
                       " in flight): " + times + "; latencies from the intended time include the delay");
}

void HttpBackend::warn(const Load& load, const std::vector<StreamedCompletion>& completions, LoadResult& result) const {
  warn_of_failures(result, result.warnings);
  warn_of_lateness(load.settings, options_.max_in_flight, result, result.warnings);
  long too_short = 0, uncounted = 0, coarse = 0, completed = 0;
  double tokens = 0, wanted = 0;
  for (size_t i = 0; i < completions.size(); ++i) {
    const StreamedCompletion& a = completions[i];
    if (a.stopped || !a.result.completed()) continue;
    ++completed;
    too_short += a.result.output_tokens < load.requests[i].output_len;
    uncounted += !a.has_usage;
    coarse += a.result.output_tokens > a.pieces;
    tokens += a.result.prompt_tokens;
    wanted += load.requests[i].prompt_len;
  }
  const auto of_all = [&](long n) { return std::to_string(n) + " of " + std::to_string(completed); };
  const auto mean = [&](double sum) { return number(sum / static_cast<double>(completed), "%.5g"); };
  if (too_short > 0)
    result.warnings.push_back(of_all(too_short) + " completions are too short: the server does not honour ignore_eos");
  if (uncounted > 0)
    result.warnings.push_back("the server did not count the tokens of " + of_all(uncounted) +
                              " completions; pieces were counted instead");
  if (coarse > 0)
    result.warnings.push_back(
        of_all(coarse) + " completions have fewer pieces than tokens; their inter-token latencies are those of pieces");
  if (words_ && completed > 0)
    result.warnings.push_back("prompts are English words because the tokenizer is unknown: the server counted " +
                              mean(tokens) + " tokens on average instead of " + mean(wanted));
}

}  // namespace

std::unique_ptr<LoadBackend> make_http_backend(HttpLoadOptions options) {
  return std::make_unique<HttpBackend>(std::move(options));
}

}  // namespace mw::serve
