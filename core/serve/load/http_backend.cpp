// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/http_backend.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>

#include "core/base/error.h"
#include "core/data/tokenizer/utf8.h"
#include "core/serve/load/http_load_driver.h"
#include "core/serve/load/metrics_poller.h"
#include "core/serve/load/word_prompts.h"

namespace mw::serve {
namespace {

constexpr double kLateSend = 0.005;  // s: a client that is later than this measures itself

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

std::string found_text(const StreamClient::Got& got) {
  if (got.status == 0) return got.error;
  return "HTTP " + std::to_string(got.status) + " " + data::excerpt(got.body, 200);
}

class HttpBackend : public LoadBackend {
 public:
  explicit HttpBackend(HttpLoadOptions options) : options_(std::move(options)), client_(options_.target) {
    find_model();
  }
  LoadResult play(const Load& load, const OnProgress& progress, std::stop_token stop) override;

 private:
  void find_model();
  std::string request_body(const Json& prompt, int output_len) const;
  Json prompt_of(const TimedRequest& request) const;
  int count_tokens(const std::string& text);
  HttpRequestSource work() const;
  void warn(const Load& load, const std::vector<StreamedCompletion>& answers, LoadResult& played) const;

  HttpLoadOptions options_;
  StreamClient client_;
  std::optional<WordPrompts> words_;
};

void HttpBackend::find_model() {
  const HttpTarget& target = options_.target;
  const StreamClient::Got got = client_.get("/v1/models");
  if (got.status == 0)
    throw server_error(target, "no server answers", got.error, "an OpenAI-compatible server",
                       "start it, or check the address");
  if (got.status == 401 || got.status == 403)
    throw server_error(
        target, "the server refuses access", found_text(got), "HTTP 200",
        "set MESHWRIGHT_API_KEY, or give user and password in the URL (they are not recorded: to resume a "
        "sweep, give it again with --url)");
  std::vector<std::string> names;
  const Json json = Json::parse(got.body, nullptr, false);
  if (json.is_object() && json.contains("data") && json["data"].is_array())
    for (const Json& m : json["data"])
      if (m.is_object() && m.contains("id") && m["id"].is_string()) names.push_back(m["id"].get<std::string>());
  std::string& wanted = options_.target.model;
  if (wanted.empty() && names.empty())
    throw server_error(target, "the server does not say which models it has", found_text(got),
                       "a list under /v1/models", "name the model with sweep.model");
  if (wanted.empty()) wanted = names.front();
  if (!names.empty() && std::find(names.begin(), names.end(), wanted) == names.end())
    throw server_error(target, "the server does not have this model", wanted,
                       "one of those it names: " + names.front());
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

// As the server counts them, by asking for one token.
int HttpBackend::count_tokens(const std::string& text) {
  const Json body{{"model", options_.target.model}, {"prompt", text}, {"max_tokens", 1}, {"temperature", 0}};
  const StreamClient::Got got = client_.post("/v1/completions", body.dump());
  const Json json = Json::parse(got.body, nullptr, false);
  if (got.status != 200 || !json.is_object())
    throw server_error(options_.target, "the server does not complete a short text", found_text(got), "HTTP 200");
  const auto usage = json.find("usage");
  if (usage == json.end() || !usage->is_object()) return 0;
  const auto tokens = usage->find("prompt_tokens");
  return tokens != usage->end() && tokens->is_number() ? static_cast<int>(std::clamp(tokens->get<double>(), 0.0, 1e9))
                                                       : 0;
}

HttpRequestSource HttpBackend::work() const {
  return {.target = options_.target,
          .body = [this](const TimedRequest& r) { return request_body(prompt_of(r), r.output_len); },
          .expected =
              [this](const TimedRequest& r) {
                return ExpectedUsage{.prompt_tokens = r.prompt_len,
                                     .output_tokens = r.output_len,
                                     .prompt_slack = words_ ? r.prompt_len / 2 : 0};
              }};
}

LoadResult HttpBackend::play(const Load& load, const OnProgress& progress, std::stop_token stop) {
  if (options_.vocab == 0 && !words_) words_.emplace([this](const std::string& text) { return count_tokens(text); });
  const HttpRequestSource requests = work();
  const LoadSettings& s = load.settings;
  const int most = s.concurrency > 0 ? std::min(s.concurrency, options_.most_in_flight) : options_.most_in_flight;
  if (!load.warmups.empty()) HttpLoadDriver(requests, load.warmups, Arrival::burst, most, stop).play({});
  HttpLoadDriver player(requests, load.requests, s.arrival, most, stop);
  MetricsPoller watch(options_.target, player.origin());
  const std::vector<StreamedCompletion> answers = player.play(progress);
  MetricsPoller::Seen seen = watch.finish();

  LoadResult played;
  played.timeline = std::move(seen.timeline);
  played.prefix_hits = seen.prefix_hits;
  double first = 0, last = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].stopped) continue;
    formats::RequestResult r = answers[i].result;
    if (r.prompt_tokens == 0) r.prompt_tokens = load.requests[i].prompt_len;
    first = played.requests.empty() ? r.intended_s : std::min(first, r.intended_s);
    last = std::max(last, r.end_s);
    played.requests.push_back(std::move(r));
  }
  played.duration_s = std::max(0.0, last - first);
  warn(load, answers, played);
  return played;
}

