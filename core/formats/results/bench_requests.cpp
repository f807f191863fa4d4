// SPDX-License-Identifier: Apache-2.0
#include "core/formats/results/bench_requests.h"

#include <algorithm>
#include <cmath>

#include "core/base/counted.h"
#include "core/formats/results/bench_fields.h"

namespace mw::formats::bench {
namespace {

double to_ns(double seconds) {  // the resolution of clocks; halves the size of the JSON
  return std::round(seconds * 1e9) / 1e9;
}

Json seconds(double value) {
  return std::isnan(value) ? Json(nullptr) : Json(to_ns(value));
}

// Entry i of a list of numbers; kUnknown if the list or the entry is missing.
double at(const Json* list, size_t i, const char* key) {
  if (!list || (*list)[i].is_null()) return kUnknown;
  return number_of((*list)[i], std::string(key) + "[" + std::to_string(i) + "]", -1e12);
}

int count_at(const Json* list, size_t i, const char* key) {
  if (!list || (*list)[i].is_null()) return 0;
  return static_cast<int>(count_of((*list)[i], std::string(key) + "[" + std::to_string(i) + "]", 1 << 30));
}

std::vector<float> gaps_at(const Json* list, size_t i) {
  std::vector<float> gaps;
  if (!list || (*list)[i].is_null()) return gaps;
  const std::string place = "itls[" + std::to_string(i) + "]";
  if (!(*list)[i].is_array()) bad(place, (*list)[i], "a list of seconds");
  gaps.reserve((*list)[i].size());
  for (const Json& gap : (*list)[i]) gaps.push_back(static_cast<float>(number_of(gap, place) * 1e3));
  return gaps;
}

struct RequestLists {
  const Json *input, *output, *ttft, *gaps, *latency, *start, *queue, *errors, *cached, *preempted, *scheduled,
      *intended;
};

RequestLists request_lists(const Json& point) {
  return {list(point, "input_lens"),  list(point, "output_lens"),     list(point, "ttfts"),
          list(point, "itls"),        list(point, "latencies"),       list(point, "start_times"),
          list(point, "queue_times"), list(point, "errors"),          list(point, "cached_lens"),
          list(point, "preemptions"), list(point, "scheduled_times"), list(point, "intended_times")};
}

RequestResult request_at(const RequestLists& l, size_t i) {
  RequestResult r;
  r.prompt_tokens = count_at(l.input, i, "input_lens");
  r.output_tokens = count_at(l.output, i, "output_lens");
  r.cached_tokens = count_at(l.cached, i, "cached_lens");
  r.preemptions = count_at(l.preempted, i, "preemptions");
  if (l.errors && !(*l.errors)[i].is_null()) r.error = text_of((*l.errors)[i], "errors[" + std::to_string(i) + "]");
  if (const double start = at(l.start, i, "start_times"); !std::isnan(start)) r.sent_s = start;
  const double intended = at(l.intended, i, "intended_times"), queue = at(l.queue, i, "queue_times");
  r.intended_s = !std::isnan(intended) ? intended : std::isnan(queue) ? r.sent_s : r.sent_s - queue;
  r.scheduled_s = at(l.scheduled, i, "scheduled_times");
  const double ttft = at(l.ttft, i, "ttfts"), latency = at(l.latency, i, "latencies");
  if (r.completed() || ttft > 0) r.first_token_s = r.sent_s + ttft;  // vLLM writes 0 for a failed request
  if (r.completed() || latency > 0) r.end_s = r.sent_s + latency;
  r.gaps_ms = gaps_at(l.gaps, i);
  if (r.completed() && std::isnan(latency) && !std::isnan(ttft) && l.gaps) {  // older versions write no latencies
    r.end_s = r.first_token_s;
    for (const float gap : r.gaps_ms) r.end_s += static_cast<double>(gap) / 1e3;
  }
  return r;
}

}  // namespace

const std::vector<std::string>& request_fields() {
  static const std::vector<std::string> names{"input_lens",  "output_lens", "ttfts",           "itls",
                                              "latencies",   "start_times", "queue_times",     "errors",
                                              "cached_lens", "preemptions", "scheduled_times", "intended_times"};
  return names;
}

void add_requests(Json& out, const std::vector<RequestResult>& requests) {
  for (const std::string& name : request_fields()) out[name] = Json::array();
  for (const RequestResult& r : requests) {
    Json gaps = Json::array();
    for (const float gap : r.gaps_ms) gaps.push_back(to_ns(static_cast<double>(gap) / 1e3));
    const auto since = [&](double t) { return std::isnan(t) && !r.completed() ? Json(0.0) : seconds(t - r.sent_s); };
    out["input_lens"].push_back(r.prompt_tokens);
    out["output_lens"].push_back(r.output_tokens);
    out["ttfts"].push_back(since(r.first_token_s));
    out["itls"].push_back(std::move(gaps));
    out["latencies"].push_back(since(r.end_s));
    out["start_times"].push_back(seconds(r.sent_s));
    out["queue_times"].push_back(seconds(r.sent_s - r.intended_s));
    out["errors"].push_back(r.error);
    out["cached_lens"].push_back(r.cached_tokens);
    out["preemptions"].push_back(r.preemptions);
    out["scheduled_times"].push_back(seconds(r.scheduled_s));
    out["intended_times"].push_back(seconds(r.intended_s));
  }
}

std::vector<RequestResult> read_requests(const Json& point) {
  const RequestLists l = request_lists(point);
  // Without --save-detailed, vLLM writes only latencies and queue_times, which are not enough.
  if (!l.ttft || !l.output) return {};
  const size_t n = l.output->size();
  if (n > kMostRequests) bad("output_lens", n, "at most " + std::to_string(kMostRequests) + " requests");
  for (const std::string& name : request_fields())
    if (const Json* all = list(point, name); all && all->size() != n)
      bad(name, counted(all->size(), "entry"), std::to_string(n) + ", as many as output_lens");
  std::vector<RequestResult> requests;
  requests.reserve(n);
  for (size_t i = 0; i < n; ++i) requests.push_back(request_at(l, i));
  if (l.intended || requests.empty()) return requests;
  // start_times have an unknown origin; the load starts with the first request.
  const double begin = std::min_element(requests.begin(), requests.end(), [](const auto& a, const auto& b) {
                         return a.intended_s < b.intended_s;
                       })->intended_s;
  for (RequestResult& r : requests)
    for (double* t : {&r.intended_s, &r.sent_s, &r.first_token_s, &r.end_s}) *t -= begin;
  return requests;
}

}  // namespace mw::formats::bench
