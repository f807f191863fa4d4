// SPDX-License-Identifier: Apache-2.0
#include "core/mesh/layout/sharding_options.h"

#include <charconv>

namespace mw::mesh {
namespace {

Error wrong(const char* id, std::string key, std::string found, std::string expected) {
  return Error({.id = id,
                .message = "invalid entry",
                .place = std::move(key),
                .found = std::move(found),
                .expected = std::move(expected)});
}

std::string trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(' '), end = text.find_last_not_of(' ');
  return begin == std::string_view::npos ? "" : std::string(text.substr(begin, end - begin + 1));
}

// Splits "name = value" at the last '='.
std::pair<std::string, std::string> assignment(const std::string& text, const char* key, const char* example) {
  const auto equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) throw wrong("SET", key, text, example);
  return {trimmed(std::string_view(text).substr(0, equals)), trimmed(std::string_view(text).substr(equals + 1))};
}

}  // namespace

ShardingRules sharding_rules(const options::Sharding& sharding, Preset default_preset) {
  ShardingRules rules{.preset = sharding.preset.value_or(default_preset)};
  for (const std::string& text : sharding.overrides) {
    auto [pattern, spec] = assignment(text, "sharding.overrides", "q_einsum = (tp, fsdp, -)");
    rules.overrides.push_back({pattern, parse_spec(spec)});
  }
  return rules;
}

std::vector<RequestedPlacement> axis_places(const options::Sharding& sharding) {
  std::vector<RequestedPlacement> places;
  for (const std::string& text : sharding.places) {
    auto [axis, dimensions] = assignment(text, "sharding.places", "tp = 0, 1");
    RequestedPlacement place{axis, {}};
    for (size_t at = 0; at < dimensions.size();) {
      const size_t comma = std::min(dimensions.find(',', at), dimensions.size());
      const std::string one = trimmed(std::string_view(dimensions).substr(at, comma - at));
      int d = 0;
      if (std::from_chars(one.data(), one.data() + one.size(), d).ec != std::errc{})
        throw wrong("SET", "sharding.places", text, "tp = 0, 1");
      place.dimensions.push_back(d);
      at = comma + 1;
    }
    places.push_back(std::move(place));
  }
  return places;
}

}  // namespace mw::mesh