void warn_of_failures(const LoadResult& played, std::vector<std::string>& warnings) {
  std::map<std::string, long> reasons;
  for (const formats::RequestResult& r : played.requests)
    if (!r.completed()) ++reasons[r.error];
  size_t told = 0;
  for (const auto& [reason, n] : reasons) {
    if (++told > 4) {
      warnings.push_back(std::to_string(reasons.size() - 4) + " other reasons for failures");
      break;
    }
    warnings.push_back(std::to_string(n) + " failed: " + reason);
  }
}

void warn_of_lateness(const LoadSettings& s, int most, const LoadResult& played, std::vector<std::string>& warnings) {
  std::vector<double> late;
  for (const formats::RequestResult& r : played.requests) late.push_back(r.sent_s - r.intended_s);
  if (s.arrival == Arrival::closed || late.empty()) return;
  const double p99 = formats::percentile_of(late, 99), worst = *std::max_element(late.begin(), late.end());
  if (p99 < kLateSend) return;
  const std::string times = "99 % of requests left within " + number(p99 * 1e3) + " ms of their time, the worst " +
                            number(worst * 1e3) + " ms late";
  if (s.concurrency > 0)
    warnings.push_back("requests waited in the client, which has at most " + std::to_string(s.concurrency) +
                       " in flight: " + times);
  else
    warnings.push_back("the client was late (it can have " + std::to_string(most) + " requests in flight): " + times +
                       "; latencies from the intended time include that");
}

void HttpBackend::warn(const Load& load, const std::vector<StreamedCompletion>& answers, LoadResult& played) const {
  warn_of_failures(played, played.warnings);
  warn_of_lateness(load.settings, options_.most_in_flight, played, played.warnings);
  long short_ones = 0, uncounted = 0, coarse = 0, completed = 0;
  double tokens = 0, wanted = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    const StreamedCompletion& a = answers[i];
    if (a.stopped || !a.result.completed()) continue;
    ++completed;
    short_ones += a.result.output_tokens < load.requests[i].output_len;
    uncounted += !a.usage_said;
    coarse += a.result.output_tokens > a.pieces;
    tokens += a.result.prompt_tokens;
    wanted += load.requests[i].prompt_len;
  }
  const auto of_all = [&](long n) { return std::to_string(n) + " of " + std::to_string(completed); };
  if (short_ones > 0)
    played.warnings.push_back(of_all(short_ones) +
                              " answers are shorter than asked: the server does not ignore "
                              "end-of-text");
  if (uncounted > 0)
    played.warnings.push_back("the server did not count the tokens of " + of_all(uncounted) +
                              " answers: pieces were counted instead");
  if (coarse > 0)
    played.warnings.push_back(of_all(coarse) +
                              " answers came in fewer pieces than tokens: times between tokens are "
                              "those between pieces");
  if (words_ && completed > 0)
    played.warnings.push_back("prompts are English words, as the tokenizer is not known: " +
                              number(tokens / static_cast<double>(completed), "%.5g") +
                              " tokens on average by the "
                              "server's count where " +
                              number(wanted / static_cast<double>(completed), "%.5g") + " were wanted");
}

}  // namespace

std::unique_ptr<LoadBackend> make_http_backend(HttpLoadOptions options) {
  return std::make_unique<HttpBackend>(std::move(options));
}

}  // namespace mw::serve
