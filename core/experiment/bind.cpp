// SPDX-License-Identifier: Apache-2.0
#include "core/experiment/bind.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/formats/huggingface/hf_weights.h"
#include "core/model/catalogue.h"

namespace mw::experiment {
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

mesh::Mesh given_mesh(const Experiment& e) {
  mesh::Mesh mesh;
  for (const auto& [axis, size] : e.mesh()) mesh.axes.push_back({axis, static_cast<int>(size)});
  return mesh;
}

mesh::ShardingRules sharding_rules(const Experiment& e, mesh::Preset default_preset) {
  mesh::ShardingRules rules{.preset = default_preset};
  const std::string preset = e.string("sharding.preset");
  constexpr std::array<std::pair<std::string_view, mesh::Preset>, 4> kPresets{
      {{"tunix", mesh::Preset::tunix},
       {"megatron", mesh::Preset::megatron},
       {"fsdp", mesh::Preset::fsdp},
       {"replicated", mesh::Preset::replicated}}};
  for (const auto& [name, value] : kPresets)
    if (name == preset) rules.preset = value;
  for (const std::string& text : e.list("sharding.overrides")) {
    auto [pattern, spec] = assignment(text, "sharding.overrides", "q_einsum = (tp, fsdp, -)");
    rules.overrides.push_back({pattern, mesh::parse_spec(spec)});
  }
  return rules;
}

std::vector<mesh::RequestedPlacement> axis_places(const Experiment& e) {
  std::vector<mesh::RequestedPlacement> places;
  for (const std::string& text : e.list("sharding.places")) {
    auto [axis, dimensions] = assignment(text, "sharding.places", "tp = 0, 1");
    mesh::RequestedPlacement place{axis, {}};
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

model::Config config_of(const Experiment& e) {
  if (const auto path = e.path("model.path"); !path.empty()) return formats::read_config(path);
  if (e.string("model.id").empty())
    throw Error({.id = "MISSING",
                 .message = "the experiment has no model",
                 .place = "model.id",
                 .expected = "a catalogue id or a folder",
                 .fix = "set model.id, e.g. --set model.id=gemma3-1b, or model.path"});
  return model::catalogue_config(e.string("model.id"));
}

}  // namespace mw::experiment
