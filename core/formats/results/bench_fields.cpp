// SPDX-License-Identifier: Apache-2.0
#include "core/formats/results/bench_fields.h"

#include <cmath>

#include "core/base/json.h"
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

}  // namespace mw::formats::bench
