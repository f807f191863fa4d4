// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/http_backend.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/serve/load/http_load_driver.h"
#include "core/serve/load/metrics_poller.h"
#include "core/serve/load/word_prompts.h"

namespace mw::serve {
namespace {

constexpr double kLateSend = 0.005;  // s; a client that sends later than this distorts the latencies

std::string number(double x, const char* format = "%.3g") {
  char text[32];
  std::snprintf(text, sizeof text, format, x);
  return text;
}

Error server_error(const HttpTarget& target, const std::string& message, const std::string& found,
                   const std::string& expected, const std::string& fix = {}) {
  return Error(
      {.id = "SERVER", .message = message, .place = target.url, .found = found, .expected = expected, .fix = fix});
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
  const LoadSettings& s = load.settings;
  const int limit = s.concurrency > 0 ? std::min(s.concurrency, options_.max_in_flight) : options_.max_in_flight;
  if (!load.warmups.empty()) HttpLoadDriver(source, load.warmups, Arrival::burst, limit, stop).run({});
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
    warnings.push_back(std::to_string(n) + " requests failed: " + reason);
  }
}

void warn_of_lateness(const LoadSettings& s, int max_in_flight, const LoadResult& result,
                      std::vector<std::string>& warnings) {
  std::vector<double> late;
  for (const formats::RequestResult& r : result.requests) late.push_back(r.sent_s - r.intended_s);
  if (s.arrival == Arrival::closed || late.empty()) return;
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
