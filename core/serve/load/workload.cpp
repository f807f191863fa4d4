// SPDX-License-Identifier: Apache-2.0
#include "core/serve/load/workload.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/input_file.h"
#include "core/base/json.h"
#include "core/base/json_row.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/formats/results/bench_result.h"

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
  throw Error({.id = "WORKLOAD",
               .message = std::move(message),
               .file = place.file.string(),
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
      reject({file, "points"}, "the result has more than one point or none",
             std::to_string(set.points.size()) + " points", "a result of one point");
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

}  // namespace mw::serve
