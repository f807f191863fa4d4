// SPDX-License-Identifier: Apache-2.0
#include "core/formats/results/bench_fields.h"

#include <algorithm>
#include <cmath>

#include "core/base/units.h"
#include "core/formats/results/bench_result.h"

namespace mw::formats::bench {

void bad(const std::string& place, const Json& found, const std::string& expected) {
  throw Error("BENCH", "a field of the result is invalid",
              {.place = valid_utf8(place),
               .found = json_excerpt(found),
               .expected = expected,
               .fix = "correct the field, or remove it if the value is unknown"});
}

double number_of(const Json& value, const std::string& place, double least) {
  if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() < least)
    bad(place, value, "a number of at least " + number_text(least));
  return value.get<double>();
}

double number(const Json& object, const std::string& key, double least) {
  const Json* value = find_member(object, key);
  return value ? number_of(*value, key, least) : kUnknown;
}

std::int64_t count_of(const Json& value, const std::string& place, std::int64_t most) {
  // Some tools write integers as 30.0.
  const double v = value.is_number() ? value.get<double>() : -1;
  if (!(v >= 0 && v <= static_cast<double>(most)) || v != std::floor(v))
    bad(place, value, "a whole number from 0 to " + std::to_string(most));
  return static_cast<std::int64_t>(v);
}

std::int64_t count(const Json& object, const std::string& key, std::int64_t most) {
  const Json* value = find_member(object, key);
  return value ? count_of(*value, key, most) : 0;
}

std::string text_of(const Json& value, const std::string& place) {
  if (!value.is_string()) bad(place, value, "a text");
  return value.get<std::string>();
}

std::string text(const Json& object, const std::string& key) {
  const Json* value = find_member(object, key);
  return value ? text_of(*value, key) : std::string();
}

const Json* list(const Json& object, const std::string& key) {
  const Json* value = find_member(object, key);
  if (value && !value->is_array()) bad(key, *value, "a list");
  return value;
}

const Json& object_at(const Json& object, const std::string& key) {
  static const Json kEmptyObject = Json::object();
  const Json* value = find_member(object, key);
  if (!value) return kEmptyObject;
  if (!value->is_object()) bad(key, *value, "an object");
  return *value;
}

int rounded_length(double mean) {
  return mean > 0 && mean < 1 << 30 ? static_cast<int>(std::lround(mean)) : 0;
}

namespace {

constexpr std::string_view kSpace = " \t\r\n";
constexpr size_t kMostValues = 1'000'000;  // consecutive values

// Offset after the value that begins at `at`, found by its brackets; the end of the text if they are not closed.
size_t end_of_value(std::string_view text, size_t at) {
  int depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"') {
      at = end_of_string(text, at);
    } else {
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      ++at;
    }
    if (depth <= 0) {
      if (c == '}' || c == ']' || c == '"') return at;
      return std::min(text.find_first_of(kSpace, at), text.size());  // a number, a literal or invalid text
    }
  }
  return text.size();
}

// Converts line numbers in errors to those of the file.
Json parse_at(std::string_view value, const std::string& file, long lines_before) {
  const bool python = value.find("NaN") != std::string_view::npos || value.find("Infinity") != std::string_view::npos;
  try {
    return parse_json(python ? without_python_numbers(value, {.infinity = "\"inf\""}) : std::string(value), file);
  } catch (const Error& error) {
    Problem problem = error.problem();
    if (lines_before > 0 && problem.place.starts_with("line ")) {
      const size_t comma = problem.place.find(',');
      problem.place = "line " + std::to_string(std::stol(problem.place.substr(5)) + lines_before) +
                      (comma == std::string::npos ? "" : problem.place.substr(comma));
    }
    if (problem.fix.empty()) problem.fix = "copy the file again, or remove the damaged part";
    throw Error(problem, error.kind());
  }
}

}  // namespace

std::set<std::string> first_keys(std::string_view text) {
  std::set<std::string> keys;
  size_t at = text.find_first_not_of(kSpace);
  if (at != std::string_view::npos && text[at] == '[') at = text.find_first_not_of(kSpace, at + 1);
  if (at == std::string_view::npos || text[at] != '{') return keys;
  int depth = 0;
  for (++at; at < text.size() && depth >= 0;) {
    const char c = text[at];
    if (c != '"') {
      depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
      ++at;
      continue;
    }
    const size_t end = end_of_string(text, at);
    const size_t next = text.find_first_not_of(kSpace, end);
    if (depth == 0 && end >= at + 2 && next != std::string_view::npos && text[next] == ':')
      keys.emplace(text.substr(at + 1, end - at - 2));
    at = end;
  }
  return keys;
}

std::vector<Json> read_values(std::string_view text, const std::string& file) {
  std::vector<Json> values;
  long lines = 0;
  size_t counted = 0;
  for (size_t at = text.find_first_not_of(kSpace); at != std::string_view::npos;
       at = text.find_first_not_of(kSpace, at)) {
    lines += std::count(text.begin() + static_cast<long>(counted), text.begin() + static_cast<long>(at), '\n');
    counted = at;
    if (values.size() == kMostValues)
      throw Error("BENCH", "the file contains too many values",
                  {.file = file,
                   .place = "line " + std::to_string(lines + 1),
                   .expected = "at most " + std::to_string(kMostValues)});
    const size_t end = end_of_value(text, at);
    values.push_back(parse_at(text.substr(at, end - at), file, lines));
    at = end;
    if (at >= text.size()) break;
  }
  return values;
}

}  // namespace mw::formats::bench
